package device

import (
	"strings"
	"testing"

	"antiphase/tensor"
)

// combination is a call of a check on tensors that change what others must be: it passes or panics as a whole.
type combination struct {
	call func()
	good bool
}

func holdTogether(t *testing.T, all map[string]combination) {
	t.Helper()
	for name, c := range all {
		s := text(c.call)
		if (s == "") != c.good || s != "" && !strings.HasPrefix(s, "device: ") {
			t.Errorf("%s: %q", name, s)
		}
	}
}

func TestElementsTogether(t *testing.T) {
	holdTogether(t, map[string]combination{
		"copy to integers":        {func() { CheckCopy(i32(2, 3), f32(2, 3)) }, false},
		"copy of integers":        {func() { CheckCopy(f32(2, 3), i32(2, 3)) }, false},
		"sum of integers":         {func() { CheckAdd(i32(2, 3), i32(2, 3)) }, false},
		"one head":                {func() { CheckSubtractHeads(a16(6, 5), a16(6, 10), f32(6, 1), 1, bf16) }, true},
		"no heads":                {func() { CheckSubtractHeads(a16(6, 8), a16(6, 16), f32(1, 1), 0, bf16) }, false},
		"heads of no whole width": {func() { CheckSubtractHeads(a16(6, 8), a16(6, 16), f32(6, 3), 3, bf16) }, false},
		"gradient of no heads": {func() {
			CheckSubtractHeadsBackward(a16(6, 16), f32(6, 0), a16(6, 8), a16(6, 16),
				f32(1, 1), 0, bf16)
		}, false},
		"gradient of such heads": {func() {
			CheckSubtractHeadsBackward(a16(6, 16), f32(6, 3), a16(6, 8), a16(6, 16),
				f32(6, 3), 3, bf16)
		}, false},
		"chunks of three":            {func() { CheckChunks(i32(3, 4).Columns(0, 3)) }, false},
		"halves of another length":   {func() { WriteHalf(nil, a16(1, 4), make([]float32, 3)) }, false},
		"halves of an absent tensor": {func() { WriteHalf(nil, none, nil) }, false},
	})
}

func TestClassifierTogether(t *testing.T) {
	class := func(c Classifier) func() {
		c.X, c.W, c.Targets, c.Loss = a16(6, 8), a16(9, 8), i32(1, 6), f32(1, 6)
		return func() { c.Check(bf16) }
	}
	holdTogether(t, map[string]combination{
		"a part":                {class(Classifier{Part: f32(2, 6)}), true},
		"a part with gradients": {class(Classifier{Part: f32(2, 6), DX: a16(6, 8), DW: f32(9, 8)}), false},
		"parts with gradients":  {class(Classifier{Parts: f32(4, 6), DX: a16(6, 8), DW: f32(9, 8)}), true},
		"a gradient alone":      {class(Classifier{DX: a16(6, 8)}), false},
	})
}

func TestNormTogether(t *testing.T) {
	plain, pg := attn(false)
	weighted := *plain
	weighted.Norm.Weight = f32(2, 3) // the norm is off
	off, og := diff(2, f32(1, 1))
	off.Norm.On, off.Raw, off.Rstd = false, none, none
	other := func(change func(a *DiffAttn)) *DiffAttn { a := *off; change(&a); return &a }
	normed, _ := diff(2, f32(1, 1))
	normed.Out = none
	two, _ := diff(2, f32(1, 1))
	two.Norm.Weight = a16(1, 16)
	holdTogether(t, map[string]combination{
		"a weight without a norm": {func() { weighted.CheckBackward(pg, bf16) }, true},
		"no norm":                 {func() { off.Check(bf16) }, true},
		"no norm, backward":       {func() { off.CheckBackward(og, bf16) }, true},
		"no norm, any weight": {func() {
			other(func(a *DiffAttn) { a.Norm.Weight = f32(2, 3) }).CheckBackward(og,
				bf16)
		}, true},
		"a weight, no gradient": {func() { two.CheckBackward(og, bf16) }, false},
		"no norm, Out in Stat": {func() { other(func(a *DiffAttn) { a.Out = f32(6, 64) }).CheckBackward(og, bf16) },
			false},
		"no norm, no Out": {func() { other(func(a *DiffAttn) { a.Out = none }).CheckBackward(og, bf16) },
			false},
		"no norm, but Raw":   {func() { other(func(a *DiffAttn) { a.Raw = a16(6, 64) }).Check(bf16) }, false},
		"a norm without Out": {func() { normed.Check(bf16) }, false},
		"a norm, backward":   {func() { normed.CheckBackward(og, bf16) }, true},
	})
}

func TestCacheBytesTogether(t *testing.T) {
	int8s := Types{Act: tensor.BF16, Stat: tensor.F32, Cache: tensor.I8}
	bytes := func(k, v int) *Cache {
		return &Cache{K: at(tensor.I8, 32, k), V: at(tensor.I8, 32, v), Table: i32(2, 4), PageSize: 1}
	}
	plain, _ := attn(false)
	two, _ := diff(2, f32(1, 1))
	holdTogether(t, map[string]combination{
		"bytes": {func() {
			plain.CheckCached(bytes(CacheCols(tensor.I8, 2, 8), CacheCols(tensor.I8, 2, 16)), i32(1, 6),
				i32(1, 6), int8s)
		}, true},
		"bytes without scales": {func() { plain.CheckCached(bytes(16, 32), i32(1, 6), i32(1, 6), int8s) }, false},
		"bytes of a pair": {func() {
			two.CheckCached(bytes(CacheCols(tensor.I8, 4, 8), CacheCols(tensor.I8, 2, 16)), i32(1, 6), i32(1, 6), int8s)
		}, true},
		"bytes of other heads": {func() {
			two.CheckCached(bytes(CacheCols(tensor.I8, 4, 8), CacheCols(tensor.I8, 16, 2)), i32(1, 6), i32(1, 6), int8s)
		}, false},
		"bytes for bf16": {func() { two.CheckCached(bytes(32, 32), i32(1, 6), i32(1, 6), bf16) }, false},
	})
}

// Masters in halves: of BF16 weights with an I16 master, and only for statistics of F32.
func TestHalvesTogether(t *testing.T) {
	halves := func(stat tensor.DType) *AdamW {
		x := at(stat, 1, 4)
		return &AdamW{W: a16(1, 4), Master: at(tensor.I16, 1, 4), M: x, V: x, G: x, Rate: at(stat, 1, 3),
			GradSq: at(stat, 1, 1)}
	}
	holdTogether(t, map[string]combination{
		"halves of an F64": {func() { halves(tensor.F64).Check(Types{Act: tensor.BF16, Stat: tensor.F64}) },
			false},
		"halves of an F32": {func() { halves(tensor.F32).Check(bf16) }, true},
	})
	for _, c := range []struct {
		w, master tensor.DType
		want      bool
	}{{tensor.BF16, tensor.I16, true}, {tensor.BF16, tensor.F32, false}, {tensor.F32, tensor.I16, false},
		{tensor.BF16, tensor.Invalid, false}} {
		if a := (&AdamW{W: at(c.w, 1, 4), Master: at(c.master, 1, 4)}); a.Split() != c.want {
			t.Errorf("%v and %v are halves: %v", c.w, c.master, !c.want)
		}
	}
}
