package main

import "fmt"

// tiles names the kernels of attention's tiles, 512 bytes from one row of logits to the next. They go through 32 rows at a time, so that
// logits never leave the first cache, and configure the tiles once for all of them.
var tiles = isa{tag: "Tile", file: "attn", lanes: 16, reg: "Z", regs: 32}

// Byte offsets of the fields of simd.forwardArgs, the kernel's own from fwdDue on, and of simd.forwardGroup.
const (
	fwdGroups, fwdCount, fwdV, fwdLogits, fwdP, fwdSteps, fwdConfig = 0, 8, 16, 24, 40, 56, 64
	fwdLd, fwdVecs, fwdDepth, fwdStrideK, fwdStrideV, fwdPanels     = 72, 80, 88, 96, 104, 112
	fwdStart, fwdScale, fwdFetch                                    = 120, 128, 136
	fwdDue, fwdRate, fwdBefore, fwdNow                              = 144, 152, 160, 168
	fwdShift, fwdFactor, fwdSums                                    = 192, 256, 320

	groupQ, groupK, groupTop, groupSum, groupAcc, groupLo, groupHi = 0, 8, 16, 24, 32, 40, 48
	groupPanels, groupRows, groupMasked, groupSize                 = 56, 64, 72, 80

	tileRow                               = 512
	regScale, regC3, regC2, regC1, regOne = 31, 30, 29, 28, 27
)

// exp2 sets dst to 2^x, 0 below the smallest normal number where such are zero; f is lost. x = n + f with n = floor(x), and
// 2^f = 1 + f·(c1 + f·(c2 + f·c3)) to 9e-5: the result is on its way to bfloat16.
func (a *asm) exp2(dst, x, f int) {
	a.op("VREDUCEPS", "$9", a.v(x), a.v(f))
	a.op("VMOVAPS", a.v(f), a.v(dst))
	a.op("VFMADD213PS", a.v(regC2), a.v(regC3), a.v(dst))
	for _, c := range []int{regC1, regOne} {
		a.op("VFMADD213PS", a.v(c), a.v(f), a.v(dst))
	}
	a.op("VSCALEFPS", a.v(x), a.v(dst), a.v(dst))
}

// exp2Begin loads what exp2 uses and makes subnormal numbers zero; exp2End takes that back. The frame has 8 bytes for it.
func (a *asm) exp2Begin() {
	a.op("STMXCSR", "mode-8(SP)")
	a.op("LDMXCSR", a.bits(0x9FC0)) // all exceptions masked, subnormal inputs and results zero
	for i, c := range []float64{0.07706857673539672, 0.22764331991013126, 0.6951171637762403, 1} {
		a.op("VMOVUPS", a.constant(c), a.v(regC3-i))
	}
}

func (a *asm) exp2End() { a.op("LDMXCSR", "mode-8(SP)") }

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

// attnForward lets groups of 16 rows meet a tile of keys and values: logits, one step of the online softmax in units of log 2, and the
// probabilities' product with the values. While the vectors are at one group, tiles do the logits of the next and the values of the one before.
func (a *asm) attnForward() {
	a.text("attnForward", 8, 8)
	a.op("MOVQ", "p+0(FP)", "DI")
	a.op("MOVQ", arg(fwdConfig), "AX")
	a.tileConfig("AX")
	a.exp2Begin()
	a.op("VBROADCASTSS", arg(fwdScale), a.v(regScale))
	a.move(fwdGroups, fwdNow)
	a.op("MOVQ", "$64", "R10")
	a.listSteps(func() { a.addLogits(0) })
	a.takeUntil("R15")
	a.op("MOVQ", "$0", arg(fwdBefore)) // no group yet
	a.mark("group")
	a.swap(fwdLogits)
	a.swap(fwdP)
	a.listSteps(func() {
		a.op("CMPQ", arg(fwdCount), "$1")
		a.op("JEQ", "last")
		a.addLogits(groupSize)
		a.mark("last")
		a.op("CMPQ", arg(fwdBefore), "$0")
		a.op("JEQ", "first")
		a.addValues()
		a.mark("first")
	})
	a.softmaxGroup()
	a.takeUntil("R15")
	a.op("MOVQ", "$1", arg(fwdBefore))
	a.op("ADDQ", fmt.Sprintf("$%d", groupSize), arg(fwdNow))
	a.op("DECQ", arg(fwdCount))
	a.op("JNZ", "group")
	a.swap(fwdP)
	a.listSteps(a.addValues)
	a.takeUntil("R15")
	a.tileRelease()
	a.exp2End()
	a.op("VZEROUPPER")
	a.op("RET")
}

// swap exchanges the two pointers at off: of this group, and of the one that the tiles are at.
func (a *asm) swap(off int) {
	a.op("MOVQ", arg(off), "AX")
	a.op("MOVQ", arg(off+8), "CX")
	a.op("MOVQ", "AX", arg(off+8))
	a.op("MOVQ", "CX", arg(off))
}

// listSteps makes a new list.
func (a *asm) listSteps(add func()) {
	a.op("MOVQ", arg(fwdSteps), "R15")
	add()
	a.op("MOVQ", arg(fwdSteps), "R8")
}

// addLogits lists the products of the group off bytes behind the present one.
func (a *asm) addLogits(off int) {
	a.op("MOVQ", arg(fwdNow), "AX")
	a.op("MOVQ", fmt.Sprintf("%d(AX)", off+groupQ), "SI")
	a.op("MOVQ", fmt.Sprintf("%d(AX)", off+groupK), "BX")
	a.op("MOVQ", fmt.Sprintf("%d(AX)", off+groupPanels), "CX")
	a.op("MOVQ", arg(fwdLogits+8), "R11")
	a.op("MOVQ", arg(fwdDepth), "R13")
	a.addSteps(panelStep, arg(fwdStrideK), fmt.Sprintf("$%d", tileRow), fmt.Sprintf("$%d", startZero))
}

// addValues lists the products of the group before: its p with the values, added to acc.
func (a *asm) addValues() {
	a.op("MOVQ", arg(fwdNow), "AX")
	a.op("MOVQ", fmt.Sprintf("%d(AX)", groupAcc-groupSize), "R11")
	a.op("MOVQ", fmt.Sprintf("%d(AX)", groupPanels-groupSize), "R13")
	a.op("MOVQ", arg(fwdP+8), "SI")
	a.op("MOVQ", arg(fwdV), "BX")
	a.op("MOVQ", arg(fwdPanels), "CX")
	a.addSteps(panelStep/2, arg(fwdStrideV), arg(fwdLd), arg(fwdStart))
}

// move copies arguments: from, to, from, to …
func (a *asm) move(offs ...int) {
	for i := 0; i < len(offs); i += 2 {
		a.op("MOVQ", arg(offs[i]), "AX")
		a.op("MOVQ", "AX", arg(offs[i+1]))
	}
}

// liveColumns takes the panels of columns that a strip sees, and whether some are masked, from where the argument live points.
func (a *asm) liveColumns(live, panels, masked int) {
	a.op("MOVQ", arg(live), "AX")
	a.op("MOVLQSX", "(AX)", "AX")
	a.op("MOVQ", "AX", "CX")
	a.op("SHRQ", "$8", "CX")
	a.op("MOVQ", "CX", arg(masked))
	a.op("ANDQ", "$255", "AX")
	a.op("MOVQ", "AX", arg(panels))
}

// iotaTable holds 0, 1, … 127.
func (a *asm) iotaTable() {
	for i := 0; i < 128; i += 2 {
		fmt.Fprintf(&a.out, "DATA iota%s<>+%d(SB)/8, $0x%08X%08X\n", a.tag, 4*i, i+1, i)
	}
	fmt.Fprintf(&a.out, "GLOBL iota%s<>(SB), RODATA|NOPTR, $512\n", a.tag)
}

// softmaxGroup is the softmax of the present group: SI its logits, BX its lines of p, R13 the panels of columns. Meanwhile steps are taken: as many
// behind each row that they end with the last.
func (a *asm) softmaxGroup() {
	a.op("MOVQ", arg(fwdNow), "R12")
	a.op("MOVQ", arg(fwdLogits), "SI")
	a.op("MOVQ", group(groupPanels), "R13")
	a.maskGroup()
	a.rowTops()
	a.raiseTops()
	a.stepRate()
	a.op("MOVQ", arg(fwdP), "BX")
	a.expRows()
}

func group(off int) string { return fmt.Sprintf("%d(R12)", off) }

// maskGroup sets logits to −Inf outside of each row's columns lo … hi−1, if they are masked.
func (a *asm) maskGroup() {
	a.op("CMPQ", group(groupMasked), "$0")
	a.op("JEQ", "masked")
	a.op("MOVQ", group(groupLo), "R9")
	a.op("MOVQ", group(groupHi), "R11")
	a.op("LEAQ", fmt.Sprintf("iota%s<>(SB)", a.tag), "R14")
	a.op("MOVQ", "SI", "AX")
	a.op("MOVQ", "R13", "CX")
	a.mark("mask")
	a.maskPanel(16, tileRow, 1)
	a.op("ADDQ", "$128", "AX")
	a.op("ADDQ", "$128", "R14")
	a.op("DECQ", "CX")
	a.op("JNZ", "mask")
	a.mark("masked")
}

// maskPanel masks rows of 32 logits at AX, step bytes apart, and those of a second map a unit further on, if any row's columns begin or end among
// them: R9 are their lo, R11 their hi, R14 the logits' columns. It uses BX and DX.
func (a *asm) maskPanel(rows, step, maps int) {
	row, whole := a.fresh("maskrow"), a.fresh("maskno")
	a.op("VPBROADCASTD", "(R14)", "Z2")
	a.op("VPBROADCASTD", "124(R14)", "Z3")
	a.op("KXORW", "K3", "K3", "K3")
	for i := 0; i < rows; i += 16 {
		a.op("VPCMPD", "$1", fmt.Sprintf("%d(R9)", 4*i), "Z2", "K1")  // the first is below lo
		a.op("VPCMPD", "$5", fmt.Sprintf("%d(R11)", 4*i), "Z3", "K2") // the last is not below hi
		a.op("KORW", "K1", "K3", "K3")
		a.op("KORW", "K2", "K3", "K3")
	}
	a.op("KORTESTW", "K3", "K3")
	a.op("JEQ", whole)
	a.op("VMOVUPS", a.bits(negInf), "Z2")
	a.op("VMOVDQU64", "(R14)", "Z3")
	a.op("VMOVDQU64", "64(R14)", "Z4")
	a.op("MOVQ", "AX", "BX")
	a.op("XORL", "DX", "DX")
	a.mark(row)
	a.op("VPBROADCASTD", "(R9)(DX*4)", "Z0")
	a.op("VPBROADCASTD", "(R11)(DX*4)", "Z1")
	for half := range 2 {
		a.op("VPCMPD", "$1", "Z0", a.v(3+half), "K1") // below lo
		a.op("VPCMPD", "$5", "Z1", a.v(3+half), "K2") // not below hi
		a.op("KORW", "K1", "K2", "K1")
		for m := range maps {
			a.op("VMOVUPS", "Z2", "K1", fmt.Sprintf("%d(BX)", m*unitSize+64*half))
		}
	}
	a.op("ADDQ", fmt.Sprintf("$%d", step), "BX")
	a.op("INCQ", "DX")
	a.op("CMPQ", "DX", fmt.Sprintf("$%d", rows))
	a.op("JLT", row)
	a.mark(whole)
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
	a.op("MOVQ", group(groupTop), "AX")
	a.op("MOVQ", group(groupSum), "CX")
	a.op("VMULPS", a.v(regScale), "Z0", "Z0")
	a.op("VMOVUPS", "(AX)", "Z1")
	a.op("VMAXPS", "Z1", "Z0", "Z0")
	a.op("VMOVUPS", "Z0", "(AX)")
	a.op("VMOVUPS", a.bits(0xFF7FFFFF), "Z2")
	a.op("VMAXPS", "Z2", "Z0", "Z0")
	a.op("VMAXPS", "Z2", "Z1", "Z1")
	a.op("VMOVUPS", "Z0", arg(fwdShift))
	a.op("VSUBPS", "Z0", "Z1", "Z1")
	a.exp2(3, 1, 4)
	a.op("VMOVUPS", "Z3", arg(fwdFactor))
	a.op("VMULPS", "(CX)", "Z3", "Z3")
	a.op("VMOVUPS", "Z3", "(CX)")
	a.op("CMPQ", arg(fwdStart), "$0")
	a.op("JGE", "raised")
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
	a.op("IMULQ", arg(fwdLd), "CX")
	a.op("ADDQ", group(groupAcc), "CX")
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

// stepRate finds the number of bytes of steps that go with a row: the list's, divided by 16 and rounded up to whole steps.
func (a *asm) stepRate() {
	a.op("MOVQ", "R8", arg(fwdDue))
	a.op("MOVQ", "R15", "AX")
	a.op("SUBQ", "R8", "AX")
	a.op("XORL", "CX", "CX")
	a.mark("rate")
	a.op("ADDQ", fmt.Sprintf("$%d", stepSize), "CX")
	a.op("SUBQ", fmt.Sprintf("$%d", 16*stepSize), "AX")
	a.op("JGT", "rate")
	a.op("MOVQ", "CX", arg(fwdRate))
}

// expRows writes the rows' lines to BX and adds their sums. Steps of tiles go best in small pieces between the lines of a whole row.
func (a *asm) expRows() {
	a.op("XORL", "DX", "DX")
	a.mark("row")
	a.op("VBROADCASTSS", fmt.Sprintf("%d(DI)(DX*4)", fwdShift), "Z16")
	a.op("VXORPS", "Z0", "Z0", "Z0")
	a.op("VXORPS", "Z1", "Z1", "Z1")
	a.op("MOVQ", arg(fwdRate), "AX")
	a.op("ADDQ", arg(fwdDue), "AX")
	a.op("CMPQ", "AX", "R15")
	a.op("CMOVQGT", "R15", "AX")
	a.op("MOVQ", "AX", arg(fwdDue))
	a.op("CMPQ", "R8", "AX")
	a.op("JGE", "alone")
	a.op("CMPQ", "R13", fmt.Sprintf("$%d", tileRow/128))
	a.op("JNE", "alone")
	pieces := a.stepPieces()
	for n := range tileRow / 128 {
		pieces[n]()
		a.expLine("SI", "BX", n)
	}
	pieces[len(pieces)-1]()
	a.op("JMP", "exps")
	a.mark("alone")
	a.op("MOVQ", "SI", "AX")
	a.op("MOVQ", "BX", "R14")
	a.op("MOVQ", "R13", "CX")
	a.mark("line")
	a.expLine("AX", "R14", 0)
	a.op("ADDQ", "$128", "AX")
	a.op("ADDQ", fmt.Sprintf("$%d", panelStep/2), "R14")
	a.op("DECQ", "CX")
	a.op("JNZ", "line")
	a.mark("exps")
	a.op("VADDPS", "Z1", "Z0", "Z0")
	a.op("MOVQ", "DX", "AX")
	a.op("SHLQ", "$6", "AX")
	a.op("VMOVUPS", "Z0", fmt.Sprintf("%d(DI)(AX*1)", fwdSums))
	a.takeUntil(arg(fwdDue))
	a.fetchSome(fwdFetch, 2)
	a.op("ADDQ", fmt.Sprintf("$%d", tileRow), "SI")
	a.op("ADDQ", "$64", "BX")
	a.op("INCQ", "DX")
	a.op("CMPQ", "DX", group(groupRows))
	a.op("JLT", "row")
	for r := range 16 {
		a.op("VMOVUPS", fmt.Sprintf("%d(DI)", fwdSums+64*r), a.v(r))
	}
	a.fold16("VADDPS")
	a.op("MOVQ", group(groupSum), "AX")
	a.op("VADDPS", "(AX)", "Z0", "Z0")
	a.op("VMOVUPS", "Z0", "(AX)")
}

// expLine is line n of a row: 32 logits from one address on become a line at the other, and are added to registers 0 and 1.
func (a *asm) expLine(from, to string, n int) {
	for i := range 2 {
		x, e := 4+4*i, 5+4*i
		a.op("VMOVUPS", fmt.Sprintf("%d(%s)", 128*n+64*i, from), a.v(x))
		a.op("VFMSUB213PS", "Z16", a.v(regScale), a.v(x))
		a.exp2(e, x, 6+4*i)
		a.op("VADDPS", a.v(e), a.v(i), a.v(i))
	}
	a.narrowPair(5, 9, 5)
	a.op("VMOVDQU64", "Z5", fmt.Sprintf("%d(%s)", panelStep/2*n, to))
}

func attnFile() []byte {
	a := newAsm(tiles)
	a.include(missingFile)
	a.attnForward()
	for maps := 1; maps <= 2; maps++ {
		a.attnGrad(maps)
	}
	a.productTiles()
	a.dots()
	a.logSums()
	a.normRows()
	a.normBack()
	for _, far := range []bool{false, true} {
		for _, half := range []bool{false, true} {
			a.scaleRows(far, half)
			a.turnRows(far, half)
		}
	}
	a.byteTable()
	a.iotaTable()
	return a.finish()
}

func attnStubs(declare func(format string, a ...any)) {
	declare("attnForwardTile(p *forwardArgs)")
	declare("attnGrad1Tile(p *gradArgs)")
	declare("attnGrad2Tile(p *gradArgs)")
	declare("productTile(p *productArgs)")
	declare("dotsTile(p *dotsArgs)")
	declare("logSumsTile(top, sum *float32, n int)")
	declare("normRowsTile(p *normRowsArgs)")
	declare("normBackTile(p *normBackArgs)")
	for _, far := range []bool{false, true} {
		for _, half := range []bool{false, true} {
			declare("%sTile(p *outArgs)", scaleName(far, half))
			declare("%sTile(p *outArgs)", turnName(far, half))
		}
	}
}
