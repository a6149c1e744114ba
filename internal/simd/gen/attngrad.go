package main

import "fmt"

// Byte offsets of the fields of simd.gradArgs, the kernel's own from gradWork on.
const (
	gradQ, gradDO, gradK, gradV, gradLSE, gradDelta, gradLam, gradMix                 = 0, 8, 16, 32, 40, 56, 72, 80
	gradLines, gradPairs, gradLo, gradHi, gradLive, gradLogits, gradDP                = 88, 104, 120, 128, 136, 144, 160
	gradConfig, gradStrips, gradSteps, gradDepth, gradDepthV                          = 168, 176, 184, 192, 200
	gradStrideQ, gradStrideMap, gradStrideDO, gradStrideK, gradStrideV                = 208, 216, 224, 232, 240
	gradStrideLines, gradStrideMix, gradStridePairs, gradMasked, gradScale, gradFetch = 248, 256, 264, 272, 280, 288
	gradWork, nowStrip, nowLogits, nowDP, nowCols, nowRest                            = 296, 440, 448, 464, 472, 480
	nowQ, nowDO, nowLSE, nowDelta, nowLam, nowMix, nowLines, nowPair                  = 296, 304, 336, 352, 368, 376, 384, 400
	nowLo, nowHi, nowLive, nowMasked                                                  = 416, 424, 432, 488

	regPairs = 24 // the permutation that interleaves
)

// attnGrad lets strips of 32 queries meet a tile of keys and values in the backward pass: logits x and dP, and the softmax backward in units
// of log 2: with P_m = 2^(scale·x_m − lse_m), mix = P1 + lam·P2, dS1 = P1∘(dP − Δ1), dS2 = lam·P2∘(dP − Δ2); with one map mix = P1.
// It writes mix as a packed B, dS as a packed A and as a packed B: two rows and 32 columns at a time hold a line of each kind. Panels of 32
// keys that a strip does not see are zeros. About 14 cycles for 16 logits of a map.
func (a *asm) attnGrad(maps int) {
	a.text(fmt.Sprintf("attnGrad%d", maps), 8, 8)
	a.op("MOVQ", "p+0(FP)", "DI")
	a.op("MOVQ", arg(gradConfig), "AX")
	a.tileConfig("AX")
	for off := 0; off < gradLogits; off += 8 {
		a.move(off, gradWork+off)
	}
	a.move(gradStrips, nowStrip)
	a.op("VBROADCASTSS", arg(gradScale), a.v(regScale))
	a.exp2Begin()
	a.op("VMOVDQU64", "pairs"+a.tag+"<>(SB)", a.v(regPairs))
	a.mark("strip")
	a.gradProducts(maps)
	for m := range maps {
		a.maskStrip(nowMasked, nowCols, gradLogits+8*m, nowLo, nowHi)
		a.move(gradLogits+8*m, nowLogits+8*m)
	}
	a.move(gradDP, nowDP)
	a.op("MOVQ", "$16", "DX")
	a.mark("rows")
	a.gradRows(maps)
	a.nextStrip(maps)
	a.tileRelease()
	a.exp2End()
	a.op("VZEROUPPER")
	a.op("RET")
}

// gradProducts computes the strip's logits and dP, for the panels of keys that it sees.
func (a *asm) gradProducts(maps int) {
	a.liveColumns(nowLive, nowCols, nowMasked)
	a.op("NEGQ", "AX")
	a.op("ADDQ", arg(gradSteps), "AX")
	a.op("MOVQ", "AX", arg(nowRest))
	for m := range maps {
		a.op("MOVQ", arg(nowQ), "R8")
		if m == 1 {
			a.op("ADDQ", arg(gradStrideMap), "R8")
		}
		a.op("MOVQ", arg(gradK+8*m), "BX")
		a.op("MOVQ", arg(gradLogits+8*m), "R11")
		a.op("MOVQ", arg(nowCols), "R13")
		a.stripProduct(gradDepth, gradStrideK)
	}
	a.op("MOVQ", arg(nowDO), "R8")
	a.op("MOVQ", arg(gradV), "BX")
	a.op("MOVQ", arg(gradDP), "R11")
	a.op("MOVQ", arg(nowCols), "R13")
	a.stripProduct(gradDepthV, gradStrideV)
}

type gradPointer struct {
	off  int
	reg  string
	step int // bytes from two rows to the next two
}

// outPointers are where a map's results go, rowPointers what they come from.
func outPointers(maps int) []gradPointer {
	ps := []gradPointer{{nowMix, "R10", 64}, {nowPair, "R11", 64}, {nowLines, "R13", 128}}
	if maps == 2 {
		ps = append(ps, gradPointer{nowPair + 8, "R12", 64}, gradPointer{nowLines + 8, "BX", 128})
	}
	return ps
}

func rowPointers(maps int) []gradPointer {
	ps := []gradPointer{{nowLogits, "R8", 2 * tileRow}, {nowDP, "SI", 2 * tileRow}}
	if maps == 2 {
		ps = append(ps, gradPointer{nowLogits + 8, "R9", 2 * tileRow})
	}
	return ps
}

// gradRows goes through two rows: map m's lse in registers 14+4m…, Δ in 16+4m…, lam in 22….
func (a *asm) gradRows(maps int) {
	for _, p := range append(outPointers(maps), rowPointers(maps)...) {
		a.op("MOVQ", arg(p.off), p.reg)
	}
	spread := func(off, reg int) {
		a.op("MOVQ", arg(off), "AX")
		a.op("VBROADCASTSS", "(AX)", a.v(reg))
		a.op("VBROADCASTSS", "4(AX)", a.v(reg+1))
	}
	for m := range maps {
		spread(nowLSE+8*m, 14+4*m)
		spread(nowDelta+8*m, 16+4*m)
	}
	if maps == 2 {
		spread(nowLam, 22)
	}
	a.op("MOVQ", arg(nowCols), "CX")
	a.mark("step")
	for m := range maps {
		a.gradMap(m, maps)
	}
	for _, p := range rowPointers(maps) {
		a.op("ADDQ", "$128", p.reg)
	}
	a.nextPanels(maps)
	a.op("DECQ", "CX")
	a.op("JNZ", "step")
	a.op("MOVQ", arg(nowRest), "CX")
	a.op("TESTQ", "CX", "CX")
	a.op("JZ", "whole")
	a.op("VXORPS", "Z0", "Z0", "Z0")
	a.mark("zeros")
	for _, p := range outPointers(maps) {
		a.op("VMOVUPS", "Z0", fmt.Sprintf("(%s)", p.reg))
		a.op("VMOVUPS", "Z0", fmt.Sprintf("%d(%s)", map[bool]int{true: 1024, false: 64}[p.step == 64], p.reg))
	}
	a.nextPanels(maps)
	a.op("DECQ", "CX")
	a.op("JNZ", "zeros")
	a.mark("whole")
}

// nextPanels goes to the next 32 columns of the results.
func (a *asm) nextPanels(maps int) {
	a.op("ADDQ", arg(gradStrideMix), "R10")
	a.op("ADDQ", arg(gradStridePairs), "R11")
	a.op("ADDQ", fmt.Sprintf("$%d", panelStep), "R13")
	if maps == 2 {
		a.op("ADDQ", arg(gradStridePairs), "R12")
		a.op("ADDQ", fmt.Sprintf("$%d", panelStep), "BX")
	}
}

// gradMap is map m of a step: registers 0–3 hold P1 of both halves of the first row, then of the second.
func (a *asm) gradMap(m, maps int) {
	logits, pairs, lines := "R8", "R11", "R13"
	if m == 1 {
		logits, pairs, lines = "R9", "R12", "BX"
	}
	for i := range 4 {
		row, mem := i/2, i/2*tileRow+i%2*64
		p := i
		if m == 1 {
			p = 8
		}
		a.op("VMOVUPS", fmt.Sprintf("%d(%s)", mem, logits), "Z9")
		a.op("VFMSUB213PS", a.v(14+4*m+row), a.v(regScale), "Z9")
		a.exp2(p, 9, 10)
		if m == 1 {
			a.op("VMULPS", a.v(22+row), a.v(p), a.v(p))
			a.op("VADDPS", a.v(p), a.v(i), a.v(i))
		}
		a.op("VMOVUPS", fmt.Sprintf("%d(SI)", mem), a.v(4+i))
		a.op("VSUBPS", a.v(16+4*m+row), a.v(4+i), a.v(4+i))
		a.op("VMULPS", a.v(p), a.v(4+i), a.v(4+i))
	}
	if m == maps-1 {
		a.storePairs(0, "R10", "")
	}
	a.storePairs(4, pairs, lines)
}

// storePairs writes a line of both tiles of a B: two rows of registers from … from+3, interleaved; and each row as a line of an A, if there is one.
func (a *asm) storePairs(from int, to, lines string) {
	for half := range 2 {
		a.narrowPair(12+half, from+2+half, from+half)
	}
	if lines != "" {
		for row, imm := range []string{"$0x44", "$0xEE"} {
			a.op("VSHUFF64X2", imm, "Z13", "Z12", a.v(10+row))
			a.op("VMOVDQU64", a.v(10+row), fmt.Sprintf("%d(%s)", 64*row, lines))
		}
	}
	for half := range 2 {
		a.op("VPERMW", a.v(12+half), a.v(regPairs), a.v(12+half))
		a.op("VMOVDQU64", a.v(12+half), fmt.Sprintf("%d(%s)", 1024*half, to))
	}
}

// nextStrip goes to the next two rows; behind 32 of them to the next step of the packed Bs and the next panel of the As.
func (a *asm) nextStrip(maps int) {
	for _, p := range append(outPointers(maps), rowPointers(maps)...) {
		a.op("ADDQ", fmt.Sprintf("$%d", p.step), arg(p.off))
	}
	for m := range maps {
		a.op("ADDQ", "$8", arg(nowLSE+8*m))
		a.op("ADDQ", "$8", arg(nowDelta+8*m))
	}
	a.op("ADDQ", "$8", arg(nowLam))
	a.fetchSome(gradFetch, 4)
	a.op("DECQ", "DX")
	a.op("JNZ", "rows")
	a.op("ADDQ", "$1024", arg(nowMix))
	a.op("MOVQ", arg(gradStrideLines), "AX")
	a.op("SUBQ", fmt.Sprintf("$%d", panelStep), "AX")
	for m := range maps {
		a.op("ADDQ", "$1024", arg(nowPair+8*m))
		a.op("ADDQ", "AX", arg(nowLines+8*m))
	}
	a.op("MOVQ", arg(gradStrideQ), "AX")
	a.op("ADDQ", "AX", arg(nowQ))
	a.op("MOVQ", arg(gradStrideDO), "AX")
	a.op("ADDQ", "AX", arg(nowDO))
	a.op("ADDQ", "$128", arg(nowLo))
	a.op("ADDQ", "$128", arg(nowHi))
	a.op("ADDQ", "$4", arg(nowLive))
	a.op("DECQ", arg(nowStrip))
	a.op("JNZ", "strip")
}
