package data

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// named is a source of some texts with a name and a fingerprint of its own; without one it cannot be recognised.
type named struct {
	texts
	name string
}

func (s named) Name() string { return s.name }

// unknown is a source without fingerprints.
type unknown struct{ s texts }

func (u unknown) Name() string { return "unknown" }
func (u unknown) Documents(ctx context.Context) iter.Seq2[Document, error] {
	return u.s.Documents(ctx)
}

// Everything that decides a set's content decides whether an earlier set is used again, each by itself; what does not
// decide it, does not.
func TestInputsOfASet(t *testing.T) {
	two := func(name, id string) []Source {
		return []Source{named{texts{id: "first"}, "a"}, named{texts{id: id}, name}}
	}
	seen := map[string]string{}
	for name, c := range map[string]struct {
		src []Source
		enc byteEncoder
		opt BuildOptions
	}{
		"plain":             {two("b", "second"), narrow, BuildOptions{}},
		"another name":      {two("c", "second"), narrow, BuildOptions{}},
		"another print":     {two("b", "third"), narrow, BuildOptions{}},
		"name and print":    {two("second", "b"), narrow, BuildOptions{}},
		"one source":        {two("b", "second")[:1], narrow, BuildOptions{}},
		"the other order":   {[]Source{two("b", "second")[1], two("b", "second")[0]}, narrow, BuildOptions{}},
		"another tokenizer": {two("b", "second"), byteEncoder{vocab: 257, shift: 1, eos: 256}, BuildOptions{}},
		"shards":            {two("b", "second"), narrow, BuildOptions{ShardTokens: 99}},
		"a bound":           {two("b", "second"), narrow, BuildOptions{MaxTokens: 99}},
		"held out":          {two("b", "second"), narrow, BuildOptions{HeldOut: 0.5}},
		"by documents":      {two("b", "second"), narrow, BuildOptions{HeldOutBy: ByDocuments}},
		"weights":           {two("b", "second"), narrow, BuildOptions{Shares: []Share{{Weight: 1}, {Weight: 2}}}},
		"other weights":     {two("b", "second"), narrow, BuildOptions{Shares: []Share{{Weight: 2}, {Weight: 1}}}},
		"epochs": {two("b", "second"), narrow,
			BuildOptions{Shares: []Share{{Weight: 1, Epochs: 3}, {Weight: 2}}}},
	} {
		m := must(newManifest(c.src, c.enc, must(c.opt.withDefaults())))
		if other, ok := seen[m.Inputs]; ok || len(m.Inputs) != 64 {
			t.Errorf("%s and %s have the inputs %q", name, other, m.Inputs)
		}
		seen[m.Inputs] = name
		for _, same := range []BuildOptions{{Workers: 7}, {Tokenizer: []byte("{}")},
			{Progress: func(int64, int64) {}}} {
			opt := c.opt
			opt.Workers, opt.Tokenizer, opt.Progress = same.Workers, same.Tokenizer, same.Progress
			if again := must(newManifest(c.src, c.enc, must(opt.withDefaults()))); again.Inputs != m.Inputs {
				t.Errorf("%s: other inputs with %+v", name, same)
			}
		}
	}
	one, none := named{texts{id: "x"}, "a"}, unknown{}
	for _, src := range [][]Source{{none}, {one, none}, {none, one}, {one, none, one}, {one, named{texts{}, "b"}}} {
		if m := must(newManifest(src, narrow, must(BuildOptions{}.withDefaults()))); m.Inputs != "" {
			t.Errorf("%d sources, one without a fingerprint: inputs %q", len(src), m.Inputs)
		}
	}
}

// The first id of a vocabulary and its last are ids like others, in the narrowest and the widest shards; the ones next
// to them are not.
func TestFirstAndLastID(t *testing.T) {
	for _, c := range []struct {
		vocab int
		width uint32
	}{{2, 2}, {1<<16 - 1, 2}, {1 << 16, 2}, {1<<16 + 1, 4}, {1 << 20, 4}} {
		if got := tokenWidth(c.vocab); got != c.width {
			t.Errorf("a vocabulary of %d: %d bytes per token, want %d", c.vocab, got, c.width)
		}
		ids := fixed{vocab: c.vocab, ids: []int32{0, int32(c.vocab - 1), 0}}
		s := buildSet(t, texts{docs: []string{"x"}}, ids, BuildOptions{})
		if got := split(t, s, Train).Document([]int32{-9}, 0); !slices.Equal(got, append([]int32{-9}, ids.ids...)) {
			t.Errorf("a vocabulary of %d: ids %v", c.vocab, got)
		}
		for _, bad := range []int32{-1, int32(c.vocab)} {
			_, err := build(filepath.Join(t.TempDir(), "set"), texts{docs: []string{"x"}},
				fixed{vocab: c.vocab, ids: []int32{0, bad}}, BuildOptions{})
			if want := fmt.Sprintf("data: build: encoder gave id %d for a document of texts, its vocabulary is %d", bad,
				c.vocab); err == nil || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
}

// fixed is an encoder that gives the same ids for every text.
type fixed struct {
	vocab int
	ids   []int32
}

func (e fixed) EncodeOrdinary(dst []int32, _ string) []int32 { return append(dst, e.ids...) }
func (e fixed) Vocab() int                                   { return e.vocab }
func (e fixed) EOS() (int32, bool)                           { return 0, false }
func (e fixed) Hash() string                                 { return "fixed" }

// Whichever write of a division fails, that error comes back from one of its calls, and the call before it did not
// fail.
func TestDivisionsFail(t *testing.T) {
	broken := errors.New("broken")
	text := func(from, n int) (ids []int32) {
		for i := range n {
			ids = append(ids, int32(from+i))
		}
		return ids
	}
	for name, of := range map[string]func(w writeFunc) divider{
		"pieces":    func(w writeFunc) divider { return newByPiece(w, 0.3, nil, func(int, int) {}) },
		"documents": func(w writeFunc) divider { return &byDocument{write: w, share: 0.5} },
		"all":       func(w writeFunc) divider { return &byDocument{write: w} },
	} {
		run := func(fails int) (writes int, err error) {
			d := of(func(int, string, []int32) error {
				if writes++; writes == fails {
					return broken
				}
				return nil
			})
			for source := range 2 {
				for doc := range 12 {
					if err = d.add(text(1000*(100*source+doc), 900), mix64(uint64(100*source+doc+1))); err != nil {
						return writes, err
					}
				}
				if err = d.end(); err != nil {
					return writes, err
				}
			}
			return writes, d.finish()
		}
		all, err := run(0)
		if err != nil || all < 24 {
			t.Fatalf("%s: %d writes, %v", name, all, err)
		}
		for fails := 1; fails <= all; fails++ {
			if writes, err := run(fails); err != broken || writes != fails {
				t.Errorf("%s: write %d of %d fails: %v after %d", name, fails, all, err, writes)
			}
		}
	}
	// Copies of one document are written at the end, to train.
	copies := &byDocument{write: func(int, string, []int32) error { return broken }, share: 0.5}
	for range 2 {
		if err := errors.Join(copies.add(text(1, 9), 7), copies.end()); err != nil {
			t.Fatal(err)
		}
	}
	if err := copies.finish(); err != broken {
		t.Errorf("copies: %v", err)
	}
}

// Text that repeats what is held out is counted where it stands, not where it was first.
func TestRepeatedIsCountedAtItsSource(t *testing.T) {
	var long texts
	for i := range 40 {
		long.docs = append(long.docs, strings.Repeat(fmt.Sprintf("%03d ", i), 300))
	}
	other := randomTexts(5, 50, 3)
	m := must(Build(t.Context(), filepath.Join(t.TempDir(), "set"), []Source{long, other, long}, narrow,
		BuildOptions{HeldOut: 0.1}))
	held := m.Sources[0].HeldOut // whole documents of 1200 tokens, each with an end-of-text id
	if got := []int64{m.Sources[0].Repeated, m.Sources[1].Repeated, m.Sources[2].Repeated}; !slices.Equal(got,
		[]int64{0, 0, held - held/1200}) || held < 1201 {
		t.Errorf("repeated %v, held out %d of the first", got, held)
	}
}
