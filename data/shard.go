package data

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"path/filepath"

	"antiphase/internal/vfs"
)

// Shard layout, little-endian; docs/format/shard.md is the specification.
//
//	header | tokens (width bytes each) | zero padding to 8 | index: docs+1 × uint64 token offsets
const (
	shardMagic   = "APSHARD\x00"
	shardVersion = 1
	headerSize   = 64
	maxVocab     = math.MaxInt32
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// shardHeader is the decoded header.
type shardHeader struct {
	width       uint32 // bytes per token: 2 or 4
	vocab       uint32 // every id is below it
	docs        uint64
	tokens      uint64
	tokensCRC   uint32 // CRC-32C of the token bytes
	indexCRC    uint32 // CRC-32C of the index bytes
	indexOffset uint64
}

func (h *shardHeader) encode() []byte {
	b := make([]byte, headerSize)
	copy(b, shardMagic)
	le := binary.LittleEndian
	le.PutUint32(b[8:], shardVersion)
	le.PutUint32(b[12:], h.width)
	le.PutUint32(b[16:], h.vocab)
	le.PutUint64(b[24:], h.docs)
	le.PutUint64(b[32:], h.tokens)
	le.PutUint64(b[40:], h.indexOffset)
	le.PutUint32(b[48:], h.tokensCRC)
	le.PutUint32(b[52:], h.indexCRC)
	le.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
	return b
}

// tokenWidth is the number of bytes per token for this vocabulary.
func tokenWidth(vocab int) uint32 {
	if vocab <= 1<<16 {
		return 2
	}
	return 4
}

// Shard is one mapped shard file. The reader allocates nothing that grows with it.
type Shard struct {
	path   string
	header shardHeader
	tokens []byte // tokens × width
	index  []byte // (docs+1) × 8
	unmap  func() error
}

// openShard maps a shard and checks its header and document index; with verify also every token. Errors are
// [CorruptError]s that name the file.
func openShard(fsys vfs.FS, path string, verify bool) (*Shard, error) {
	b, unmap, err := fsys.Map(path)
	if errors.Is(err, vfs.ErrNotRegular) {
		return nil, corrupt(path, "not a regular file")
	}
	if err != nil {
		return nil, fmt.Errorf("data: shard: %w", err)
	}
	s, err := parseShard(path, b)
	if err == nil && verify {
		err = s.verify()
	}
	if err != nil {
		unmap()
		return nil, err
	}
	s.unmap = unmap
	return s, nil
}

// parseShard reads the header and checks that every count fits the file exactly and that the index is valid, so that no
// later access can leave b.
func parseShard(path string, b []byte) (*Shard, error) {
	h, err := parseHeader(path, b)
	if err != nil {
		return nil, err
	}
	size := uint64(len(b))
	// Counts are bounded by the file's size before they are multiplied, so nothing below can overflow.
	if h.tokens > size/uint64(h.width) || h.docs >= size/8 {
		return nil, corrupt(path, "header counts %d documents and %d tokens, more than its %d bytes can hold", h.docs,
			h.tokens, size)
	}
	end := headerSize + h.tokens*uint64(h.width)
	indexAt := (end + 7) &^ 7
	want := indexAt + (h.docs+1)*8
	if want != size || h.indexOffset != indexAt {
		return nil, corrupt(path, "%d bytes with the index at %d, want %d bytes with the index at %d for %d "+
			"documents and %d tokens (truncated or grown?)",
			size, h.indexOffset, want, indexAt, h.docs, h.tokens)
	}
	for i := end; i < indexAt; i++ {
		if b[i] != 0 {
			return nil, corrupt(path, "padding byte at offset %d is %#x, want 0", i, b[i])
		}
	}
	s := &Shard{path: path, header: h, tokens: b[headerSize:end], index: b[indexAt:want]}
	if err := s.checkIndex(indexAt); err != nil {
		return nil, err
	}
	return s, nil
}

func parseHeader(path string, b []byte) (h shardHeader, err error) {
	if len(b) < headerSize {
		return h, corrupt(path, "%d bytes are too few for a shard header of %d", len(b), headerSize)
	}
	if string(b[:8]) != shardMagic {
		return h, corrupt(path, "not a token shard: begins with %q, want %q", b[:8], shardMagic)
	}
	le := binary.LittleEndian
	if v := le.Uint32(b[8:]); v != shardVersion {
		return h, corrupt(path, "shard version %d, this program reads version %d", v, shardVersion)
	}
	if got, want := crc32.Checksum(b[:60], castagnoli), le.Uint32(b[60:]); got != want {
		return h, corrupt(path, "header checksum %08x, want %08x", got, want)
	}
	h = shardHeader{
		width: le.Uint32(b[12:]), vocab: le.Uint32(b[16:]),
		docs: le.Uint64(b[24:]), tokens: le.Uint64(b[32:]), indexOffset: le.Uint64(b[40:]),
		tokensCRC: le.Uint32(b[48:]), indexCRC: le.Uint32(b[52:]),
	}
	if h.vocab < 1 || h.vocab > maxVocab {
		return h, corrupt(path, "vocabulary of %d, want 1 to %d", h.vocab, maxVocab)
	}
	if h.width != tokenWidth(int(h.vocab)) {
		return h, corrupt(path, "%d bytes per token, want %d for a vocabulary of %d", h.width,
			tokenWidth(int(h.vocab)), h.vocab)
	}
	if !bytes.Equal(b[:60], h.encode()[:60]) {
		return h, corrupt(path, "reserved header bytes are not zero")
	}
	return h, nil
}

// checkIndex checks that offsets rise strictly from 0 to the token count: documents cover the tokens, and none is
// empty.
func (s *Shard) checkIndex(indexAt uint64) error {
	if got := crc32.Checksum(s.index, castagnoli); got != s.header.indexCRC {
		return corrupt(s.path, "document index at offset %d has checksum %08x, want %08x", indexAt, got,
			s.header.indexCRC)
	}
	if first := s.offset(0); first != 0 {
		return corrupt(s.path, "document index begins at token %d, want 0", first)
	}
	for i := uint64(0); i < s.header.docs; i++ {
		if s.offset(i+1) <= s.offset(i) {
			return corrupt(s.path, "document %d spans tokens %d to %d", i, s.offset(i), s.offset(i+1))
		}
	}
	if last := s.offset(s.header.docs); last != s.header.tokens {
		return corrupt(s.path, "document index ends at token %d, want %d", last, s.header.tokens)
	}
	return nil
}

// verify reads every token: checksum, and ids below the vocabulary size.
func (s *Shard) verify() error {
	if got := crc32.Checksum(s.tokens, castagnoli); got != s.header.tokensCRC {
		return corrupt(s.path, "tokens have checksum %08x, want %08x", got, s.header.tokensCRC)
	}
	var buf [512]int32
	for at := uint64(0); at < s.header.tokens; {
		n := min(uint64(len(buf)), s.header.tokens-at)
		if bad := s.read(buf[:n], at); bad >= 0 {
			return corrupt(s.path, "token %d is id %d, outside the vocabulary of %d", at+uint64(bad), buf[bad],
				s.header.vocab)
		}
		at += n
	}
	return nil
}

// offset is the i-th entry of the document index; i in [0, docs].
func (s *Shard) offset(i uint64) uint64 { return binary.LittleEndian.Uint64(s.index[i*8:]) }

// read decodes len(dst) tokens beginning at token `at` and returns the index of the first id outside the vocabulary, or
// -1. The test costs one compare per token and keeps a damaged file from indexing past an embedding.
func (s *Shard) read(dst []int32, at uint64) int {
	bad := -1
	w := uint64(s.header.width)
	src := s.tokens[at*w : (at+uint64(len(dst)))*w]
	vocab := s.header.vocab
	if w == 2 {
		for i := range dst {
			id := uint32(src[2*i]) | uint32(src[2*i+1])<<8
			dst[i] = int32(id)
			if id >= vocab && bad < 0 {
				bad = i
			}
		}
		return bad
	}
	for i := range dst {
		id := binary.LittleEndian.Uint32(src[4*i:])
		dst[i] = int32(id)
		if id >= vocab && bad < 0 {
			bad = i
		}
	}
	return bad
}

// Name is the file's base name.
func (s *Shard) Name() string { return filepath.Base(s.path) }

// Docs is the number of documents.
func (s *Shard) Docs() int64 { return int64(s.header.docs) }

// Tokens is the number of tokens, end-of-text ids included.
func (s *Shard) Tokens() int64 { return int64(s.header.tokens) }

// Vocab is the size of the vocabulary that the ids come from.
func (s *Shard) Vocab() int { return int(s.header.vocab) }

// Close unmaps the file; the shard must not be used afterwards.
func (s *Shard) Close() error {
	if s.unmap == nil {
		return nil
	}
	unmap := s.unmap
	s.unmap = nil
	return unmap()
}
