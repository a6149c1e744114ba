package data

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// piecesOf divides documents of consecutive ids, the documents of one source after the other, and lists what is
// written.
type written struct {
	source int
	split  string
	ids    []int32
}

func piecesOf(t *testing.T, share float64, eos *int32, sources ...[]int) (list []written, dropped []int) {
	t.Helper()
	dropped = make([]int, len(sources))
	d := newByPiece(func(source int, split string, ids []int32) error {
		list = append(list, written{source, split, slices.Clone(ids)})
		return nil
	}, share, eos, func(source, tokens int) { dropped[source] += tokens })
	id := int32(0)
	for _, docs := range sources {
		for _, n := range docs {
			var ids []int32
			for range n {
				ids = append(ids, id)
				id++
			}
			if eos != nil {
				ids = append(ids, *eos)
			}
			if err := d.add(ids, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.end(); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.finish(); err != nil {
		t.Fatal(err)
	}
	return list, dropped
}

// One piece of 1024 tokens is held out of each 1/share consecutive ones, never the first piece of a source; what is
// written is the documents in order, each part with the end of text if there is one.
func TestPiecesByDefinition(t *testing.T) {
	end := int32(-7)
	for _, eos := range []*int32{nil, &end} {
		for _, share := range []float64{0.02, 0.1, 0.25, 0.5, 0.6, 0.75, 0.95} {
			const n = 200
			list, _ := piecesOf(t, share, eos, []int{n * 1024}, []int{60 * 1024, 140 * 1024})
			next, held := int32(0), [2][]int{}
			for _, w := range list {
				ids := w.ids
				if eos != nil {
					if ids[len(ids)-1] != end {
						t.Fatalf("a part of %s ends with %d", w.split, ids[len(ids)-1])
					}
					ids = ids[:len(ids)-1]
				}
				if ids[0] != next || ids[len(ids)-1] != next+int32(len(ids))-1 {
					t.Fatalf("%d to %d is written after %d", ids[0], ids[len(ids)-1], next-1)
				}
				if next += int32(len(ids)); w.split == Valid {
					if len(ids) != 1024 || ids[0]%1024 != 0 {
						t.Fatalf("%d tokens are held out, beginning at %d", len(ids), ids[0])
					}
					held[w.source] = append(held[w.source], int(ids[0])/1024-n*w.source)
				}
			}
			if next != 2*n*1024 {
				t.Errorf("%d tokens of %d", next, 2*n*1024)
			}
			for source, list := range held {
				if got, want := len(list), int(share*n); got < want-1 || got > want {
					t.Errorf("share %g: %d pieces of source %d are held out, want %d", share, got, source, want)
				}
				for k, i := range list {
					lo, hi := int(float64(k)/share), int(math.Ceil(float64(k+1)/share)) // its stratum
					if i < max(lo, 1) || i >= hi {
						t.Errorf("share %g: piece %d of source %d is held out as number %d, want one of %d to %d",
							share, i, source, k, max(lo, 1), hi-1)
					}
				}
			}
			if slices.Equal(held[0], held[1]) {
				t.Errorf("share %g: both sources hold out the same places", share)
			}
		}
	}
}

// The length of pieces: documents are cut into equal ones of about 1024 tokens; a small source has 8, of at least 16
// tokens, and gives one up only if it has 4.
func TestPieceLengths(t *testing.T) {
	const big = 8 * 1024 // with a document of it before, pieces have their full length
	for _, c := range []struct {
		docs       []int
		held, size int // tokens held out, in pieces of this size
	}{
		{[]int{55}, 0, 0}, {[]int{56}, 14, 14}, {[]int{64}, 16, 16}, {[]int{127}, 16, 16}, {[]int{128}, 16, 16},
		{[]int{800}, 100, 100}, {[]int{8000}, 1000, 1000},
		{[]int{10, 10, 10}, 0, 0}, {[]int{10, 10, 10, 10}, 10, 10}, // each document is at least a piece
		{[]int{big}, 1024, 1024},
	} {
		list, _ := piecesOf(t, 0.01, nil, c.docs)
		held := 0
		for _, w := range list {
			if w.split == Valid {
				held += len(w.ids)
				if diff := len(w.ids) - c.size; diff < -1 || diff > 1 {
					t.Errorf("%v: a piece of %d tokens, want %d", c.docs, len(w.ids), c.size)
				}
			}
		}
		if diff := held - c.held; diff < -1 || diff > 1 {
			t.Errorf("%v: %d tokens are held out, want %d", c.docs, held, c.held)
		}
	}
	d := newByPiece(nil, 0.5, nil, nil)
	d.size = 1024
	for n, want := range map[int]int{1: 1, 1024: 1, 1535: 1, 1536: 2, 2559: 2, 2560: 3, 10240: 10} {
		if got := d.cuts(make([]int32, n)); got != want {
			t.Errorf("%d tokens are %d pieces, want %d", n, got, want)
		}
	}
	for n, waits := range map[int]bool{1: true, big - 1: true, big: false, big + 1: false} {
		d := newByPiece(func(int, string, []int32) error { return nil }, 0.5, nil, nil)
		if err := d.add(make([]int32, n), 0); err != nil || (d.waiting != nil) != waits {
			t.Errorf("after %d tokens %d documents wait (%v)", n, len(d.waiting), err)
		}
	}
	end := int32(0)
	if d.eos = &end; d.cuts(make([]int32, 1536)) != 1 || d.cuts(make([]int32, 1537)) != 2 {
		t.Error("the end of text counts as text")
	}
}

// The manifest counts by source what the set holds, and what it does not.
func TestManifestCounts(t *testing.T) {
	long := numbered(0, 9000)
	sources := []Source{
		texts{docs: []string{long, "", long}, id: "a"}, // the second is a repetition of the first
		texts{docs: []string{numbered(50000, 2000), "x"}, id: "b"},
	}
	dir := filepath.Join(t.TempDir(), "set")
	m, err := Build(t.Context(), dir, sources, narrow,
		BuildOptions{HeldOut: 0.1, Shares: []Share{{Weight: 1}, {Weight: 1}}, ShardTokens: 20000})
	if err != nil {
		t.Fatal(err)
	}
	s := must(OpenSet(dir, true))
	defer s.Close()
	var valid, train [2]int64
	for _, v := range textsOf(t, s, Valid, narrow) {
		source := 0
		if !strings.Contains(long, v) {
			source = 1
		}
		valid[source] += int64(len(v)) + 1
	}
	for _, sh := range m.Shards {
		switch {
		case sh.Split == Valid && sh.Part != 0:
			t.Errorf("held-out text of source %d alone", sh.Part)
		case sh.Split == Train:
			train[sh.Part-1] += sh.Tokens
		}
		if sh.Tokens > 20000 && sh.Docs > 1 {
			t.Errorf("%+v is larger than asked for", sh)
		}
	}
	for i, info := range m.Sources {
		if info.Docs != 2 || info.HeldOut != valid[i] || info.Tokens != valid[i]+train[i] || info.HeldOut == 0 ||
			info.Skipped.Empty != int64(1-i) || info.Skipped.NotUTF8 != 0 {
			t.Errorf("source %d: %+v, the set holds %d and %d tokens of it", i, info, train[i], valid[i])
		}
	}
	// What is dropped of the repetition is what was held out of the first copy.
	if held := valid[0] - int64(strings.Count(strings.Join(textsOf(t, s, Valid, narrow), "|"),
		"|")); m.Sources[0].Repeated == 0 || m.Sources[0].Repeated > held || m.Sources[1].Repeated != 0 {
		t.Errorf("%d tokens repeat the %d that are held out", m.Sources[0].Repeated, held)
	}
	if m.Docs == 0 || m.Tokens != valid[0]+valid[1]+train[0]+train[1] || m.HeldOut != 0.1 || m.HeldOutBy != ByPieces ||
		m.Vocab != 257 || *m.EOS != 256 {
		t.Errorf("%+v", m)
	}
}

// closing is an encoder with any end-of-text id.
type closing struct {
	byteEncoder
	id int32
}

func (e closing) EOS() (int32, bool) { return e.id, true }

// Whatever decides a set's content changes its inputs; what does not, does not.
func TestInputs(t *testing.T) {
	a, b := texts{docs: []string{"a"}, id: "a"}, texts{docs: []string{"b"}, id: "b"}
	inputs := func(src []Source, enc Encoder, o BuildOptions) string {
		t.Helper()
		o, err := o.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		m, err := newManifest(src, enc, o)
		if err != nil {
			t.Fatal(err)
		}
		return m.Inputs
	}
	plain := inputs([]Source{a, b}, narrow, BuildOptions{HeldOut: 0.1})
	for name, same := range map[string]string{
		"workers": inputs([]Source{a, b}, narrow, BuildOptions{HeldOut: 0.1, Workers: 7}),
		"the default": inputs([]Source{a, b}, narrow,
			BuildOptions{HeldOut: 0.1, HeldOutBy: ByPieces, ShardTokens: 1 << 26}),
		"a tokenizer kept": inputs([]Source{a, b}, narrow, BuildOptions{HeldOut: 0.1, Tokenizer: []byte("{}")}),
	} {
		if same != plain {
			t.Errorf("%s: other inputs", name)
		}
	}
	seen := map[string]string{plain: "plain"}
	for name, other := range map[string]string{
		"order":     inputs([]Source{b, a}, narrow, BuildOptions{HeldOut: 0.1}),
		"a source":  inputs([]Source{a}, narrow, BuildOptions{HeldOut: 0.1}),
		"twice":     inputs([]Source{a, a}, narrow, BuildOptions{HeldOut: 0.1}),
		"tokenizer": inputs([]Source{a, b}, wide, BuildOptions{HeldOut: 0.1}),
		"held out":  inputs([]Source{a, b}, narrow, BuildOptions{HeldOut: 0.2}),
		"none":      inputs([]Source{a, b}, narrow, BuildOptions{}),
		"documents": inputs([]Source{a, b}, narrow, BuildOptions{HeldOut: 0.1, HeldOutBy: ByDocuments}),
		"shards":    inputs([]Source{a, b}, narrow, BuildOptions{HeldOut: 0.1, ShardTokens: 5}),
		"bound":     inputs([]Source{a, b}, narrow, BuildOptions{HeldOut: 0.1, MaxTokens: 5}),
		"shares": inputs([]Source{a, b}, narrow,
			BuildOptions{HeldOut: 0.1, Shares: []Share{{Weight: 1}, {Weight: 2}}}),
		"other shares": inputs([]Source{a, b}, narrow,
			BuildOptions{HeldOut: 0.1, Shares: []Share{{Weight: 1}, {Weight: 2, Epochs: 1}}}),
	} {
		if was := seen[other]; was != "" {
			t.Errorf("%s has the inputs of %s", name, was)
		}
		seen[other] = name
	}
	if got := inputs([]Source{a, texts{}}, narrow, BuildOptions{}); got != "" {
		t.Errorf("a source without a fingerprint: %q", got)
	}
}

// A set needs a share per source, a vocabulary of int32 and an end of text inside it.
func TestManifestInputsBounds(t *testing.T) {
	a := texts{docs: []string{"a"}, id: "a"}
	two := []Share{{Weight: 1}, {Weight: 2}}
	if _, err := newManifest([]Source{a}, narrow, BuildOptions{Shares: two}); err == nil ||
		!strings.Contains(err.Error(), "2 shares for 1 sources") {
		t.Errorf("%v", err)
	}
	for vocab, good := range map[int]bool{0: false, 1: true, math.MaxInt32: true, math.MaxInt32 + 1: false} {
		if _, err := newManifest([]Source{a}, byteEncoder{vocab: vocab, eos: -1},
			BuildOptions{}); (err == nil) != good {
			t.Errorf("a vocabulary of %d: %v", vocab, err)
		}
	}
	for eos, good := range map[int32]bool{-1: false, 0: true, 255: true, 256: false} {
		m, err := newManifest([]Source{a}, closing{byteEncoder{vocab: 256}, eos}, BuildOptions{})
		if (err == nil) != good || err == nil && (m.EOS == nil || *m.EOS != eos) {
			t.Errorf("end of text %d of a vocabulary of 256: %v, %v", eos, m, err)
		}
	}
}

// Rows that a share allows: passes times tokens, over the length of a row, whole rows only.
func TestShareRows(t *testing.T) {
	for _, c := range []struct {
		epochs    float64
		tokens, t uint64
		want      uint64
	}{
		{1, 1000, 16, 62}, {2.5, 1000, 16, 156}, {0.5, 32, 16, 1}, {0.49, 32, 16, 0}, {0, 1000, 16, math.MaxUint64},
		{1, 1 << 48, 1, math.MaxUint64}, {1, 1<<48 - 1, 1, 1<<48 - 1}, {3, 16, 16, 3},
	} {
		if got := (Share{Epochs: c.epochs}).rows(c.tokens, c.t); got != c.want {
			t.Errorf("%g epochs of %d tokens in rows of %d: %d, want %d", c.epochs, c.tokens, c.t, got, c.want)
		}
	}
	for want, shares := range map[string][]Share{
		"all sources together, without weights": nil, "weights 1": {{Weight: 1}},
		"weights 0.5, 2 (at most 1.5 epochs)": {{Weight: 0.5}, {Weight: 2, Epochs: 1.5}},
	} {
		if got := shareList(shares); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Both sides of every bound of the generator's options, and what each option sets.
func TestSyntheticOptions(t *testing.T) {
	last := len(cities)
	for key, b := range map[string][2]int{"docs": {1, 1 << 30}, "len": {128, 1 << 24}, "needles": {1, last},
		"queries": {1, last}, "asks": {1, last}, "digits": {2, 9}} {
		for _, v := range []int{b[0] - 1, b[0], b[1], b[1] + 1} {
			spec := fmt.Sprintf("%s=%d", key, v)
			s, err := parseSynthetic(spec)
			good := v >= b[0] && v <= b[1]
			if (err == nil) != good {
				t.Errorf("%s: %v", spec, err)
			}
			if good && !strings.Contains(s.Name()+",", ","+spec+",") {
				t.Errorf("%s gives %s", spec, s.Name())
			}
			if want := fmt.Sprintf("%q: want a whole number from %d to %d", spec, b[0], b[1]); !good &&
				!strings.HasSuffix(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
	for spec, want := range map[string]string{
		"mix=kv": "synthetic:seed=1,docs=1000,len=1024,mix=kv:1,needles=4,queries=2,asks=4,digits=2",
		"": "synthetic:seed=1,docs=1000,len=1024,mix=prose:3+facts:1+needle:3+kv:1+shots:1+arith:1,needles=4," +
			"queries=2,asks=4,digits=2",

		"seed=0,mix=kv:1000000+prose:2": "synthetic:seed=0,docs=1000,len=1024,mix=prose:2+kv:1000000,needles=4," +
			"queries=2,asks=4,digits=2",
	} {
		s, err := parseSynthetic(spec)
		if err != nil || s.Name() != want {
			t.Errorf("%q: %v %v, want %s", spec, s, err, want)
		}
		if print, err := s.Fingerprint(); err != nil || print != "v1 "+want {
			t.Errorf("%q: fingerprint %q", spec, print)
		}
	}
	for _, spec := range []string{"mix=", "mix=poem", "mix=kv:0", "mix=kv:1000001", "mix=kv:x", "mix=kv:",
		"mix=kv,prose", "seed=-1", "seed=", "docs", "length=5", "mix=prose, facts"} {
		if _, err := parseSynthetic(spec); err == nil || !strings.HasPrefix(err.Error(), "data: open: synthetic: ") {
			t.Errorf("%q: %v", spec, err)
		}
	}
}

// Of many files the first hundred are looked at: none with text among them is an error only if there are no others.
func TestProbe(t *testing.T) {
	dir := t.TempDir()
	for i := range 100 {
		write(t, filepath.Join(dir, fmt.Sprintf("%03d.txt", i)), []byte(" \n"))
	}
	if _, err := Open(dir); err == nil ||
		!strings.Contains(err.Error(), "holds no text: every document is empty or not UTF-8") {
		t.Errorf("a hundred empty files: %v", err)
	}
	write(t, filepath.Join(dir, "zzz.txt"), []byte("text"))
	if got, from := read(t, open(t, dir)); !slices.Equal(got, []string{"text"}) ||
		!slices.Equal(from, []string{"zzz.txt"}) {
		t.Errorf("%q of %q", got, from)
	}
	write(t, filepath.Join(dir, "zzz.txt"), []byte("binary\x00")) // not among the first: an error when it is read
	if _, err := Open(dir); err != nil {
		t.Errorf("the file after a hundred was looked at: %v", err)
	}
	for _, at := range []string{"000.txt", "050.txt", "099.txt"} { // whichever of them has text
		dir := t.TempDir()
		for _, name := range []string{"000.txt", "050.txt", "099.txt"} {
			write(t, filepath.Join(dir, name), []byte(" \n"))
		}
		write(t, filepath.Join(dir, at), []byte(" "+textBreak+"text"+textBreak+" "))
		if got, from := read(t, open(t, dir)); !slices.Equal(got, []string{"text"}) ||
			!slices.Equal(from, []string{at}) {
			t.Errorf("%q of %q, want the text of %s", got, from, at)
		}
	}
}
