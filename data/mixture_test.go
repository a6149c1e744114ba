package data

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
)

// mixedSet has one source per letter, of this many tokens each.
func mixedSet(t *testing.T, shares []Share, tokens ...int) *Set {
	t.Helper()
	var src []Source
	for i, n := range tokens {
		s := texts{id: fmt.Sprint(i, n)}
		for ; n > 0; n -= 100 {
			s.docs = append(s.docs, strings.Repeat(string(rune('a'+i)), min(n, 100)-1))
		}
		src = append(src, s)
	}
	dir := filepath.Join(t.TempDir(), "set")
	if _, err := Build(context.Background(), dir, src, narrow,
		BuildOptions{Shares: shares, ShardTokens: 1000}); err != nil {
		t.Fatal(err)
	}
	s := must(OpenSet(dir, true))
	t.Cleanup(func() { s.Close() })
	return s
}

func mix(t *testing.T, s *Set) *Split {
	t.Helper()
	sp, err := split(t, s, Train).Mix(s.Manifest.Shares())
	if err != nil {
		t.Fatal(err)
	}
	return sp
}

// letterOf is the source of a row; end-of-text ids aside it must be the only one.
func letterOf(t *testing.T, inputs []int32) int {
	t.Helper()
	found := -1
	for _, id := range inputs {
		if id == narrow.eos {
			continue
		}
		if i := int(id - 'a'); found < 0 {
			found = i
		} else if i != found {
			t.Fatal("a row of two sources")
		}
	}
	return found
}

// Over 1,000 batches each source has its share of the rows to within 1 %, and in every stretch of them to within a row
// or two.
func TestMixtureShares(t *testing.T) {
	shares := []Share{{Weight: 0.6}, {Weight: 0.25}, {Weight: 0.1}, {Weight: 0.05}}
	s := mixedSet(t, shares, 700, 3000, 10000, 555)
	l := NewLoader(mix(t, s), 8, 16, 3)
	var drawn [4]int
	rows := 0
	for range 1000 {
		b := next(l)
		for r := range 8 {
			drawn[letterOf(t, b.inputs[r*16:(r+1)*16])]++
			rows++
		}
		for i, n := range drawn {
			if off := float64(n) - shares[i].Weight*float64(rows); !(math.Abs(off) <= 2) {
				t.Fatalf("after %d rows source %d is %.1f rows off its share", rows, i, off)
			}
		}
	}
	for i, n := range drawn {
		if got := float64(n) / float64(rows); !(math.Abs(got/shares[i].Weight-1) <= 0.01) {
			t.Errorf("source %d has %.4f of the rows, want %g", i, got, shares[i].Weight)
		}
	}
	for i, e := range l.Epochs(nil) {
		if want := float64(drawn[i]) * 16 / float64(s.Manifest.Sources[i].Tokens); !(math.Abs(e-want) <= 1e-9) {
			t.Errorf("source %d: %g epochs, want %g", i, e, want)
		}
	}
}

// A source that has reached its epochs leaves the draw, the others continue in their proportion, and nothing is taken
// twice within an epoch.
func TestMixtureEpochs(t *testing.T) {
	const T = 16
	shares := []Share{{Weight: 5, Epochs: 1}, {Weight: 4, Epochs: 2.5}, {Weight: 1, Epochs: 3}}
	s := mixedSet(t, shares, 800, 1000, 5000)
	l := NewLoader(mix(t, s), 1, T, 3)
	limit := []int{800 / T, 2500 / T, 15000 / T}
	if got := l.Left(); got != uint64(limit[0]+limit[1]+limit[2]) {
		t.Fatalf("%d rows in all, want %v", got, limit)
	}
	var drawn [3]int
	var after [3]int // drawn since the first source ended
	for l.Left() > 0 {
		i := letterOf(t, next(l).inputs)
		drawn[i]++
		if drawn[0] == limit[0] && drawn[1] < limit[1] {
			after[i]++
		}
	}
	if drawn != [3]int(limit) {
		t.Errorf("%v rows, want %v", drawn, limit)
	}
	if off := float64(after[1]) - 4*float64(after[2]); !(math.Abs(off) <= 8) {
		t.Errorf("after the first source ended the others gave %d and %d rows, want 4 to 1", after[1], after[2])
	}
	defer func() {
		if recover() == nil {
			t.Error("a row more than there are")
		}
	}()
	next(l)
}

func TestMixtureResumes(t *testing.T) {
	s := mixedSet(t, []Share{{Weight: 5, Epochs: 1}, {Weight: 4}, {Weight: 1, Epochs: 2}}, 800, 300, 500)
	resumes(t, mix(t, s), 3, 16, 7, 60)
	p := prefetch(t, NewLoader(mix(t, mixedSet(t, []Share{{Weight: 1, Epochs: 1}}, 100)), 2, 16, 1))
	for range 3 {
		nextOf(t, p)
	}
	if err := p.Next(nil, nil, nil); err == nil || !strings.Contains(err.Error(), "epochs") {
		t.Errorf("a batch more than the epochs allow: %v", err)
	}
}

func TestMixRefuses(t *testing.T) {
	together := split(t, buildSet(t, randomTexts(5, 30, 1), narrow, BuildOptions{}), Train)
	mixed := split(t, mixedSet(t, []Share{{Weight: 1}, {Weight: 1}}, 200, 300), Train)
	for want, tc := range map[string]struct {
		sp     *Split
		shares []Share
	}{
		"common shards": {together, []Share{{Weight: 1}}},
		"2 sources":     {mixed, []Share{{Weight: 1}}},
		"weight 0":      {mixed, []Share{{Weight: 1}, {}}},
		"weight -1":     {mixed, []Share{{Weight: 1}, {Weight: -1}}},
		"-2 epochs":     {mixed, []Share{{Weight: 1}, {Weight: 1, Epochs: -2}}},
		"weight NaN":    {mixed, []Share{{Weight: 1}, {Weight: math.NaN()}}},
	} {
		if _, err := tc.sp.Mix(tc.shares); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	// The bound of the set was reached before the second source.
	dir := filepath.Join(t.TempDir(), "set")
	shares := []Share{{Weight: 1}, {Weight: 1}}
	if _, err := Build(t.Context(), dir, []Source{tens(7), texts{docs: []string{"b"}, id: "b"}}, narrow,
		BuildOptions{MaxTokens: 20, Shares: shares}); err != nil {
		t.Fatal(err)
	}
	s := must(OpenSet(dir, true))
	defer s.Close()
	if _, err := split(t, s, Train).Mix(shares); err == nil ||
		err.Error() != "data: source texts: gave no text to train on" {
		t.Errorf("a source without text: %v", err)
	}
}

// Rows are without bound if any source is, however many were taken; a position has at most the rows that a source
// gives.
func TestRowsThatAreLeft(t *testing.T) {
	single := NewLoader(split(t, buildSet(t, tens(9), narrow, BuildOptions{}), Train), 2, 8, 1)
	free := NewLoader(mix(t, mixedSet(t, []Share{{Weight: 1, Epochs: 1}, {Weight: 1}, {Weight: 2}}, 160, 300, 300)), 2,
		8, 1)
	for range 5 {
		for name, l := range map[string]*Loader{"one source": single, "bounds of some": free} {
			if next(l); l.Left() != math.MaxUint64 {
				t.Errorf("%s: %d rows are left", name, l.Left())
			}
		}
	}
	if single.Skip(1 << 40); single.Position().Rows[0] != 1<<40+10 {
		t.Errorf("%d rows after 2^40 and ten", single.Position().Rows[0])
	}
	bound := NewLoader(mix(t, mixedSet(t, []Share{{Weight: 1, Epochs: 1}, {Weight: 1, Epochs: 2}}, 160, 80)), 2, 8, 1)
	for _, rows := range [][2]uint64{{0, 0}, {20, 20}, {21, 20}, {20, 21}, {0, 20}} {
		p := bound.Position()
		p.Rows = rows[:]
		if err := bound.Seek(p); (err == nil) != (rows[0] <= 20 && rows[1] <= 20) || err == nil &&
			bound.Left() != 40-rows[0]-rows[1] {
			t.Errorf("%v rows: %v, then %d are left", rows, err, bound.Left())
		}
	}
}

// Weights do not change the tokens of a set, but a set whose sources lie apart is not the one in which they are one.
func TestSharesAndTheHash(t *testing.T) {
	a := mixedSet(t, []Share{{Weight: 1}, {Weight: 2}}, 300, 500).Manifest
	b := mixedSet(t, []Share{{Weight: 3}, {Weight: 2, Epochs: 2}}, 300, 500).Manifest
	c := mixedSet(t, nil, 300, 500).Manifest
	if a.Hash != b.Hash || a.Hash == c.Hash || a.Inputs == b.Inputs {
		t.Errorf("hashes %.8s %.8s %.8s, inputs %.8s %.8s", a.Hash, b.Hash, c.Hash, a.Inputs, b.Inputs)
	}
	if got := b.Shares(); len(got) != 2 || got[1] != (Share{2, 2}) || c.Shares() != nil {
		t.Errorf("shares %v and %v", got, c.Shares())
	}
}
