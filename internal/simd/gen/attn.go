package main

import "fmt"

// tiles names the kernels of attention's tiles, 512 bytes from one row of logits to the next. They go through 32 rows at a time, so that
// logits never leave the first cache, and configure the tiles once for all of them.
var tiles = isa{tag: "Tile", file: "attn", lanes: 16, reg: "Z", regs: 32}

// Byte offsets of the fields of simd.forwardArgs, the kernel's own from fwdWork on.
const (
	fwdQ, fwdK, fwdV, fwdTop, fwdSum, fwdAcc, fwdLo, fwdHi                      = 0, 8, 24, 32, 40, 48, 56, 64
	fwdLogits, fwdP, fwdConfig                                                  = 72, 80, 88
	fwdLd, fwdVecs, fwdStrips, fwdMaps, fwdSteps, fwdStrideK, fwdDepth          = 96, 104, 112, 120, 128, 136, 144
	fwdStrideQ, fwdStrideV, fwdPanels, fwdFirst, fwdMasked, fwdLive, fwdScale   = 152, 160, 168, 176, 184, 192, 200
	fwdWork, workQ, workK, workTop, workSum, workAcc, workLo, workHi, workStrip = 208, 208, 216, 224, 232, 240, 248, 256, 264
	workMap, workLive, workGroup                                                = 272, 280, 288
	fwdShift, fwdFactor, fwdSums                                                = 320, 384, 448

	tileRow                                                = 512
	regScale, regC4, regC3, regC2, regC1, regOne, regLeast = 31, 30, 29, 28, 27, 26, 25
)

// exp2 sets dst to 2^x, 0 below the smallest normal number; f is lost. x = n + f with n = floor(x), and
// 2^f = 1 + f·(c1 + f·(c2 + f·(c3 + f·c4))) to 3e-6: the result is on its way to bfloat16.
func (a *asm) exp2(dst, x, f int) {
	a.op("VCMPPS", "$5", a.v(regLeast), a.v(x), "K2") // not less than: true for NaN
	a.op("VREDUCEPS", "$9", a.v(x), a.v(f))
	a.op("VMOVAPS", a.v(f), a.v(dst))
	a.op("VFMADD213PS", a.v(regC3), a.v(regC4), a.v(dst))
	for _, c := range []int{regC2, regC1, regOne} {
		a.op("VFMADD213PS", a.v(c), a.v(f), a.v(dst))
	}
	a.op("VSCALEFPS.Z", a.v(x), a.v(dst), "K2", a.v(dst))
}

// exp2Constants loads what exp2 uses.
func (a *asm) exp2Constants() {
	for i, c := range []float64{0.013426684289535425, 0.05224247418756851, 0.24128020477403972, 0.6930448448986963, 1, -126} {
		a.op("VMOVUPS", a.constant(c), a.v(regC4-i))
	}
}

// fold16 turns the reductions of registers 0–15 into the lanes of register 0, in order; 16–17 are used on the way.
func (a *asm) fold16(op string) {
	merge := func(x, y, dst int, low, high string, imm ...any) {
		var l, h []any
		if len(imm) == 2 {
			l, h = imm[:1], imm[1:]
		}
		a.op(low, append(append([]any{}, l...), a.v(y), a.v(x), a.v(16))...)
		a.op(high, append(append([]any{}, h...), a.v(y), a.v(x), a.v(17))...)
		a.op(op, a.v(17), a.v(16), a.v(dst))
	}
	for i := range 8 {
		merge(2*i, 2*i+1, i, "VUNPCKLPS", "VUNPCKHPS")
	}
	for i := range 4 {
		merge(2*i, 2*i+1, i, "VUNPCKLPD", "VUNPCKHPD")
	}
	for i := range 2 {
		merge(2*i, 2*i+1, i, "VSHUFF32X4", "VSHUFF32X4", "$0x44", "$0xEE")
	}
	merge(0, 1, 0, "VSHUFF32X4", "VSHUFF32X4", "$0x88", "$0xDD")
}

// attnForward lets strips of 32 rows of each map meet a tile of keys and values: logits, one step of the online softmax in units of
// log 2 (about 8 cycles for 16 logits), and the probabilities' product with the values.
func (a *asm) attnForward() {
	a.text("attnForward", 0, 8)
	a.op("MOVQ", "p+0(FP)", "DI")
	a.op("MOVQ", arg(fwdConfig), "AX")
	a.tileConfig("AX")
	a.move(fwdQ, workQ, fwdK, workK, fwdTop, workTop, fwdSum, workSum, fwdAcc, workAcc, fwdMaps, workMap)
	a.op("VBROADCASTSS", arg(fwdScale), a.v(regScale))
	a.exp2Constants()
	a.mark("map")
	a.move(fwdLo, workLo, fwdHi, workHi, fwdStrips, workStrip, fwdLive, workLive)
	a.mark("strip")
	a.op("MOVQ", arg(workQ), "R8")
	a.op("MOVQ", arg(workK), "BX")
	a.op("MOVQ", arg(fwdLogits), "R11")
	a.op("MOVQ", arg(fwdSteps), "R13")
	a.stripProduct(fwdDepth, fwdStrideK, workLive)
	a.maskStrip(fwdMasked, fwdLogits, workLo, workHi)
	a.softmaxStrip()
	a.valueProduct()
	a.op("MOVQ", arg(fwdStrideQ), "AX")
	a.op("ADDQ", "AX", arg(workQ))
	a.op("MOVQ", arg(fwdLd), "AX")
	a.op("SHLQ", "$5", "AX")
	a.op("ADDQ", "AX", arg(workAcc))
	for _, off := range []int{workTop, workSum, workLo, workHi} {
		a.op("ADDQ", "$128", arg(off))
	}
	a.op("SUBQ", "$32", arg(workLive))
	a.op("DECQ", arg(workStrip))
	a.op("JNZ", "strip")
	a.move(fwdK+8, workK)
	a.op("DECQ", arg(workMap))
	a.op("JNZ", "map")
	a.tileRelease()
	a.op("VZEROUPPER")
	a.op("RET")
}

// move copies arguments: from, to, from, to …
func (a *asm) move(offs ...int) {
	for i := 0; i < len(offs); i += 2 {
		a.op("MOVQ", arg(offs[i]), "AX")
		a.op("MOVQ", "AX", arg(offs[i+1]))
	}
}

// maskStrip sets logits of 32 rows to −Inf outside of each row's columns lo … hi−1, when the argument masked says so.
func (a *asm) maskStrip(masked, logits, lo, hi int) {
	row, end := a.fresh("mask"), a.fresh("masked")
	a.op("CMPQ", arg(masked), "$0")
	a.op("JEQ", end)
	a.op("MOVQ", arg(logits), "R8")
	a.op("MOVQ", arg(lo), "R9")
	a.op("MOVQ", arg(hi), "R10")
	a.op("MOVQ", "$32", "CX")
	a.op("VMOVUPS", a.bits(negInf), "Z2")
	for v := range 8 {
		a.op("VMOVDQU64", fmt.Sprintf("iota%s<>+%d(SB)", a.tag, 64*v), a.v(3+v))
	}
	a.mark(row)
	a.op("VPBROADCASTD", "(R9)", "Z0")
	a.op("VPBROADCASTD", "(R10)", "Z1")
	for v := range 8 {
		a.op("VPCMPD", "$1", "Z0", a.v(3+v), "K1") // below lo
		a.op("VPCMPD", "$5", "Z1", a.v(3+v), "K2") // not below hi
		a.op("KORW", "K1", "K2", "K1")
		a.op("VMOVUPS", "Z2", "K1", fmt.Sprintf("%d(R8)", 64*v))
	}
	a.op("ADDQ", fmt.Sprintf("$%d", tileRow), "R8")
	a.op("ADDQ", "$4", "R9")
	a.op("ADDQ", "$4", "R10")
	a.op("DECQ", "CX")
	a.op("JNZ", row)
	a.mark(end)
}

// iotaTable holds 0, 1, … 127.
func (a *asm) iotaTable() {
	for i := 0; i < 128; i += 2 {
		fmt.Fprintf(&a.out, "DATA iota%s<>+%d(SB)/8, $0x%08X%08X\n", a.tag, 4*i, i+1, i)
	}
	fmt.Fprintf(&a.out, "GLOBL iota%s<>(SB), RODATA|NOPTR, $512\n", a.tag)
}

// softmaxStrip is the softmax of 32 rows, or those in use, 16 at a time: SI their logits, BX their lines of p.
func (a *asm) softmaxStrip() {
	for i, r := range []string{"SI", "BX"} {
		a.op("MOVQ", arg(fwdLogits+8*i), r)
	}
	for i, r := range []string{"R8", "R9", "R10"} {
		a.op("MOVQ", arg(workTop+8*i), r)
	}
	a.op("MOVQ", arg(fwdLd), "R11")
	a.op("MOVQ", arg(fwdSteps), "R13")
	a.op("MOVQ", arg(workLive), "AX")
	a.op("MOVQ", "$32", "CX")
	a.op("CMPQ", "AX", "CX")
	a.op("CMOVQGT", "CX", "AX")
	a.op("MOVQ", "AX", arg(workGroup))
	a.mark("group")
	a.rowTops()
	a.raiseTops()
	a.expRows()
	a.op("ADDQ", fmt.Sprintf("$%d", 16*tileRow), "SI")
	a.op("ADDQ", "$1024", "BX")
	a.op("ADDQ", "$64", "R8")
	a.op("ADDQ", "$64", "R9")
	a.op("MOVQ", "R11", "AX")
	a.op("SHLQ", "$4", "AX")
	a.op("ADDQ", "AX", "R10")
	a.op("SUBQ", "$16", arg(workGroup))
	a.op("JGT", "group")
}

// rowTops: Z0 is the largest logits of the 16 rows at SI.
func (a *asm) rowTops() {
	a.op("MOVQ", "SI", "AX")
	a.op("MOVQ", "R13", "CX")
	for r := range 16 {
		a.op("VMOVUPS", fmt.Sprintf("%d(AX)", r*tileRow), a.v(r))
	}
	a.mark("tops")
	for r := range 16 {
		a.op("VMAXPS", fmt.Sprintf("%d(AX)", r*tileRow), a.v(r), a.v(r))
		a.op("VMAXPS", fmt.Sprintf("%d(AX)", r*tileRow+64), a.v(r), a.v(r))
	}
	a.op("ADDQ", "$128", "AX")
	a.op("DECQ", "CX")
	a.op("JNZ", "tops")
	a.fold16("VMAXPS")
}

// raiseTops updates top, scales sums and, unless they are the first, accumulated rows down, and keeps what is subtracted. A row that
// has seen nothing yet has −Inf, for which the least number stands.
func (a *asm) raiseTops() {
	a.op("VMULPS", a.v(regScale), "Z0", "Z0")
	a.op("VMOVUPS", "(R8)", "Z1")
	a.op("VMAXPS", "Z1", "Z0", "Z0")
	a.op("VMOVUPS", "Z0", "(R8)")
	a.op("VMOVUPS", a.bits(0xFF7FFFFF), "Z2")
	a.op("VMAXPS", "Z2", "Z0", "Z0")
	a.op("VMAXPS", "Z2", "Z1", "Z1")
	a.op("VMOVUPS", "Z0", arg(fwdShift))
	a.op("VSUBPS", "Z0", "Z1", "Z1")
	a.exp2(3, 1, 4)
	a.op("VMOVUPS", "Z3", arg(fwdFactor))
	a.op("VMULPS", "(R9)", "Z3", "Z3")
	a.op("VMOVUPS", "Z3", "(R9)")
	a.op("CMPQ", arg(fwdFirst), "$0")
	a.op("JNE", "raised")
	a.op("VXORPS", "Z2", "Z2", "Z2")
	a.op("VCMPPS", "$4", "Z2", "Z1", "K1")
	a.op("KMOVW", "K1", "AX")
	a.mark("raise")
	a.op("TESTL", "AX", "AX")
	a.op("JZ", "raised")
	a.op("BSFL", "AX", "CX")
	a.op("LEAL", "-1(AX)", "DX")
	a.op("ANDL", "DX", "AX")
	a.op("VBROADCASTSS", fmt.Sprintf("%d(DI)(CX*4)", fwdFactor), "Z2")
	a.op("IMULQ", "R11", "CX")
	a.op("ADDQ", "R10", "CX")
	a.op("MOVQ", arg(fwdVecs), "DX")
	a.mark("scale")
	a.op("VMULPS", "(CX)", "Z2", "Z3")
	a.op("VMOVUPS", "Z3", "(CX)")
	a.op("ADDQ", "$64", "CX")
	a.op("DECQ", "DX")
	a.op("JNZ", "scale")
	a.op("JMP", "raise")
	a.mark("raised")
}

// expRows writes the 16 rows' lines to BX and adds their sums.
func (a *asm) expRows() {
	a.op("XORL", "DX", "DX")
	a.op("MOVQ", "SI", "R12")
	a.op("MOVQ", "BX", "R15")
	a.mark("row")
	a.op("VBROADCASTSS", fmt.Sprintf("%d(DI)(DX*4)", fwdShift), "Z16")
	a.op("VXORPS", "Z0", "Z0", "Z0")
	a.op("VXORPS", "Z1", "Z1", "Z1")
	a.op("MOVQ", "R12", "AX")
	a.op("MOVQ", "R15", "R14")
	a.op("MOVQ", "R13", "CX")
	a.mark("line")
	for i := range 2 {
		x, e := 4+4*i, 5+4*i
		a.op("VMOVUPS", fmt.Sprintf("%d(AX)", 64*i), a.v(x))
		a.op("VFMSUB213PS", "Z16", a.v(regScale), a.v(x))
		a.exp2(e, x, 6+4*i)
		a.op("VADDPS", a.v(e), a.v(i), a.v(i))
	}
	a.narrowPair(5, 9, 5)
	a.op("VMOVDQU64", "Z5", "(R14)")
	a.op("ADDQ", "$128", "AX")
	a.op("ADDQ", fmt.Sprintf("$%d", panelStep), "R14")
	a.op("DECQ", "CX")
	a.op("JNZ", "line")
	a.op("VADDPS", "Z1", "Z0", "Z0")
	a.op("MOVQ", "DX", "AX")
	a.op("SHLQ", "$6", "AX")
	a.op("VMOVUPS", "Z0", fmt.Sprintf("%d(DI)(AX*1)", fwdSums))
	a.op("ADDQ", fmt.Sprintf("$%d", tileRow), "R12")
	a.op("ADDQ", "$64", "R15")
	a.op("INCQ", "DX")
	a.op("CMPQ", "DX", "$16")
	a.op("JEQ", "sums")
	a.op("CMPQ", "DX", arg(workGroup))
	a.op("JLT", "row")
	a.mark("sums")
	for r := range 16 {
		a.op("VMOVUPS", fmt.Sprintf("%d(DI)", fwdSums+64*r), a.v(r))
	}
	a.fold16("VADDPS")
	a.op("VADDPS", "(R9)", "Z0", "Z0")
	a.op("VMOVUPS", "Z0", "(R9)")
}

// valueProduct adds the product of the strip's p with the values to its 32 rows of acc, or sets them.
func (a *asm) valueProduct() {
	a.op("MOVQ", arg(fwdV), "BX")
	a.op("MOVQ", arg(workAcc), "R11")
	a.op("MOVQ", arg(fwdLd), "R12")
	a.op("MOVQ", "R12", "R14")
	a.op("SHLQ", "$4", "R14")
	a.op("ADDQ", "R11", "R14")
	a.op("MOVQ", "$64", "R10")
	a.op("MOVQ", arg(fwdPanels), "R13")
	a.mark("values")
	few := a.fresh("few")
	for half := range 2 {
		if half == 1 {
			a.op("CMPQ", arg(workLive), "$16")
			a.op("JLE", few)
		}
		a.startSums(half, fwdFirst, "JNE")
		a.op("MOVQ", arg(fwdP), "SI")
		if half == 1 {
			a.op("ADDQ", "$1024", "SI")
		}
		a.halfProduct(half, fwdSteps, true)
		a.endSums(half)
	}
	a.mark(few)
	a.op("ADDQ", "$128", "R11")
	a.op("ADDQ", "$128", "R14")
	a.op("ADDQ", arg(fwdStrideV), "BX")
	a.op("DECQ", "R13")
	a.op("JNZ", "values")
}

func attnFile() []byte {
	a := newAsm(tiles)
	a.include(missingFile)
	a.attnForward()
	for maps := 1; maps <= 2; maps++ {
		a.attnGrad(maps)
	}
	a.productTiles()
	for _, far := range []bool{false, true} {
		for _, half := range []bool{false, true} {
			a.scaleRows(far, half)
			a.turnRows(far, half)
		}
	}
	a.pairTable()
	a.iotaTable()
	return a.finish()
}

func attnStubs(declare func(format string, a ...any)) {
	declare("attnForwardTile(p *forwardArgs)")
	declare("attnGrad1Tile(p *gradArgs)")
	declare("attnGrad2Tile(p *gradArgs)")
	declare("productTile(p *productArgs)")
	for _, far := range []bool{false, true} {
		for _, half := range []bool{false, true} {
			declare("%sTile(p *outArgs)", scaleName(far, half))
			declare("%sTile(p *outArgs)", turnName(far, half))
		}
	}
}
