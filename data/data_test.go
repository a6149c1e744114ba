package data

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// byteEncoder is a tokenizer whose ids are bytes, shifted; vocab decides the token width.
type byteEncoder struct {
	vocab int
	shift int32
	eos   int32 // negative: none
}

var (
	narrow = byteEncoder{vocab: 257, eos: 256}
	wide   = byteEncoder{vocab: 70257, shift: 70000, eos: 70256}
	noEOS  = byteEncoder{vocab: 256, eos: -1}
)

func (e byteEncoder) EncodeOrdinary(dst []int32, text string) []int32 {
	for _, c := range []byte(text) {
		dst = append(dst, int32(c)+e.shift)
	}
	return dst
}
func (e byteEncoder) Vocab() int         { return e.vocab }
func (e byteEncoder) EOS() (int32, bool) { return e.eos, e.eos >= 0 }
func (e byteEncoder) Hash() string       { return fmt.Sprintf("bytes-%d-%d-%d", e.vocab, e.shift, e.eos) }

// texts is a source of given texts; a non-nil err follows them.
type texts struct {
	docs []string
	err  error
	id   string // fingerprint
}

func (s texts) Name() string                 { return "texts" }
func (s texts) Fingerprint() (string, error) { return s.id, nil }
func (s texts) Documents(context.Context) iter.Seq2[Document, error] {
	return func(yield func(Document, error) bool) {
		for _, d := range s.docs {
			if !yield(Document{Text: d, Source: "texts"}, nil) {
				return
			}
		}
		if s.err != nil {
			yield(Document{}, s.err)
		}
	}
}

// randomTexts are n different texts of 1 to most bytes (a little more for the number that makes them different).
func randomTexts(n, most int, seed uint64) texts {
	r := rand.New(rand.NewPCG(seed, 0))
	var s texts
	for i := range n {
		b := make([]byte, r.IntN(most))
		for j := range b {
			b[j] = byte('a' + r.IntN(26))
		}
		s.docs = append(s.docs, fmt.Sprintf("%d%s", i, b))
	}
	s.id = fmt.Sprint("random", n, most, seed)
	return s
}

// buildSet builds and opens a set in a test folder.
func buildSet(t testing.TB, src Source, enc Encoder, opt BuildOptions) *Set {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "set")
	if _, err := Build(context.Background(), dir, []Source{src}, enc, opt); err != nil {
		t.Fatal(err)
	}
	s, err := OpenSet(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func split(t testing.TB, s *Set, name string) *Split {
	t.Helper()
	sp, err := s.Split(name)
	if err != nil {
		t.Fatal(err)
	}
	return sp
}

// mustCorrupt checks that err is a CorruptError about file.
func mustCorrupt(t *testing.T, err error, file string) *CorruptError {
	t.Helper()
	var c *CorruptError
	if !errors.As(err, &c) {
		t.Fatalf("error is %v, want a CorruptError", err)
	}
	if filepath.Base(c.File) != file || c.Fault == "" {
		t.Fatalf("error names %q with fault %q, want file %q", c.File, c.Fault, file)
	}
	return c
}

var le = binary.LittleEndian

func crc(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }
