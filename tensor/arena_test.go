package tensor

import "testing"

// heap is host memory that counts what it gave and what came back.
type heap struct{ given, back int }

func (h *heap) Alloc(bytes int) *Buffer { h.given++; return buffer(bytes) }
func (h *heap) Free(*Buffer)            { h.back++ }

func TestArenaIsAStack(t *testing.T) {
	h := &heap{}
	a := NewArena(h)
	x := a.New(F32, 3, 5)
	mark := a.Mark()
	y := a.New(BF16, 7, 1)
	z := a.New(F64, 2, 2)
	for _, v := range []Tensor{x, y, z} {
		if v.Off%align != 0 || !v.Dense() {
			t.Errorf("%v lies at byte %d, want a multiple of %d", v, v.Off, align)
		}
	}
	if x.Overlaps(y) || y.Overlaps(z) || x.Overlaps(z) {
		t.Error("tensors of one arena overlap")
	}
	if h.given != 1 || x.Buf.Size != 1<<20 {
		t.Errorf("small tensors lie in %d blocks, the first of %d bytes, want one of a mebibyte", h.given, x.Buf.Size)
	}
	if a.Used() != 3*align {
		t.Errorf("three small tensors use %d bytes, want %d", a.Used(), 3*align)
	}
	a.Release(mark)
	if a.Used() != align || a.High() != 3*align {
		t.Errorf("after the release used %d and high %d, want %d and %d", a.Used(), a.High(), align, 3*align)
	}
	if again := a.New(I32, 1, 9); again.Buf != y.Buf || again.Off != y.Off {
		t.Errorf("the next tensor lies at %d, want %d, where the released one lay", again.Off, y.Off)
	}
}

// pass pushes tensors of several blocks' worth, as a forward pass does, and releases them.
func pass(a *Arena, into []Tensor) {
	m := a.Mark()
	for i := range into {
		into[i] = a.New(F32, 100+50*i, 1000)
	}
	a.Release(m)
}

func TestArenaKeepsItsBlocks(t *testing.T) {
	h := &heap{}
	a := NewArena(h)
	first, second := make([]Tensor, 9), make([]Tensor, 9)
	pass(a, first)
	blocks := h.given
	if blocks < 2 {
		t.Errorf("the first pass took %d blocks, want some", blocks)
	}
	for i := range first {
		for j := range i {
			if first[i].Overlaps(first[j]) {
				t.Errorf("tensors %d and %d overlap", j, i)
			}
		}
	}
	if !a.Settle() || h.back != blocks || h.given != blocks+1 {
		t.Errorf("settling gave %d blocks back and took %d, want %d and 1", h.back, h.given-blocks, blocks)
	}
	blocks++
	pass(a, first)
	if size := first[0].Buf.Size; size != a.High() {
		t.Errorf("settled in %d bytes, %d are needed", size, a.High())
	}
	if pass(a, second); a.Settle() {
		t.Error("settled twice")
	}
	for i := range first {
		if first[i] != second[i] {
			t.Errorf("tensor %d moved from byte %d to %d", i, first[i].Off, second[i].Off)
		}
	}
	if n := testing.AllocsPerRun(5, func() { pass(a, second) }); n != 0 || h.given != blocks {
		t.Errorf("a later pass made %v allocations and took %d blocks more", n, h.given-blocks)
	}
	if high := a.High(); high < 9*300*4000 {
		t.Errorf("high is %d, less than the tensors need", high)
	}
	a.Free()
	if h.back != blocks || a.Used() != 0 {
		t.Errorf("%d of %d blocks came back, %d bytes still used", h.back, blocks, a.Used())
	}
	if x := a.New(F32, 1, 1); !x.Ok() || h.given != blocks+1 {
		t.Error("an arena that was freed gives no memory")
	}
}

// A tensor larger than any block gets one of its own, and a later small one must not lie in it.
func TestArenaOfOneLargeTensor(t *testing.T) {
	a := NewArena(&heap{})
	small, large, last := a.New(F32, 1, 1), a.New(F32, 3<<10, 1<<10), a.New(F32, 1, 1)
	if small.Overlaps(large) || large.Overlaps(last) || small.Overlaps(last) {
		t.Error("tensors overlap")
	}
	if len(Host[float32](large)) != large.Len() {
		t.Error("the large tensor's memory is short")
	}
}

func TestArenaPanics(t *testing.T) {
	a := NewArena(&heap{})
	empty := a.Mark()
	a.New(F32, 1, 1)
	high := a.Mark()
	a.Release(empty)
	panics(t, "above its top", func() { a.Release(high) })
	panics(t, "new F32[-1,2]", func() { a.New(F32, -1, 2) })
	if x := a.New(F32, 0, 5); !x.Ok() || x.Len() != 0 {
		t.Errorf("an empty tensor is %v", x)
	}
}
