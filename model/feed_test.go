package model

import (
	"slices"
	"testing"

	"antiphase/device/ref"
)

// Positions of a batch are laid anew where rows over a cache, or a batch of another shape, have taken their place.
func TestPositionsAfterOtherRows(t *testing.T) {
	for name, c := range configs(t) {
		m := newModel(t, ref.New(), c)
		cache := m.NewCache(4, 4, 1, 2)
		cache.Assign(0, 0, 0)
		other := newModel(t, ref.New(), c)
		score := func(m *Model, b, n int) []float32 {
			x := Batch{B: b, T: n, IDs: make([]int32, b*n), Targets: make([]int32, b*n)}
			for i := range x.IDs {
				x.IDs[i] = int32(i % c.Vocab)
			}
			if err := m.Score(&x); err != nil {
				t.Fatal(err)
			}
			y := make([]float32, b*n)
			m.Losses(y)
			return y
		}
		want, long := score(m, 2, 4), score(other, 1, 8)
		if !slices.Equal(score(m, 1, 8), long) || !slices.Equal(score(other, 2, 4), want) ||
			!slices.Equal(score(m, 2, 4), want) {
			t.Errorf("%s: other losses after a batch of another shape", name)
		}
		for _, pos := range [][]int32{{0, 1}, {2, 3}} { // two rows of which one is wanted take the model's own feed
			if err := cache.Step(Rows{IDs: []int32{1, 2}, Slots: []int32{0, 0}, Pos: pos, Want: []int32{1}},
				make([]float32, c.Vocab)); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(score(m, 2, 4), want) {
			t.Errorf("%s: other losses after rows over a cache", name)
		}
		cache.Free()
		m.Free()
		other.Free()
	}
}
