package model

import (
	"errors"
	"testing"

	"antiphase/device/ref"
	"antiphase/layer"
)

// Each refusal states the numbers that are wrong, in their order, and what would be right.
func TestRefusalsSayWhat(t *testing.T) {
	c := configs(t)["diff/base"] // context 16, vocabulary 19, two layers, four heads
	m := newModel(t, ref.New(), c)
	defer m.Free()
	k := m.NewCache(6, 3, 2, 4) // 12 positions
	defer k.Free()
	for i := range 4 {
		k.Assign(1, i, int32(i))
	}
	one := Rows{IDs: []int32{1}, Slots: []int32{1}, Pos: []int32{0}, Want: []int32{0}}
	change := func(f func(r *Rows)) error {
		r := Rows{IDs: []int32{1, 2}, Slots: []int32{1, 1}, Pos: []int32{0, 1}, Want: []int32{1}}
		f(&r)
		return k.Run(r)
	}
	for want, err := range map[string]error{
		"model: batch of 2×3 has 4 ids, 5 targets, 1 starts": m.Score(&Batch{B: 2, T: 3, IDs: make([]int32, 4),
			Targets: make([]int32, 5), Starts: make([]int32, 1)}),
		"model: sequence of 17 tokens, context is 16": m.Score(&Batch{B: 1,
			T: 17, IDs: make([]int32, 17), Targets: make([]int32, 17)}),
		"model: id 19 at row 1 is outside the vocabulary of 19": m.Score(&Batch{B: 1,
			T: 2, IDs: []int32{18, 19}, Targets: []int32{0, 0}}),
		"model: target -2 at row 1 is outside the vocabulary of 19": m.Score(&Batch{B: 1,
			T: 2, IDs: []int32{18, 0}, Targets: []int32{-1, -2}}),
		"model: the batch has no targets to score": m.Score(&Batch{B: 1,
			T: 1, IDs: []int32{1}}),
		"model: 3 sequences in micro-batches of 2": m.Put(&Feed{},
			&Batch{B: 3, T: 1, IDs: make([]int32, 3)}, 2),
		"model: step of 2 ids, 1 slots, 2 positions, 1 wanted": change(func(r *Rows) { r.Slots = r.Slots[:1] }),
		"model: row 1 is position 12 of slot 1; there are 12 positions (context 16) in 2 slots": change(
			func(r *Rows) { r.Pos[1] = 12 }),
		"model: row 0 is position 0 of slot 2; there are 12 positions (context 16) in 2 slots": change(
			func(r *Rows) { r.Slots[0] = 2 }),
		"model: wanted row 2 (entry 0) of 2 rows":               change(func(r *Rows) { r.Want[0] = 2 }),
		"model: id -1 at row 1 is outside the vocabulary of 19": change(func(r *Rows) { r.IDs[1] = -1 }),
		"model: room for 5 logits, the step has 1 rows of vocabulary 19": errors.Join(k.Run(one),
			k.ReadLogits(make([]float32, 5))),
		"model: room for 2 tokens, the step has 1": errors.Join(k.Run(one),
			k.ReadBest(make([]int32, 2))),
		"model: 1 words that no rank sends": m.Obey([]int32{0}),
		"model: intervention: layer 2, counted from 0: there are 2": m.Intervene(layer.Intervention{Layers: []int{1,
			2}}),
		"model: intervention: head 4, counted from 0: there are 4": m.Intervene(layer.Intervention{Heads: []int{4}}),
		"model: bits: is 17, must be 0 (exact) or 2 to 16":         m.SetLowbit(layer.Lowbit{Keys: 17}),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
