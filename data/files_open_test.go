package data

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/internal/quota"

	"antiphase/internal/vfs"
)

// No reader leaves a file open or mapped: read to the end, broken off, or of a damaged file.
func TestFilesAreClosed(t *testing.T) {
	dir := t.TempDir()
	stop := errors.New("enough")
	text := []byte("{\"text\":\"one\"}\n{\"text\":\"two\"}\n")
	for name, b := range map[string][]byte{
		"a.jsonl": text, "a.jsonl.gz": gz(text), "a.jsonl.zst": zst(text), "a.txt": []byte("one two"),
		"a.parquet":    parquetOf(t, []row{{1, "one"}, {2, "two"}}),
		"a.json":       []byte(`[{"text":"one"},{"text":"two"}]`),
		"cut.jsonl.gz": gz(text)[:20], "bad.jsonl": []byte("{"), "bad.parquet": []byte("PAR1PAR1"),
		"bad.json": []byte(`[{"a":1}`),
	} {
		path := filepath.Join(dir, name)
		write(t, path, b)
		quota.Files(t, "Lines of "+name, func() {
			_ = Lines(path, func(int, []byte) error { return nil })
			_ = Lines(path, func(int, []byte) error { return stop })
		})
		quota.Files(t, "Rows of "+name, func() {
			_ = Rows(path, func(int, map[string]any) error { return nil })
			_ = Rows(path, func(int, map[string]any) error { return stop })
		})
		quota.Files(t, "the documents of "+name, func() {
			s, err := Open(path)
			if err != nil {
				return
			}
			for range s.Documents(context.Background()) {
			}
			for range s.Documents(context.Background()) {
				break
			}
			if _, err := EstimateText(context.Background(), s, 1); err != nil {
				t.Error(err)
			}
		})
	}
}

// No set leaves a file open or mapped: opened, built, built again, or damaged.
func TestSetFilesAreClosed(t *testing.T) {
	dir := t.TempDir()
	set := filepath.Join(dir, "set")
	m := must(build(set, randomTexts(200, 60, 1), narrow, BuildOptions{ShardTokens: 2000, HeldOut: 0.1}))
	quota.Files(t, "a set", func() {
		s, err := OpenSet(set, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	quota.Files(t, "a set that is there", func() {
		must(build(set, randomTexts(200, 60, 1), narrow, BuildOptions{ShardTokens: 2000, HeldOut: 0.1}))
	})
	quota.Files(t, "a build that fails", func() {
		if _, err := build(filepath.Join(dir, "none"), texts{docs: []string{"a", "b"}, err: os.ErrClosed}, narrow,
			BuildOptions{ShardTokens: 1}); err == nil {
			t.Error("no error")
		}
	})
	last := filepath.Join(set, m.Shards[len(m.Shards)-1].Name)
	b := must(os.ReadFile(last))
	b[headerSize] ^= 1
	write(t, last, b)
	for _, verify := range []bool{true, false} { // without it only the index and the header are looked at
		if !verify {
			b[len(b)-1] ^= 1
			write(t, last, b)
		}
		quota.Files(t, "a damaged set", func() {
			if _, err := OpenSet(set, verify); err == nil {
				t.Error("no error")
			}
		})
		quota.Files(t, "a damaged shard", func() {
			if _, err := openShard(vfs.OS{}, last, verify); err == nil {
				t.Error("no error")
			}
		})
	}
}

// Sources that cannot be read do not overlap, and kinds of weight 0 do not occur.
func TestNoOverlap(t *testing.T) {
	gone := &files{root: t.TempDir(), paths: []string{"a.txt", "b.txt"}, readers: readers}
	if list := Overlaps([]string{"x", "y"}, []Source{gone, gone}); len(list) != 0 {
		t.Errorf("files that are not there: %q", list)
	}
	a, b := NewSynthetic(), NewSynthetic()
	a.Mix, b.Mix = map[string]int{"kv": 0, "prose": 1}, map[string]int{"kv": 1, "prose": 0}
	if list := Overlaps([]string{"x", "y"}, []Source{a, b}); len(list) != 0 {
		t.Errorf("kinds of weight 0: %q", list)
	}
	b.Mix["prose"] = 1
	if list := Overlaps([]string{"x", "y"}, []Source{a, b}); len(list) != 1 ||
		!strings.Contains(list[0], "sources x and y have the same seed 1") {
		t.Errorf("%q", list)
	}
}
