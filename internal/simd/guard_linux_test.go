package simd

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// guarded is n random elements that end where readable memory ends: reading one further is a fault.
func guarded(t *testing.T, r *rand.Rand, n int) []float32 {
	t.Helper()
	page := unix.Getpagesize()
	size := (4*n + page - 1) / page * page
	m, err := unix.Mmap(-1, 0, size+page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(m) })
	if err := unix.Mprotect(m[size:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	if n == 0 {
		return nil
	}
	x := unsafe.Slice((*float32)(unsafe.Pointer(&m[size-4*n])), n)
	copy(x, random(r, n, 1))
	return x
}

// guardedHalves is the same of bfloat16.
func guardedHalves(t *testing.T, r *rand.Rand, n int) []uint16 {
	t.Helper()
	return asBF16(guarded(t, r, (n+1)/2))[n%2:]
}

// No kernel touches memory behind its operands.
func TestGuard(t *testing.T) {
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 9))
		for _, n := range []int{1, 7, 15, 16, 17, 33, 63, 100} {
			d, a, b, c := guarded(t, r, n), guarded(t, r, n), guarded(t, r, n), guarded(t, r, n)
			for _, op := range elementwise {
				op.f(d, a, b, c)
			}
			for _, heads := range []int{1, 3} {
				RotateHeads(guarded(t, r, 2*n*heads), c, d, 1)
				RotatePairs(guarded(t, r, 2*n*heads), c, d, 1)
				if VectorsBF16() {
					RotateHeadsBF16(guardedHalves(t, r, 2*n*heads), c, d, 1, 2*n)
					RotatePairsBF16(guardedHalves(t, r, 2*n*heads), c, d, 1, 2*n)
				}
			}
			SiluMulGrad(a, b, c, c, d, b)
			RoundBF16(a, b)
			_, _, _, _ = Dot(a, b), Dot3(a, b, c), SumSquares(a), Max(a)
			AdamWStep(a, b, c, d, &AdamW{})
			up, low := guardedHalves(t, r, n), guardedHalves(t, r, n)
			SplitBF16(up, low, a)
			JoinBF16(b, up, low)
			NarrowBF16(low, c)
			WidenBF16(c, up)
			if VectorsBF16() {
				l := bf16Lists{w: [2][]float32{a, b}}
				for i := range l.h {
					l.h[i] = guardedHalves(t, r, n)
				}
				AdamWSplitStep(l.h[0], l.h[1], c, d, a, &AdamW{})
				for _, pair := range bf16Pairs {
					pair[0](&l)
				}
			}
			SoftmaxBackward(a, b, &SoftmaxBack{})
			SoftmaxBackward2(a, b, c, d, &SoftmaxBack{})
		}
		var s Scratch
		for _, sh := range [][3]int{{1, 1, 1}, {14, 32, 16}, {6, 16, 4}, {3, 20, 37}, {30, 45, 21}, {15, 33, 64}} {
			m, n, k := sh[0], sh[1], sh[2]
			for bits := range 4 {
				a, b, c := guarded(t, r, m*k), guarded(t, r, n*k), guarded(t, r, m*n)
				lda, ldb, ta, tb := transposes(m, n, k, bits)
				Gemm(m, n, k, a, lda, ta, b, ldb, tb, c, n, true, &s)
				if m <= SkinnyRows() && tb && !ta {
					GemmSkinny(m, n, k, a, lda, b, ldb, c, n, false, &s)
				}
			}
		}
	})
}

// Nor do the products of bfloat16 and bytes, whose packed operands end where memory does too.
func TestGuardBF16(t *testing.T) {
	each(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 10))
		var s Scratch
		for _, sh := range [][3]int{{1, 1, 1}, {32, 32, 32}, {1, 192, 64}, {3, 70, 37}, {45, 33, 96}, {16, 64, 1100}} {
			m, n, k := sh[0], sh[1], sh[2]
			for bits := range 4 {
				a, b, c := guarded(t, r, m*k), guarded(t, r, n*k), guarded(t, r, m*n)
				lda, ldb, ta, tb := transposes(m, n, k, bits)
				pa, pb := asBF16(guarded(t, r, SizeBF16(m, k)/2)), asBF16(guarded(t, r, SizeBF16(n, k)/2))
				PackABF16(pa, m, k, View{X: a, Ld: lda}, ta)
				PackBBF16(pb, k, n, View{X: b, Ld: ldb}, tb, k)
				GemmBF16(m, n, k, pa, pb, k, View{X: c, Ld: n}, ta, tb, &s)
				PackABF16(pa, m, k, View{H: guardedHalves(t, r, m*k), Ld: lda}, ta)
				PackBBF16(pb, k, n, View{H: guardedHalves(t, r, n*k), Ld: ldb}, tb, k)
				GemmBF16(m, n, k, pa, pb, k, View{H: guardedHalves(t, r, m*n), Ld: n}, ta, tb, &s)
				wide := guarded(t, r, m*up32(k))
				GemmFewBF16(m, n, k, wide, up32(k), pb, c, n, tb, &s)
				if tb {
					x, w := MakeRowsInt8(m, k, guarded(t, r, SizeRowsInt8(m, k))),
						MakeColumnsInt8(n, k, guarded(t, r, SizeInt8(n, k)))
					x.Pack(0, m, guarded(t, r, m*k), k, &s)
					w.Pack(0, n, b, k)
					GemmInt8(&x, &w, 0, n, c, n, ta, &s)
				}
			}
		}
	})
}

// transposes reads two bits as transposed operands of a product, with their strides.
func transposes(m, n, k, bits int) (lda, ldb int, ta, tb bool) {
	lda, ldb, ta, tb = k, n, bits&1 != 0, bits&2 != 0
	if ta {
		lda = m
	}
	if tb {
		ldb = k
	}
	return lda, ldb, ta, tb
}
