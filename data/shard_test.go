package data

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/internal/vfs"
)

// shardBytes is a small valid shard of documents {1,2,3} and {4,5}.
func shardBytes(t testing.TB, vocab int) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.bin")
	w, err := createShard(vfs.OS{}, path, vocab)
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range [][]int32{{1, 2, 3}, {4, 5}} {
		if err := w.add(doc); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.finish(Train); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestShardRoundTrip(t *testing.T) {
	for _, vocab := range []int{6, 1 << 16, 1<<16 + 1} {
		path := filepath.Join(t.TempDir(), "s.bin")
		if err := os.WriteFile(path, shardBytes(t, vocab), 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := openShard(vfs.OS{}, path, true)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		got := make([]int32, 5)
		if bad := s.read(got, 0); bad >= 0 || !slices.Equal(got, []int32{1, 2, 3, 4, 5}) {
			t.Errorf("vocab %d: tokens %v", vocab, got)
		}
		if s.Docs() != 2 || s.Tokens() != 5 || s.offset(1) != 3 || s.Vocab() != vocab || s.Name() != "s.bin" {
			t.Errorf("vocab %d: %d documents, %d tokens, second begins at %d", vocab, s.Docs(), s.Tokens(), s.offset(1))
		}
	}
}

// reseal makes the header checksum right again, so that later checks are reached.
func reseal(b []byte) []byte {
	binary.LittleEndian.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
	return b
}

// Flipping any one byte is noticed by the reader itself, without the manifest.
func TestShardEveryByteCounts(t *testing.T) {
	good := shardBytes(t, 300)
	for i := range good {
		b := slices.Clone(good)
		b[i] ^= 0x10
		s, err := parseShard("x.bin", b)
		if err == nil {
			err = s.verify()
		}
		mustCorrupt(t, err, "x.bin")
	}
	for n := range good {
		_, err := parseShard("x.bin", good[:n])
		mustCorrupt(t, err, "x.bin")
	}
	_, err := parseShard("x.bin", append(slices.Clone(good), 0))
	mustCorrupt(t, err, "x.bin")
}

func TestShardFaultsAreNamed(t *testing.T) {
	le := binary.LittleEndian
	index := func(b []byte) []byte { return b[le.Uint64(b[40:]):] }
	fixIndex := func(b []byte) { le.PutUint32(b[52:], crc32.Checksum(index(b), castagnoli)) }
	for want, change := range map[string]func(b []byte){
		"not a token shard":              func(b []byte) { b[0] = 'X' },
		"shard version 9":                func(b []byte) { le.PutUint32(b[8:], 9) },
		"4 bytes per token, want 2":      func(b []byte) { le.PutUint32(b[12:], 4) },
		"vocabulary of 0":                func(b []byte) { le.PutUint32(b[16:], 0) },
		"reserved":                       func(b []byte) { b[20] = 1 },
		"more than its":                  func(b []byte) { le.PutUint64(b[24:], 1<<61) },
		"18446744073709551615 documents": func(b []byte) { le.PutUint64(b[24:], 1<<64-1) },
		"18446744073709551615 tokens":    func(b []byte) { le.PutUint64(b[32:], 1<<64-1) },
		"9223372036854775808 tokens":     func(b []byte) { le.PutUint64(b[32:], 1<<63) },
		"with the index at 72":           func(b []byte) { le.PutUint64(b[40:], 72) },
		"padding byte at offset 74":      func(b []byte) { b[74] = 7 },
		"document index at offset 80":    func(b []byte) { index(b)[8] = 4 },
		"begins at token 1":              func(b []byte) { index(b)[0] = 1; fixIndex(b) },
		"document 1 spans tokens 5 to 5": func(b []byte) { index(b)[8] = 5; fixIndex(b) },
		"ends at token 6":                func(b []byte) { index(b)[16] = 6; fixIndex(b) },
		"tokens have checksum":           func(b []byte) { b[64] = 9 },
		"token 1 is id 300": func(b []byte) {
			le.PutUint16(b[66:], 300)
			le.PutUint32(b[48:], crc32.Checksum(b[64:74], castagnoli))
		},
	} {
		b := shardBytes(t, 300)
		change(b)
		s, err := parseShard("dir/x.bin", reseal(b))
		if err == nil {
			err = s.verify()
		}
		if c := mustCorrupt(t, err, "x.bin"); !strings.Contains(c.Fault, want) {
			t.Errorf("fault %q, want one with %q", c.Fault, want)
		}
	}
}

func TestOpenShardNeedsAFile(t *testing.T) {
	if _, err := openShard(vfs.OS{}, filepath.Join(t.TempDir(), "none.bin"), false); err == nil ||
		!strings.Contains(err.Error(), "none.bin") {
		t.Errorf("error %v, want one with the name", err)
	}
	empty := filepath.Join(t.TempDir(), "empty.bin")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := openShard(vfs.OS{}, empty, false)
	mustCorrupt(t, err, "empty.bin")
	_, err = openShard(vfs.OS{}, empty, true)
	mustCorrupt(t, err, "empty.bin")
	folder := t.TempDir()
	_, err = openShard(vfs.OS{}, folder, true)
	if c := mustCorrupt(t, err, filepath.Base(folder)); c.Fault != "not a regular file" {
		t.Errorf("a folder: %v", err)
	}
	damaged := filepath.Join(t.TempDir(), "damaged.bin")
	b := shardBytes(t, 300)
	b[64]++ // a token, which only verify reads
	write(t, damaged, b)
	s, err := openShard(vfs.OS{}, damaged, false)
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	_, err = openShard(vfs.OS{}, damaged, true)
	mustCorrupt(t, err, "damaged.bin")
}

// Wherever the one id outside the vocabulary is, verify names it; ids up to the last are right, in every vocabulary.
func TestVerifyEveryToken(t *testing.T) {
	for _, vocab := range []int{1, 2, 300, 1 << 16, 1<<16 + 1, maxVocab} {
		ids := make([]int32, 1100)
		for i := range ids {
			ids[i] = int32(i % 2 * (vocab - 1))
		}
		path := filepath.Join(t.TempDir(), "s.bin")
		w := must(createShard(vfs.OS{}, path, vocab))
		must(0, w.add(ids))
		must(w.finish(Train))
		s, err := openShard(vfs.OS{}, path, true)
		if err != nil {
			t.Errorf("a vocabulary of %d: %v", vocab, err)
			continue
		}
		for range 2 { // closing twice is allowed
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		if vocab == 1<<16 {
			continue // all that two bytes can hold
		}
		b := must(os.ReadFile(path))
		for _, at := range []int{0, 1, 511, 512, 513, 1023, 1024, 1099} {
			changed, width := slices.Clone(b), int(tokenWidth(vocab))
			le.PutUint16(changed[headerSize+width*at:], uint16(vocab))
			if width == 4 {
				le.PutUint32(changed[headerSize+width*at:], uint32(vocab))
			}
			le.PutUint32(changed[48:], crc32.Checksum(changed[headerSize:headerSize+width*len(ids)], castagnoli))
			s, err := parseShard("x.bin", reseal(changed))
			if err == nil {
				err = s.verify()
			}
			if c := mustCorrupt(t, err, "x.bin"); c.Fault !=
				fmt.Sprintf("token %d is id %d, outside the vocabulary of %d", at, vocab, vocab) {
				t.Errorf("token %d: %v", at, err)
			}
		}
	}
}

// Whatever the bytes: no panic, an error that names the file, or a shard all of whose documents can be read.
func FuzzShard(f *testing.F) {
	for _, vocab := range []int{300, 1 << 20} {
		b := shardBytes(f, vocab)
		f.Add(b)
		f.Add(b[:len(b)-8])
		b = slices.Clone(b)
		binary.LittleEndian.PutUint64(b[24:], 1<<60)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		// Mutations seldom hit a checksum: seal a copy too, so that later checks are reached.
		sealed := slices.Clone(b)
		if len(sealed) >= headerSize {
			le := binary.LittleEndian
			if at := le.Uint64(sealed[40:]); at < uint64(len(sealed)) {
				le.PutUint32(sealed[52:], crc32.Checksum(sealed[at:], castagnoli))
			}
			reseal(sealed)
		}
		for _, b := range [][]byte{b, sealed} {
			s, err := parseShard("fuzz.bin", b)
			if err != nil {
				mustCorrupt(t, err, "fuzz.bin")
				continue
			}
			var total uint64
			for i := range s.header.docs {
				d := docRef{s, s.offset(i), s.offset(i + 1)}
				s.read(make([]int32, d.len()), d.lo)
				total += d.len()
			}
			if total != s.header.tokens {
				t.Fatalf("documents hold %d tokens, header says %d", total, s.header.tokens)
			}
			if err := s.verify(); err != nil {
				mustCorrupt(t, err, "fuzz.bin")
			}
		}
	})
}

// The first id outside the vocabulary is the one that is told, in both widths; without one it is -1.
func TestFirstForeignID(t *testing.T) {
	for _, width := range []uint32{2, 4} {
		for _, c := range []struct {
			ids  []int32
			want int
		}{{nil, -1}, {[]int32{0, 9, 5}, -1}, {[]int32{10, 3, 11}, 0}, {[]int32{9, 10, 12, 2}, 1},
			{[]int32{1, 2, 65535}, 2}} {
			s := &Shard{header: shardHeader{width: width, vocab: 10}, tokens: []byte("skipskip")[:2*width]}
			for _, id := range c.ids {
				s.tokens = append(s.tokens, le.AppendUint32(nil, uint32(id))[:width]...)
			}
			got := make([]int32, len(c.ids))
			if bad := s.read(got, 2); bad != c.want || !slices.Equal(got, c.ids) {
				t.Errorf("%d bytes: %d is the first of %v, want %d", width, bad, got, c.want)
			}
		}
	}
}
