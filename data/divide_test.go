package data

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// numbered is a text of n words of seven bytes, each different.
func numbered(from, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%06d ", from+i)
	}
	return b.String()
}

// A sample of every source is held out, of about the share asked for, spread evenly; nothing is lost and nothing is in
// both.
func TestPiecesAreHeldOut(t *testing.T) {
	const share = 0.05
	docs := func(n, words, from int) (out []string) {
		for i := range n {
			out = append(out, numbered(from+i*words, words))
		}
		return out
	}
	sources := []texts{
		{docs: docs(1, 30000, 0)},     // one long document
		{docs: docs(7, 3000, 100000)}, // several
		{docs: docs(2000, 10, 200000)},
		{docs: docs(1, 100, 300000)}, // small, one document
		{docs: docs(5, 4, 310000)},   // smaller
		{docs: docs(1, 2, 320000)},   // too small for two
	}
	for _, enc := range []byteEncoder{narrow, noEOS} {
		var src []Source
		var all strings.Builder
		for _, s := range sources {
			src = append(src, s)
			all.WriteString(strings.Join(s.docs, ""))
		}
		dir := filepath.Join(t.TempDir(), "set")
		m, err := Build(context.Background(), dir, src, enc, BuildOptions{HeldOut: share, Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		s := must(OpenSet(dir, true))
		defer s.Close()
		train, valid := textsOf(t, s, Train, enc), textsOf(t, s, Valid, enc)
		trained := strings.Join(train, "|")
		for _, v := range valid {
			if strings.Contains(trained, v) {
				t.Fatalf("held-out text of %d bytes is in training too", len(v))
			}
			if !strings.Contains(all.String(), v) {
				t.Fatalf("held-out text is not of the source: %q", v)
			}
		}
		if got := len(strings.Join(train, "")) + len(strings.Join(valid, "")); got != all.Len() {
			t.Errorf("%d bytes in both splits, the sources have %d", got, all.Len())
		}
		for i, info := range m.Sources {
			got := float64(info.HeldOut) / float64(info.Tokens)
			switch {
			case i < 3 && !(got >= 0.8*share && got <= 1.25*share):
				t.Errorf("source %d: %.3f of it is held out, want about %g", i, got, share)
			case i >= 3 && i < 5 && (info.HeldOut == 0 || got > 0.3):
				t.Errorf("source %d, small: %.3f of it is held out", i, got)
			case i == 5 && info.HeldOut != 0:
				t.Errorf("source %d: %d of %d tokens are held out, and it has nothing to spare", i,
					info.HeldOut, info.Tokens)
			}
		}
		spread(t, valid)
	}
}

// spread checks that the pieces of the first source, words 0 to 29,999, lie in every part of it.
func spread(t *testing.T, valid []string) {
	t.Helper()
	var fifth [5]int
	for _, v := range valid {
		at := 30000
		if i := strings.IndexByte(v, ' '); i >= 0 && i+7 <= len(v) {
			fmt.Sscanf(v[i+1:i+7], "%d", &at)
		}
		if at < 30000 {
			fifth[at/6000]++
		}
	}
	if i := slices.Index(fifth[:], 0); i >= 0 {
		t.Errorf("nothing of fifth %d of the long document is held out: %v", i, fifth)
	}
}

// Repetitions of what is held out are in neither split, however many, and what came before in training is not held out
// later.
func TestRepetitionsAreNotHeldOut(t *testing.T) {
	for copies := 2; copies <= 4; copies++ {
		src := randomTexts(500, 60, 9)
		once := src.docs
		for range copies - 1 {
			src.docs = append(src.docs, once...)
		}
		s := buildSet(t, src, narrow, BuildOptions{HeldOut: 0.2})
		train, valid := textsOf(t, s, Train, narrow), textsOf(t, s, Valid, narrow)
		tokens := 0
		for _, v := range valid {
			if tokens += len(v); slices.Contains(train, v) {
				t.Fatalf("%q is in both splits", v)
			}
		}
		if info := s.Manifest.Sources[0]; info.Repeated != int64((copies-1)*tokens) || len(valid) < 80 ||
			len(train)+copies*len(valid) != copies*500 {
			t.Errorf("%d copies: %d held out, %d in training, %d tokens left out", copies, len(valid), len(train),
				info.Repeated)
		}
	}
}

// A single document that repeats one line has nothing to hold out, and trains.
func TestNothingToHoldOut(t *testing.T) {
	for _, text := range []string{"x", strings.Repeat("the same line again\n", 4)} {
		s := buildSet(t, texts{docs: []string{text}}, narrow, BuildOptions{HeldOut: 0.02})
		if len(textsOf(t, s, Train, narrow)) == 0 {
			t.Errorf("no training text of %q", text)
		}
	}
}
