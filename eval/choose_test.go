package eval

import (
	"context"
	"math"
	"slices"
	"testing"
)

func TestTrie(t *testing.T) {
	root := newTrie()
	for i, ids := range [][]int32{{1, 2, 3}, {1, 2, 4}, {5}, {5, 6}, {1, 2, 3}} {
		root.add(ids, i)
	}
	logits := make([]float32, 8)
	logits[5], logits[1] = 1, 2
	logits[7] = 9 // not allowed
	id, n := root.step(logits)
	if id != 1 || n.leaves != 2 {
		t.Fatalf("took %d to %d options", id, n.leaves)
	}
	logits[4] = 3
	if _, n = n.step(logits); n.leaves != 2 { // only 2 follows
		t.Fatal("1 is followed by 2 alone")
	}
	if _, n = n.step(logits); n.leaves != 1 || n.option != 1 {
		t.Errorf("took option %d of %d", n.option, n.leaves)
	}
	logits[5] = 9
	if _, n = root.step(logits); n.leaves != 2 {
		t.Errorf("5 has %d options", n.leaves)
	}
	if _, n = n.step(logits); n.option != 3 || n.leaves != 1 {
		t.Errorf("an option inside another: %d of %d", n.option, n.leaves)
	}
}

// Under constraint the model takes, byte by byte, the most likely one that some option allows.
func TestChoose(t *testing.T) {
	onArchs(t, 96, func(t *testing.T, s *Subject) {
		options := []string{" apple", " apricot", " bear", " beard", " x"}
		var reqs []Choice
		for _, p := range []string{"Label:", "Text: some\nLabel:", "Text: other\nLabel:", ""} {
			reqs = append(reqs, Choice{p, options})
		}
		got, err := s.Choose(context.Background(), reqs)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range reqs {
			text, left := r.Prompt, slices.Clone(options)
			for n := 0; len(left) > 1; n++ {
				ids := s.Encode(text)
				lp, best, at := logSoftmax(t, s, ids), math.Inf(-1), byte(0)
				for _, o := range left {
					if n < len(o) && lp(len(ids)-1, int32(o[n])) > best {
						best, at = lp(len(ids)-1, int32(o[n])), o[n]
					}
				}
				left = slices.DeleteFunc(left, func(o string) bool { return n >= len(o) || o[n] != at })
				text += string(at)
			}
			if options[got[i]] != left[0] {
				t.Errorf("%q: chose %q, want %q", r.Prompt, options[got[i]], left[0])
			}
		}
	})
}

func TestChooseFromFreeText(t *testing.T) {
	options := []string{" bear", " beard", " ox"}
	for text, want := range map[string]int{" bear": 0, "Beard and more": 1, "ox.": 2, "an ox": -1, "": -1, "oxen": -1, "beards": -1} {
		if got := BeginsWith(text, options); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
