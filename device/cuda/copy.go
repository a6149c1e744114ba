package cuda

import (
	"fmt"

	"antiphase/device"
	"antiphase/tensor"
)

var (
	copyBF16F32 = kernelOf("copy", "copy_bf16_f32")
	copyF32BF16 = kernelOf("copy", "copy_f32_bf16")
)

// Copy: dst = src, converted.
func (d *elementwise) Copy(dst, src tensor.Tensor) {
	device.CheckCopy(dst, src)
	mustFloats("Copy", dst, src)
	if dst.Type == src.Type {
		to, from := block(dst), block(src)
		if to.Rows != from.Rows { // one of them has gaps: copy row by row
			to.Rows, to.Width = dst.Rows, dst.Cols*dst.Type.Size()
			from.Rows, from.Width = to.Rows, to.Width
			to.Pitch, from.Pitch = dst.Ld*dst.Type.Size(), src.Ld*src.Type.Size()
		}
		d.fail(d.now().Move(to, from))
		return
	}
	k := copyBF16F32
	if dst.Type == tensor.F32 {
		k = copyF32BF16
	}
	d.pair(k, dst, src)
}

// pair launches an elementwise kernel of two tensors: (dst, ldd, src, lds, rows, cols, vec).
func (d *elementwise) pair(k kernel, dst, src tensor.Tensor) {
	if dst.Len() == 0 {
		return
	}
	flat(&dst, &src)
	grid, block := each(dst.Rows, dst.Cols)
	d.launch(k, grid, block, 0, ptr(dst), i32(dst.Ld), ptr(src), i32(src.Ld), i32(dst.Rows), i32(dst.Cols),
		flag(vec(dst, src)))
}

// mustFloats panics for the oracle's dtype, which no kernel supports.
func mustFloats(op string, dst, src tensor.Tensor) {
	if dst.Type == tensor.F64 || src.Type == tensor.F64 {
		panic(fmt.Sprintf("cuda: %s wants BF16 or F32; got dst %v, src %v", op, dst, src))
	}
}
