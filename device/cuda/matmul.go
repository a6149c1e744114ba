package cuda

import (
	"antiphase/device"
	"antiphase/tensor"
)

// matmulKernels by transposes (a's in bit 0, b's in bit 1) and by rows per tile (16, 64).
var matmulKernels = [4][2]kernel{
	{kernelOf("matmul", "matmul_nn_16"), kernelOf("matmul", "matmul_nn_64")},
	{kernelOf("matmul", "matmul_tn_16"), kernelOf("matmul", "matmul_tn_64")},
	{kernelOf("matmul", "matmul_nt_16"), kernelOf("matmul", "matmul_nt_64")},
	{kernelOf("matmul", "matmul_tt_16"), kernelOf("matmul", "matmul_tt_64")},
}

var matmulReduce = kernelOf("matmul", "matmul_reduce")

// fewRows bounds the products whose rows are bit-identical in any batch: up to this many rows we use our own kernels,
// selected by the weights alone, with a fixed order of summation. For more rows cuBLASLt chooses by the whole shape,
// and a row may then differ in its last bit from the same row among few.
const fewRows = 256

// MatMul: c = op(a)·op(b).
func (d *products) MatMul(c, a, b tensor.Tensor, op device.MatMul) {
	device.CheckMatMul(c, a, b, op, d.types)
	if c.Len() == 0 {
		return
	}
	d.multiply(c, a, b, op)
}

// multiply is MatMul without the check; Classify uses it too.
func (d *products) multiply(c, a, b tensor.Tensor, op device.MatMul) {
	k := a.Cols
	if op.TransA {
		k = a.Rows
	}
	// Rows that are not 16-byte aligned slow down the library, and our kernels more.
	if k >= 8 && (c.Rows > fewRows || op.TransA && k > fewRows) {
		d.product.M, d.product.N, d.product.K = c.Rows, c.Cols, k
		d.product.LdA, d.product.LdB, d.product.LdC = a.Ld, b.Ld, c.Ld
		d.product.TransA, d.product.TransB = op.TransA, op.TransB
		d.product.Float, d.product.Accumulate = c.Type == tensor.F32, op.Accumulate
		d.product.Split = op.TransA // a sum over all rows: no single row's bits depend on it
		d.product.A, d.product.B, d.product.C = uintptr(ptr(a)), uintptr(ptr(b)), uintptr(ptr(c))
		done, err := d.now().MatMul(&d.product)
		d.fail(err)
		if done || err != nil {
			return
		}
	}
	if streams(c.Rows, k, b, op) {
		d.stream(c, a, b, k, op)
		return
	}
	d.tiles(c, a, b, k, op)
}

// Constants of kernels/matmul.cu.
const (
	matmulBN, matmulBK                                    = 64, 64
	matmulFloat, matmulAccumulate, matmulVecA, matmulVecB = 1, 2, 4, 8
)

// tiles multiplies with our own kernel. n and k alone decide how the sum over k is split.
func (d *products) tiles(c, a, b tensor.Tensor, k int, op device.MatMul) {
	m, n := c.Rows, c.Cols
	per, parts := d.cut(m, n, k)
	bm, size := 16, 0
	if m > 16 {
		bm, size = 64, 1
	}
	flags := flag(c.Type == tensor.F32)*matmulFloat | flag(op.Accumulate)*matmulAccumulate | flag(vec(a))*matmulVecA |
		flag(vec(b))*matmulVecB
	var part uint64
	if parts > 1 {
		part = uint64(d.scratch(parts * m * n * 4))
	}
	d.launch(matmulKernels[flag(op.TransA)|flag(op.TransB)<<1][size],
		dim3(ceil(n, matmulBN), ceil(m, bm), parts), dim1(128), matmulShared(bm, op), ptr(a), i32(a.Ld), ptr(b),
		i32(b.Ld), ptr(c), i32(c.Ld), i32(m), i32(n), i32(k), i32(per), part, flags)
	if parts > 1 {
		d.launch(matmulReduce, dim1(ceil(m*n, 256)), dim1(256), 0, ptr(c), i32(c.Ld), part, i32(m), i32(n),
			i32(parts), flags)
	}
}

// cut splits the sum over k so that few columns still fill the GPU: two blocks per multiprocessor, parts of at least
// 256, at most 16. Many rows make many blocks and are not split.
func (d *products) cut(m, n, k int) (per, parts int) {
	if m > fewRows || k == 0 {
		return max(1, k), 1
	}
	parts = min(2*d.info.SMs/ceil(n, matmulBN), k/256, 16)
	per = ceil(ceil(k, max(1, parts)), matmulBK) * matmulBK
	return per, ceil(k, per)
}

// matmulShared is the shared memory of the tiles in flight, in bytes.
func matmulShared(bm int, op device.MatMul) int {
	stages := 3
	if bm == 16 {
		stages = 4
	}
	a, b := bm*(matmulBK+8), matmulBK*(matmulBN+8)
	if op.TransA {
		a = matmulBK * (bm + 8)
	}
	if op.TransB {
		b = matmulBN * (matmulBK + 8)
	}
	return stages * (a + b) * 2
}
