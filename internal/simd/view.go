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

// bf16 is element i, rounded.
func (v *View) bf16(i int) uint16 {
	if v.H != nil {
		return v.H[i]
	}
	return bf16Of(v.X[i])
}

// Halves reinterprets floats as twice as many bfloat16 values.
func Halves(x []float32) []uint16 {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*uint16)(unsafe.Pointer(&x[0])), 2*len(x))
}
