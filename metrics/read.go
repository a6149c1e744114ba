package metrics

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"antiphase/internal/cores"
	"antiphase/internal/vfs"
)

// maxLine bounds the bytes kept of one line. A row of a thousand layers has 12 kB.
const maxLine = 1 << 20

// LineError is a line that is not a row. The rows around it are good.
type LineError struct {
	Path string
	Line int // counted from 1
	Err  error
}

// Error implements error.
func (e *LineError) Error() string { return fmt.Sprintf("%s: line %d: %v", e.Path, e.Line, e.Err) }

// Unwrap returns what is wrong with it.
func (e *LineError) Unwrap() error { return e.Err }

// Rows reads a file from the beginning. A damaged line is yielded as a *LineError with a zero Row, and reading
// continues; any other error is the last.
func Rows(path string) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for l, err := range lines(vfs.OS{}, path) {
			if !yield(l.row, err) {
				return
			}
		}
	}
}

// Read returns all good rows; damaged lines are reported through warn, which may be nil.
func Read(path string, warn func(string)) ([]Row, error) {
	var out []Row
	for row, err := range Rows(path) {
		var bad *LineError
		switch {
		case errors.As(err, &bad):
			if warn != nil {
				warn(bad.Error() + "; it is skipped")
			}
		case err != nil:
			return out, err
		default:
			out = append(out, row)
		}
	}
	return out, nil
}

// Tail reads rows after byte from, up to about most bytes, and returns the offset where they end, from which the next
// call continues. An unfinished line is left for later; a damaged one is skipped. If the file is shorter than from it
// was rewritten: it is read from the beginning, and reset is true.
func Tail(f *os.File, from, most int64) (rows []Row, next int64, reset bool, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, from, false, err
	}
	if info.Size() < from {
		from, reset = 0, true
	}
	in := bufio.NewReaderSize(io.NewSectionReader(f, from, info.Size()-from), 64<<10)
	var buf []byte
	for next = from; next-from < most; {
		var size int64
		if buf, size, err = readLine(in, buf[:0]); err == io.EOF {
			return rows, next, reset, nil
		}
		if err != nil {
			return rows, next, reset, err
		}
		next += size
		l := line{text: buf, size: size, ended: true}
		if l.parse(); l.bad == nil {
			rows = append(rows, l.row)
		}
	}
	return rows, next, reset, nil
}

// line is one line of a file: a row, or what is wrong with it, and the offset of its end.
type line struct {
	row    Row
	end    int64
	text   []byte
	size   int64 // in the file, with its newline
	ended  bool
	sealed bool
	bad    error
}

// lines is Rows with offsets. All cores parse.
func lines(fsys vfs.FS, path string) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		f, err := fsys.Open(path)
		if err != nil {
			yield(line{}, err)
			return
		}
		defer f.Close()
		in := bufio.NewReaderSize(f, 64<<10)
		mustSeal := false // after the first line with a checksum: later ones without are damaged
		for n, end := 1, int64(0); err == nil; {
			var block []line
			if block, err = readBlock(in); err != nil && err != io.EOF {
				yield(line{}, fmt.Errorf("%s: %w", path, err))
				return
			}
			cores.Each(len(block), func(i int) { block[i].parse() })
			for i := range block {
				l := &block[i]
				end += l.size
				if l.end = end; l.bad == nil && !l.sealed && mustSeal {
					l.bad = errNotSealed
				}
				mustSeal = mustSeal || l.sealed
				if l.bad != nil {
					l.bad, l.row = &LineError{path, n, l.bad}, Row{}
				}
				if n++; !yield(*l, l.bad) {
					return
				}
			}
		}
	}
}

// readBlock reads 256 lines or a megabyte. At the end of the file the error is io.EOF, with the last lines.
func readBlock(in *bufio.Reader) (block []line, err error) {
	for total := int64(0); len(block) < 256 && total < maxLine; {
		l := line{}
		if l.text, l.size, err = readLine(in, nil); err != nil && err != io.EOF {
			return block, err
		}
		if l.ended = err == nil; l.size > 0 {
			block = append(block, l)
		}
		if err != nil {
			return block, err
		}
		total += l.size
	}
	return block, nil
}

// readLine reads up to a newline, which counts in size but is not kept; nor are bytes beyond maxLine.
func readLine(in *bufio.Reader, buf []byte) (kept []byte, size int64, err error) {
	for {
		part, err := in.ReadSlice('\n')
		size += int64(len(part))
		if room := maxLine + 1 - len(buf); room > 0 {
			buf = append(buf, part[:min(len(part), room)]...)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		return bytes.TrimSuffix(buf, []byte("\n")), size, err
	}
}

var errNotSealed = errors.New("the checksum is missing")

// parse sets the row, or what is wrong with the line by itself.
func (l *line) parse() {
	switch {
	case l.size > maxLine:
		l.bad = fmt.Errorf("%d bytes, no row is longer than %d", l.size, maxLine)
	case !l.ended:
		l.bad = errors.New("it does not end")
	default:
		if l.row, l.sealed, l.bad = parse(l.text); l.bad != nil {
			l.sealed = false
		}
	}
}
