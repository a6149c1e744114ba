package main

import (
	"fmt"
	"math"
)

// Byte offsets of the fields of simd.dotsArgs, simd.normRowsArgs and simd.normBackArgs.
const (
	dotsDst, dotsX, dotsY, dotsLdX, dotsLdY, dotsGroups, dotsLines = 0, 8, 16, 24, 32, 40, 48

	rowsX, rowsWeight, rowsRstd, rowsLd, rowsLdRstd  = 0, 8, 16, 24, 32
	rowsRows, rowsVecs, rowsMean, rowsEps, rowsScale = 40, 48, 56, 60, 64

	normDO, normDOut, normRaw, normOut2, normWeight, normRstd, normDNorm, normDelta = 0, 8, 16, 24, 32, 40, 48, 56
	normLdDO, normLdDOut, normLdRaw, normLdOut2, normLdRstd                         = 72, 80, 88, 96, 104
	normRows, normLines, normScale, normMean, normAt                                = 112, 120, 128, 132, 136
)

// dots: dst[r] = x_r·y_r for rows of bfloat16, 16 at a time.
func (a *asm) dots() {
	a.text("dots", 0, 8)
	a.op("MOVQ", "p+0(FP)", "DI")
	for _, p := range []argument{{dotsDst, "DX"}, {dotsX, "SI"}, {dotsY, "BX"}, {dotsLdX, "R8"}, {dotsLdY, "R9"}, {dotsGroups, "CX"}} {
		a.op("MOVQ", arg(p.off), p.reg)
	}
	a.mark("group")
	for r := range 16 {
		a.op("VXORPS", a.v(r), a.v(r), a.v(r))
	}
	a.op("MOVQ", "SI", "R12")
	a.op("MOVQ", "BX", "R13")
	a.op("MOVQ", arg(dotsLines), "AX")
	a.mark("line")
	a.op("MOVQ", "R12", "R10")
	a.op("MOVQ", "R13", "R11")
	for r := range 16 {
		x, y := 16+2*(r%4), 17+2*(r%4)
		a.op("VMOVDQU64", "(R10)", a.v(x))
		a.op("VMOVDQU64", "(R11)", a.v(y))
		a.dotPairs(r, x, y)
		a.op("ADDQ", "R8", "R10")
		a.op("ADDQ", "R9", "R11")
	}
	a.op("ADDQ", "$64", "R12")
	a.op("ADDQ", "$64", "R13")
	a.op("DECQ", "AX")
	a.op("JNZ", "line")
	a.fold16("VADDPS")
	a.op("VMOVUPS", "Z0", "(DX)")
	a.op("ADDQ", "$64", "DX")
	for _, p := range [][2]string{{"R8", "SI"}, {"R9", "BX"}} {
		a.op("MOVQ", p[0], "AX")
		a.op("SHLQ", "$4", "AX")
		a.op("ADDQ", "AX", p[1])
	}
	a.op("DECQ", "CX")
	a.op("JNZ", "group")
	a.op("VZEROUPPER")
	a.op("RET")
}

// logSums: top += log sum, sum = 1/sum. sum = 2^e·m with m from √½ to √2, and with s = (m−1)/(m+1) log m = 2·(s + s³/3 + s⁵/5 + …).
func (a *asm) logSums() {
	a.text("logSums", 0, 24)
	a.op("MOVQ", "top+0(FP)", "DI")
	a.op("MOVQ", "sum+8(FP)", "SI")
	a.op("MOVQ", "n+16(FP)", "CX")
	a.op("KXNORW", "K1", "K1", "K1")
	a.mark("rows")
	a.op("CMPQ", "CX", "$16")
	a.op("JGE", "whole")
	a.op("MOVL", "$1", "AX")
	a.op("SHLL", "CX", "AX")
	a.op("DECL", "AX")
	a.op("KMOVW", "AX", "K1")
	a.mark("whole")
	a.op("VMOVUPS.Z", "(SI)", "K1", "Z0")
	a.op("VGETEXPPS", "Z0", "Z1")
	a.op("VGETMANTPS", "$0", "Z0", "Z2")
	a.op("VCMPPS", "$14", a.constant(math.Sqrt2), "Z2", "K2")
	a.op("VMULPS", a.constant(0.5), "Z2", "K2", "Z2")
	a.op("VADDPS", a.constant(1), "Z1", "K2", "Z1")
	a.op("VSUBPS", a.constant(1), "Z2", "Z3")
	a.op("VADDPS", a.constant(1), "Z2", "Z4")
	a.op("VDIVPS", "Z4", "Z3", "Z3")
	a.op("VMULPS", "Z3", "Z3", "Z4")
	a.op("VMOVUPS", a.constant(2.0/9), "Z5")
	for _, c := range []float64{2.0 / 7, 2.0 / 5, 2.0 / 3, 2} {
		a.op("VFMADD213PS", a.constant(c), "Z4", "Z5")
	}
	a.op("VMULPS", "Z3", "Z5", "Z5")
	a.op("VFMADD231PS", a.constant(math.Ln2), "Z1", "Z5")
	a.op("VMOVUPS.Z", "(DI)", "K1", "Z6")
	a.op("VADDPS", "Z6", "Z5", "Z5")
	a.op("VMOVUPS", "Z5", "K1", "(DI)")
	a.op("VMOVUPS", a.constant(1), "Z6")
	a.op("VDIVPS", "Z0", "Z6", "Z0")
	a.op("VMOVUPS", "Z0", "K1", "(SI)")
	a.op("ADDQ", "$64", "DI")
	a.op("ADDQ", "$64", "SI")
	a.op("SUBQ", "$16", "CX")
	a.op("JGT", "rows")
	a.op("VZEROUPPER")
	a.op("RET")
}

// normRows is a head norm, see simd.AttnTile.NormRows: in place, row by row.
func (a *asm) normRows() {
	a.text("normRows", 0, 8)
	a.op("MOVQ", "p+0(FP)", "DI")
	for _, p := range []argument{{rowsX, "SI"}, {rowsRstd, "R11"}, {rowsLd, "R8"}, {rowsLdRstd, "R9"}, {rowsRows, "CX"}} {
		a.op("MOVQ", arg(p.off), p.reg)
	}
	a.op("VMOVSS", a.bits(one), "X5")
	a.mark("row")
	a.op("MOVQ", "SI", "AX")
	a.op("MOVQ", arg(rowsVecs), "DX")
	a.op("VXORPS", "Z0", "Z0", "Z0")
	a.mark("sum")
	a.op("VMOVUPS", "(AX)", "Z1")
	a.op("VFMADD231PS", "Z1", "Z1", "Z0")
	a.op("ADDQ", "$64", "AX")
	a.op("DECQ", "DX")
	a.op("JNZ", "sum")
	a.foldLanes("VADDPS", 0, 1)
	a.op("VMULSS", arg(rowsMean), "X0", "X0")
	a.op("VADDSS", arg(rowsEps), "X0", "X0")
	a.op("VSQRTSS", "X0", "X0", "X0")
	a.op("VDIVSS", "X0", "X5", "X0")
	a.op("VMOVSS", "X0", "(R11)")
	a.op("VMULSS", arg(rowsScale), "X0", "X0")
	a.op("VBROADCASTSS", "X0", "Z0")
	a.op("MOVQ", "SI", "AX")
	a.op("MOVQ", arg(rowsWeight), "BX")
	a.op("MOVQ", arg(rowsVecs), "DX")
	a.mark("scale")
	a.op("VMULPS", "(BX)", "Z0", "Z1")
	a.op("VMULPS", "(AX)", "Z1", "Z1")
	a.op("VMOVUPS", "Z1", "(AX)")
	a.op("ADDQ", "$64", "AX")
	a.op("ADDQ", "$64", "BX")
	a.op("DECQ", "DX")
	a.op("JNZ", "scale")
	a.op("ADDQ", "R8", "SI")
	a.op("ADDQ", "R9", "R11")
	a.op("DECQ", "CX")
	a.op("JNZ", "row")
	a.op("VZEROUPPER")
	a.op("RET")
}

// normBack is the backward pass of a head norm, see simd.NormBack: row by row, the sum first.
func (a *asm) normBack() {
	a.text("normBack", 0, 8)
	a.op("MOVQ", "p+0(FP)", "DI")
	for _, p := range []argument{{normDO, "R8"}, {normDOut, "R9"}, {normRaw, "R10"}, {normOut2, "R12"},
		{normRstd, "R11"}, {normRows, "CX"}} {
		a.op("MOVQ", arg(p.off), p.reg)
	}
	a.mark("row")
	a.op("VBROADCASTSS", "(R11)", "Z31")
	a.op("VBROADCASTSS", arg(normScale), "Z30")
	a.op("VMULPS", "Z31", "Z30", "Z30") // alpha
	a.op("VXORPS", "Z0", "Z0", "Z0")
	a.op("VXORPS", "Z1", "Z1", "Z1")
	a.normLines("sum", func() {
		for i := range 2 {
			a.op("VMULPS", fmt.Sprintf("%d(BX)", 64*i), a.v(4+i), a.v(4+i))
			a.op("VFMADD231PS", a.v(4+i), a.v(6+i), a.v(i))
		}
	})
	a.op("VADDPS", "Z1", "Z0", "Z0")
	a.foldLanes("VADDPS", 0, 1)
	a.op("VBROADCASTSS", arg(normMean), "Z1")
	a.op("VMULPS", "Z30", "Z0", "Z0")
	for _, r := range []string{"Z1", "Z31", "Z31"} {
		a.op("VMULPS", r, "Z0", "Z0") // mean·rstd²
	}
	a.normWrite()
	for _, p := range []argument{{normLdDO, "R8"}, {normLdDOut, "R9"}, {normLdRaw, "R10"}, {normLdOut2, "R12"}, {normLdRstd, "R11"}} {
		a.op("ADDQ", arg(p.off), p.reg)
	}
	a.op("DECQ", "CX")
	a.op("JNZ", "row")
	a.op("VZEROUPPER")
	a.op("RET")
}

// normWrite goes through a row once more, with alpha in register 30 and mean·rstd² in 0: do, its products with raw in 8 and 9 and with out2 in 10
// and 11, and the weight's gradient.
func (a *asm) normWrite() {
	a.op("MOVQ", arg(normDNorm), "R13")
	a.op("MOVQ", "R8", "R14")
	a.op("MOVQ", "R12", "R15")
	for r := 8; r < 12; r++ {
		a.op("VXORPS", a.v(r), a.v(r), a.v(r))
	}
	a.normLines("write", func() {
		for i := range 2 {
			a.widenHalf(12+i, "R15", i)
			at := fmt.Sprintf("%d(R13)", 64*i)
			a.op("VMULPS", "Z30", a.v(4+i), a.v(4+i)) // alpha·dout
			a.op("VMOVUPS", at, "Z2")
			a.op("VFMADD231PS", a.v(4+i), a.v(6+i), "Z2")
			a.op("VMOVUPS", "Z2", at)
			a.op("VMULPS", fmt.Sprintf("%d(BX)", 64*i), a.v(4+i), a.v(4+i))
			a.op("VFNMADD231PS", "Z0", a.v(6+i), a.v(4+i))
			a.op("VFMADD231PS", a.v(4+i), a.v(6+i), a.v(8+i))
			a.op("VFMADD231PS", a.v(4+i), a.v(12+i), a.v(10+i))
		}
		a.narrowPair(4, 5, 4)
		a.op("VMOVDQU64", "Z4", "(R14)")
		a.op("ADDQ", "$128", "R13")
		a.op("ADDQ", "$64", "R14")
		a.op("ADDQ", "$64", "R15")
	})
	for i := range 2 {
		a.op("VADDPS", a.v(9+2*i), a.v(8+2*i), a.v(8+2*i))
		a.foldLanes("VADDPS", 8+2*i, 1)
		a.op("MOVQ", arg(normDelta+8*i), "AX")
		a.op("MOVQ", arg(normAt), "DX")
		a.op("VMOVSS", fmt.Sprintf("X%d", 8+2*i), "(AX)(DX*1)")
	}
	a.op("ADDQ", "$4", arg(normAt))
}

// normLines runs do for 32 columns at a time: dout widened in registers 4 and 5, raw in 6 and 7, BX the weights.
func (a *asm) normLines(label string, do func()) {
	a.op("MOVQ", "R9", "AX")
	a.op("MOVQ", "R10", "DX")
	a.op("MOVQ", arg(normWeight), "BX")
	a.op("MOVQ", arg(normLines), "SI")
	a.mark(label)
	for i, from := range []string{"AX", "DX"} {
		for half := range 2 {
			a.widenHalf(4+2*i+half, from, half)
		}
	}
	do()
	a.op("ADDQ", "$64", "AX")
	a.op("ADDQ", "$64", "DX")
	a.op("ADDQ", "$128", "BX")
	a.op("DECQ", "SI")
	a.op("JNZ", label)
}

// widenHalf widens half a line of bfloat16.
func (a *asm) widenHalf(r int, from string, half int) {
	a.op("VPMOVZXWD", fmt.Sprintf("%d(%s)", 32*half, from), a.v(r))
	a.op("VPSLLD", "$16", a.v(r), a.v(r))
}
