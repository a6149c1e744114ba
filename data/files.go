package data

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"antiphase/internal/vfs"
)

// reader reads the documents of one kind of file; yield returns false if no more are wanted.
type reader struct {
	ending string
	read   func(f *os.File, yield func(text string) bool) error
}

// readers are the kinds of files that Open supports.
var readers = []reader{
	{".txt", plain(readText)}, {".txt.gz", gunzip(readText)}, {".txt.zst", unzstd(readText)},
	{".md", plain(readText)}, {".md.gz", gunzip(readText)}, {".md.zst", unzstd(readText)},
	{".jsonl", plain(readJSONL)}, {".jsonl.gz", gunzip(readJSONL)}, {".jsonl.zst", unzstd(readJSONL)},
	{".parquet", readParquet},
}

func readerOf(path string, rs []reader) *reader {
	name := strings.ToLower(filepath.Base(path))
	for i := range rs {
		if strings.HasSuffix(name, rs[i].ending) {
			return &rs[i]
		}
	}
	return nil
}

func endings(rs []reader) string {
	var b strings.Builder
	for i, r := range rs {
		switch {
		case i == 0:
		case i == len(rs)-1:
			b.WriteString(" or ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(r.ending)
	}
	return b.String()
}

type (
	fileFunc   = func(*os.File, func(string) bool) error
	streamFunc = func(*bufio.Reader, func(string) bool) error
)

func plain(read streamFunc) fileFunc {
	return func(f *os.File, yield func(string) bool) error { return read(bufio.NewReaderSize(f, 1<<16), yield) }
}

func gunzip(read streamFunc) fileFunc {
	return func(f *os.File, yield func(string) bool) error {
		z, err := gzip.NewReader(f)
		if err != nil {
			return err
		}
		defer z.Close()
		return read(bufio.NewReaderSize(z, 1<<16), yield)
	}
}

func unzstd(read streamFunc) fileFunc {
	return func(f *os.File, yield func(string) bool) error {
		packed := bufio.NewReaderSize(f, 1<<16)
		if _, err := packed.Peek(1); err == io.EOF { // the decoder accepts an empty file as a complete stream
			return io.ErrUnexpectedEOF
		}
		z, err := zstd.NewReader(packed, zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return err
		}
		defer z.Close()
		return read(bufio.NewReaderSize(z, 1<<16), yield)
	}
}

// files is a source of files, in the order of paths, which are relative to root ("" for the working folder).
type files struct {
	name    string
	root    string
	paths   []string
	readers []reader
}

func (s *files) Name() string { return s.name }

// Fingerprint covers the paths, sizes and modification times.
func (s *files) Fingerprint() (string, error) {
	h := sha256.New()
	for _, p := range s.paths {
		st, err := os.Stat(filepath.Join(s.root, p))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%q %d %d\n", filepath.ToSlash(p), st.Size(), st.ModTime().UnixNano())
	}
	return fmt.Sprintf("%d files %s", len(s.paths), hex.EncodeToString(h.Sum(nil)[:16])), nil
}

func (s *files) Documents(ctx context.Context) iter.Seq2[Document, error] {
	return s.screened(ctx, func(string) {})
}

// screened is Documents, and calls skipped for each dropped document.
func (s *files) screened(ctx context.Context, skipped func(why string)) iter.Seq2[Document, error] {
	return func(yield func(Document, error) bool) {
		for _, p := range s.paths {
			more := true
			path := filepath.Join(s.root, p)
			err := readFile(path, readerOf(p, s.readers), func(text string) bool {
				if why := unusable(text); why != "" {
					skipped(why)
					more = ctx.Err() == nil
				} else {
					more = ctx.Err() == nil && yield(Document{Text: text, Source: filepath.ToSlash(p)}, nil)
				}
				return more
			})
			if err == nil && more {
				continue
			}
			if more {
				yield(Document{}, unreadable(path, err))
			} else if ctx.Err() != nil {
				yield(Document{}, ctx.Err())
			}
			return
		}
	}
}

// probe reads the beginning of some files, so that a binary, malformed or wrong file is rejected before any work.
func (s *files) probe() error {
	const most = 100
	text := false
	for _, p := range s.paths[:min(len(s.paths), most)] {
		path := filepath.Join(s.root, p)
		err := readFile(path, readerOf(p, s.readers), func(d string) bool {
			text = text || unusable(d) == ""
			return !text
		})
		if err != nil {
			return unreadable(path, err)
		}
	}
	if !text && len(s.paths) <= most {
		return errors.New("holds no text: every document is empty or not UTF-8")
	}
	return nil
}

func readFile(path string, r *reader, yield func(string) bool) error {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		return vfs.ErrNotRegular // opening a pipe may never return, and a file is read several times
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return r.read(f, yield)
}

const (
	// textChunk bounds a document of running text. A book in one file becomes many documents, which can be shuffled and
	// partly held out.
	textChunk = 64 << 10
	// textBreak separates documents within a text file, as in common plain-text corpora.
	textBreak = "<|endoftext|>"
	bom       = "\ufeff" // some editors begin a file with it
	// maxWindow bounds the memory that a zstd stream can request, as the zstd program does.
	maxWindow = 128 << 20
)

// readText yields the text between breaks, long pieces cut at the last paragraph, line, space or rune that fits.
func readText(r *bufio.Reader, yield func(string) bool) error {
	var buf []byte
	chunk := make([]byte, 32<<10)
	first, eof, at := true, false, 0
	for !eof {
		n, err := r.Read(chunk) // not io.ReadFull, whose early end looks like a truncated file
		if err == io.EOF {
			eof = true
		} else if err != nil {
			return err
		}
		if mark := string(chunk[:min(n, 2)]); at == 0 && (mark == "\xff\xfe" || mark == "\xfe\xff") {
			return errors.New("text in UTF-16: convert it to UTF-8, for example with iconv -f utf-16 -t utf-8")
		}
		if i := bytes.IndexByte(chunk[:n], 0); i >= 0 {
			return fmt.Errorf("byte %d is zero: this is a binary file and not text", at+i)
		}
		at += n
		buf = append(buf, chunk[:n]...)
		if first && (len(buf) >= len(bom) || eof) {
			buf = bytes.TrimPrefix(buf, []byte(bom))
			first = false
		}
		for len(buf) > 0 {
			piece, used := nextPiece(buf, eof)
			if used == 0 {
				break
			}
			last := eof && used == len(buf)
			if text := strings.Trim(string(piece), "\r\n"); (text != "" || !last) && !yield(text) {
				return nil
			}
			buf = buf[used:]
		}
	}
	return nil
}

// nextPiece returns the next document of buf and the number of bytes it consumes, 0 if more input is needed.
func nextPiece(buf []byte, eof bool) (piece []byte, used int) {
	window := buf[:min(len(buf), textChunk)]
	if i := bytes.Index(buf[:min(len(buf), textChunk+len(textBreak))], []byte(textBreak)); i >= 0 {
		return buf[:i], i + len(textBreak)
	}
	if len(buf) < textChunk+len(textBreak) {
		if !eof {
			return nil, 0
		}
		if len(buf) <= textChunk {
			return buf, len(buf)
		}
	}
	for _, sep := range []string{"\n\n", "\n", " "} {
		// Not in the first half: documents would become too short.
		if i := bytes.LastIndex(window, []byte(sep)); i >= textChunk/2 {
			return buf[:i], i + len(sep)
		}
	}
	cut := len(window)
	for i := 0; i < 3 && buf[cut]&0xc0 == 0x80; i++ { // not inside a rune
		cut--
	}
	return buf[:cut], cut
}
