package simd

import "unsafe"

// View is a matrix in memory, its rows Ld elements apart: float32 in X, or bfloat16 in H.
type View struct {
	X  []float32
	H  []uint16
	Ld int
}

// From is the view from element (r,c) on.
func (v View) From(r, c int) View {
	if v.H != nil {
		return View{H: v.H[r*v.Ld+c:], Ld: v.Ld}
	}
	return View{X: v.X[r*v.Ld+c:], Ld: v.Ld}
}

// size is the number of elements in memory.
func (v *View) size() int { return max(len(v.X), len(v.H)) }

// halves are n elements from element i on: the view's own, or rounded ones in buf.
func (v *View) halves(i, n int, buf *[PanelBF16]uint16) []uint16 {
	if v.H != nil {
		return v.H[i:][:n]
	}
	out := buf[:n]
	for j, x := range v.X[i:][:n] {
		out[j] = bf16Of(x)
	}
	return out
}

// Halves reinterprets floats as twice as many bfloat16 values.
func Halves(x []float32) []uint16 {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*uint16)(unsafe.Pointer(&x[0])), 2*len(x))
}
