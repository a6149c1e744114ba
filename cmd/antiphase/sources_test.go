package main

import (
	"math"
	"testing"
)

// The dry run says what a run draws: a source that reaches its epochs leaves the rest of the rows to the others, by
// their weights, as the loader does.
func TestDrawn(t *testing.T) {
	for _, c := range []struct {
		name        string
		list        []sourceRow // Share holds the weight's
		want        float64
		share, full []float64
		lacks       float64
	}{
		{"no bound", []sourceRow{{Tokens: 100, Share: 0.75}, {Tokens: 100, Share: 0.25}}, 400, []float64{0.75, 0.25},
			[]float64{3, 1}, 0},
		{"bound not met", []sourceRow{{Tokens: 100, Share: 0.5, Bound: 2}, {Tokens: 100, Share: 0.5}}, 200,
			[]float64{0.5, 0.5}, []float64{1, 1}, 0},
		{"one ends", []sourceRow{{Tokens: 100, Share: 0.5, Bound: 1}, {Tokens: 100, Share: 0.5}}, 400,
			[]float64{0.25, 0.75}, []float64{1, 3}, 0},
		{"one ends, two go on", []sourceRow{{Tokens: 100, Share: 0.5, Bound: 1}, {Tokens: 300, Share: 0.375},
			{Tokens: 100, Share: 0.125}}, 500, []float64{0.2, 0.6, 0.2}, []float64{1, 1, 1}, 0},
		{"one after the other ends", []sourceRow{{Tokens: 100, Share: 0.5, Bound: 1},
			{Tokens: 200, Share: 0.25, Bound: 1}, {Tokens: 100, Share: 0.25}}, 1000, []float64{0.1, 0.2, 0.7},
			[]float64{1, 1, 7}, 0},
		{"all end", []sourceRow{{Tokens: 100, Share: 0.5, Bound: 1}, {Tokens: 100, Share: 0.5, Bound: 2}}, 400,
			[]float64{1. / 3, 2. / 3}, []float64{1, 2}, 100},
	} {
		lacks := drawn(c.list, c.want)
		if !(math.Abs(lacks-c.lacks) <= 1e-9) {
			t.Errorf("%s: lacks %g tokens, want %g", c.name, lacks, c.lacks)
		}
		for i, s := range c.list {
			if !(math.Abs(s.Share-c.share[i]) <= 1e-9) || !(math.Abs(s.Epochs-c.full[i]) <= 1e-9) {
				t.Errorf("%s: source %d: share %g, %g epochs, want %g and %g", c.name, i, s.Share, s.Epochs,
					c.share[i], c.full[i])
			}
		}
	}
}
