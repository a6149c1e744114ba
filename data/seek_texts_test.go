package data

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"antiphase/internal/vfs/vfstest"
)

// Every position that a loader refuses, with the numbers it names; after the refusal it stands where it stood.
func TestSeekTexts(t *testing.T) {
	s := buildSet(t, tens(7), narrow, BuildOptions{})
	sp := split(t, s, Train)
	stream, random := NewStream(sp, 2, 8, 3), NewLoader(sp, 2, 8, 3)
	for _, c := range []struct {
		l      *Loader
		change func(p *Position)
		want   string
	}{
		{stream, func(p *Position) { p.Dataset = "0123456789abcdef" }, fmt.Sprintf(
			`position belongs to data set "0123456789ab", this one is %.12q: build the set from the same sources and tokenizer`,
			s.Manifest.Hash)},
		{stream, func(p *Position) { p.Split = Valid }, `position belongs to split "valid", this loader reads "train"`},
		{random, func(p *Position) { p.Seed = 4 }, "position was taken with seed 4, this loader has seed 3"},
		{stream, func(p *Position) { p.Order = OrderRandom },
			"position was taken in random order, this loader reads a stream: set data.order=random"},
		{stream, func(p *Position) { p.Index = 7 }, `position index 7, split "train" has 7 documents`},
		{stream, func(p *Position) { p.Epoch = math.MaxUint64 },
			"position epoch 18446744073709551615 is beyond any run"},
		{stream, func(p *Position) { p.Offset, p.Tokens = 10, 12 }, "position offset 10, its document has 10 tokens"},
		{stream, func(p *Position) { p.Index, p.Offset, p.Tokens = 2, 3, 4 },
			"position says 4 tokens consumed, impossible at document 2, offset 3 of an epoch of 70 tokens"},
		{stream, func(p *Position) { p.Index, p.Offset, p.Tokens = 2, 3, 64 },
			"position says 64 tokens consumed, impossible at document 2, offset 3 of an epoch of 70 tokens"},
		{random, func(p *Position) { p.Order = "" },
			"position was taken in a stream, this loader takes rows in random order: set data.order=stream"},
		{random, func(p *Position) { p.Order = "sorted" },
			`position was taken in "sorted" order, this loader takes rows in random order`},
		{random, func(p *Position) { p.T = 9 },
			"position counts rows of 9 tokens, this loader has rows of 8: keep train.seq_len=9"},
		{random, func(p *Position) { p.Mixture = []Share{{2, 0}, {1, 3}} }, "position belongs to a mixture of " +
			"weights 2, 1 (at most 3 epochs), this one is of all sources together, without weights"},
		{random, func(p *Position) { p.Rows = []uint64{1, 2} },
			"position counts the rows of 2 sources, this mixture has 1"},
		{random, func(p *Position) { p.Rows = []uint64{1 << 60} },
			"position says 1152921504606846976 rows of source all, more than it gives"},
		{random, func(p *Position) { p.Rows = []uint64{1 << 61} },
			"position says 2305843009213693952 rows of source all, more than it gives"},
	} {
		next(c.l)
		p, here := c.l.Position(), c.l.Position()
		c.change(&p)
		if err := c.l.Seek(p); err == nil || err.Error() != "data: "+c.want {
			t.Errorf("%v\nwant %s", err, c.want)
		}
		after := next(c.l)
		if must(0, c.l.Seek(here)); !next(c.l).equal(after) {
			t.Errorf("a refusal moved the loader: %s", c.want)
		}
	}
}

// The last positions that a loader takes.
func TestSeekBounds(t *testing.T) {
	s := buildSet(t, tens(7), narrow, BuildOptions{})
	sp := split(t, s, Train)
	stream, random := NewStream(sp, 2, 8, 3), NewLoader(sp, 2, 8, 3)
	for _, good := range []Position{{Index: 2, Offset: 3, Tokens: 23}, {Index: 2, Offset: 3, Tokens: 5},
		{Index: 2, Offset: 3, Tokens: 63}, {Epoch: 1 << 50}, {Index: 6, Offset: 9, Tokens: 69}} {
		good.Dataset, good.Split, good.Seed = s.Manifest.Hash, Train, 3
		if err := stream.Seek(good); err != nil {
			t.Error(err)
		}
	}
	last := random.Position()
	last.Rows = []uint64{math.MaxInt64 / 8}
	if err := random.Seek(last); err != nil {
		t.Error(err)
	}
}

// A share needs a finite positive weight and a finite number of epochs, or none.
func TestSharesBounds(t *testing.T) {
	for _, c := range []struct {
		s    Share
		good bool
	}{
		{Share{1, 0}, true}, {Share{0.001, 0.5}, true}, {Share{1e300, 1e300}, true}, {Share{0, 0}, false},
		{Share{0, 1}, false}, {Share{-1, 0}, false}, {Share{math.NaN(), 0}, false},
		{Share{math.Inf(1), 0}, false}, {Share{1, -0.1}, false}, {Share{1, math.NaN()}, false},
		{Share{1, math.Inf(1)}, false},
	} {
		err := checkShares([]Share{{1, 1}, c.s})
		want := fmt.Sprintf(
			"a share of weight %g and %g epochs: want a positive weight, and a positive number of epochs or none",
			c.s.Weight, c.s.Epochs)
		if (err == nil) != c.good || err != nil && err.Error() != want {
			t.Errorf("%+v: %v", c.s, err)
		}
	}
	for _, c := range []struct {
		s         Share
		tokens, t uint64
		want      uint64
	}{{Share{1, 2}, 100, 10, 20}, {Share{1, 2}, 104, 10, 20}, {Share{1, 2}, 105, 10, 21}, {Share{1, 0.5}, 100, 30, 1},
		{Share{1, 0}, 100, 10, math.MaxUint64},
		{Share{1, 1 << 48}, 10, 10, math.MaxUint64}, {Share{1, 1<<48 - 1}, 10, 10, 1<<48 - 1}} {
		if got := c.s.rows(c.tokens, c.t); got != c.want {
			t.Errorf("%+v of %d tokens in rows of %d: %d rows, want %d", c.s, c.tokens, c.t, got, c.want)
		}
	}
}

// A file that two sources read is named by the path of the second, also where links lead to it; a source that reads a
// file twice shares it with nobody.
func TestOverlapsByPath(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"a/x.txt", "a/y.txt", "a/z.txt", "b/own.txt"} {
		must(0, os.MkdirAll(filepath.Dir(name), 0o755))
		write(t, name, []byte("text"))
	}
	vfstest.Symlink(t, filepath.Join(dir, "a", "y.txt"), filepath.Join(dir, "b", "link.txt"))
	vfstest.Symlink(t, filepath.Join(dir, "b", "own.txt"), filepath.Join(dir, "b", "own2.txt"))
	const advice = ", so text held out of one may be trained on in the other; name each file once"
	for _, c := range []struct {
		specs []string
		want  []string
	}{
		{[]string{"a", "b"}, []string{"sources a and b both read b/link.txt" + advice}},
		{[]string{"b", "a"}, []string{"sources b and a both read a/y.txt" + advice}},
		{[]string{"b"}, nil},
		{[]string{"a", "./a/"}, []string{"sources a and ./a/ both read a/x.txt and 2 more" + advice}},
		{[]string{"a", "b", "a/y.txt"},
			[]string{"sources a and b both read b/link.txt" + advice,
				"sources a and a/y.txt both read a/y.txt" + advice}},
		{[]string{"synthetic:mix=kv", "a", "synthetic:mix=kv+arith", "synthetic:mix=arith", "b"}, []string{
			"sources synthetic:mix=kv, synthetic:mix=kv+arith and synthetic:mix=arith have the same seed 1 and " +
				"nearly the same documents, so text held out of one is trained on in the other; give each its own " +
				"seed, such as seed=2",
			"sources a and b both read b/link.txt" + advice}},
	} {
		var src []Source
		for _, spec := range c.specs {
			src = append(src, open(t, spec))
		}
		got := Overlaps(c.specs, src)
		for i := range got {
			got[i] = filepath.ToSlash(got[i])
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %q\nwant %q", c.specs, got, c.want)
		}
	}
}
