package cuda

import (
	"antiphase/internal/cu"
	"antiphase/tensor"
)

// vec reports whether 16-byte accesses to 8 elements (bf16) or twice 4 (fp32) are aligned in all rows of all tensors.
func vec(all ...tensor.Tensor) bool {
	for _, t := range all {
		if t.Buf != nil && ((t.Buf.Addr+uintptr(t.Off))%16 != 0 || t.Rows > 1 && t.Ld*t.Type.Size()%16 != 0) {
			return false
		}
	}
	return true
}

// block is t as a rectangle of bytes.
func block(t tensor.Tensor) cu.Block {
	size := t.Type.Size()
	b := cu.Block{Addr: t.Buf.Addr + uintptr(t.Off), Rows: t.Rows, Width: t.Cols * size, Pitch: t.Ld * size}
	if t.Dense() {
		b.Width *= b.Rows
		b.Rows, b.Pitch = 1, b.Width
	}
	return b
}

// flat views dense tensors as one row each; others are unchanged.
func flat(all ...*tensor.Tensor) {
	for _, t := range all {
		if t.Buf != nil && !t.Dense() {
			return
		}
	}
	for _, t := range all {
		t.Cols *= t.Rows
		t.Rows, t.Ld = 1, t.Cols
	}
}
