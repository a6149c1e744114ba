package data

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sieve is a source that drops every document whose text is one of the two reasons.
type sieve struct{ named }

func (s sieve) screened(ctx context.Context, skipped func(string)) iter.Seq2[Document, error] {
	return func(yield func(Document, error) bool) {
		for d, err := range s.Documents(ctx) {
			if err == nil && (d.Text == empty || d.Text == notUTF8) {
				skipped(d.Text)
			} else if !yield(d, err) {
				return
			}
		}
	}
}

// mixed is a source of n documents of 3 to 6 bytes, among which every third is followed by an empty one and every
// fourth by one that is not UTF-8.
func mixed(name string, n int) (s sieve, kept []string, skipped Skipped) {
	s.name = name
	for i := range n {
		text := fmt.Sprintf("%s%d", name, 10+i)
		s.docs, kept = append(s.docs, text), append(kept, text)
		if i%3 == 2 {
			s.docs, skipped.Empty = append(s.docs, empty), skipped.Empty+1
		}
		if i%4 == 3 {
			s.docs, skipped.NotUTF8 = append(s.docs, notUTF8), skipped.NotUTF8+1
		}
	}
	return s, kept, skipped
}

// Sources of one, of a few and of many batches: each is counted by itself, documents keep their order, and progress is
// told as documents and tokens of the beginning.
func TestBatchesOfSources(t *testing.T) {
	for _, sizes := range [][]int{{1, 700, 300}, {256, 1, 257}, {600}, {2, 3}} {
		var src []Source
		var want []string
		var infos []SourceInfo
		for i, n := range sizes {
			s, kept, skipped := mixed(string(rune('a'+i)), n)
			info := SourceInfo{Name: s.name, Docs: int64(n), Tokens: int64(len(strings.Join(kept, " ")) + 1),
				Skipped: skipped}
			src, want, infos = append(src, s), append(want, kept...), append(infos, info)
		}
		told, last := 0, int64(0)
		progress := func(docs, tokens int64) {
			told++
			if docs < last || docs > int64(len(want)) || tokens != int64(len(strings.Join(want[:docs], " "))+1) {
				t.Errorf("%v: %d documents and %d tokens after %d documents", sizes, docs, tokens, last)
			}
			last = docs
		}
		dir := filepath.Join(t.TempDir(), "set")
		m, err := Build(t.Context(), dir, src, narrow, BuildOptions{Workers: 3, Progress: progress})
		if err != nil || !slices.Equal(m.Sources, infos) {
			t.Fatalf("%v: %v\n%+v, want\n%+v", sizes, err, m.Sources, infos)
		}
		if last != int64(len(want)) || told < len(sizes) || len(want) > 512 && told < 3 {
			t.Errorf("%v: told %d times, at last %d of %d documents", sizes, told, last, len(want))
		}
		s := must(OpenSet(dir, true))
		if got := textsOf(t, s, Train, narrow); !slices.Equal(got, want) {
			t.Errorf("%v: documents %.200q", sizes, got)
		}
		must(0, s.Close())
	}
}

// A source without text is named with what was dropped of it, first or last, of one batch or of several.
func TestSourceWithoutText(t *testing.T) {
	good, _, _ := mixed("good", 300)
	bad := sieve{named{texts{docs: slices.Concat(slices.Repeat([]string{empty}, 5),
		slices.Repeat([]string{notUTF8}, 300), []string{""})}, "bad"}}
	const want = "data: source bad: gave no document with text (300 not UTF-8, 6 empty)"
	for _, src := range [][]Source{{bad}, {bad, good}, {good, bad}, {good, bad, good}} {
		_, err := Build(t.Context(), filepath.Join(t.TempDir(), "set"), src, narrow, BuildOptions{})
		if s, ok := errors.AsType[*SourceError](err); !ok || s.Source != "bad" || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A tokenizer that is given lies in the set's folder as it was given. It is part of the set: such a folder is used
// again and replaced like another.
func TestStoredTokenizer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	src := randomTexts(20, 30, 5)
	path := filepath.Join(dir, TokenizerName)
	for _, c := range []struct {
		src   texts
		text  string
		there string
	}{{src, "{1}", "{1}"}, {src, "{2}", "{1}"}, {randomTexts(20, 30, 6), "{2}", "{2}"}, {src, "", ""}} {
		opt := BuildOptions{Tokenizer: []byte(c.text)}
		if c.text == "" {
			opt.Tokenizer = nil
		}
		if _, err := build(dir, c.src, narrow, opt); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(path); string(b) != c.there || (err == nil) != (c.there != "") {
			t.Errorf("%s holds %q, %v; want %q", TokenizerName, b, err, c.there)
		}
	}
	write(t, filepath.Join(dir, "thesis.txt"), []byte("dear"))
	want := fmt.Sprintf(`folder %s holds "thesis.txt", which is not part of its set`, dir)
	if _, err := build(dir, src, narrow, BuildOptions{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
