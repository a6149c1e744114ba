package main

import "fmt"

// Byte offsets of the fields of simd.gradArgs, the kernel's own from gradWork on. now… are what the pointers of the arguments have become for the
// present strip, unit… for the present unit. fact… are the strip's factors, 32 each.
const (
	gradQ, gradDO, gradK, gradV, gradLSE, gradDelta, gradLam, gradMix  = 0, 8, 16, 32, 40, 56, 72, 80
	gradLines, gradPairs, gradLo, gradHi, gradLive                     = 88, 104, 120, 128, 136
	gradUnit, gradConfig                                               = 144, 152
	gradStrips, gradPanels, gradDepth, gradDepthV                      = 160, 168, 176, 184
	gradStrideQ, gradStrideMap, gradStrideDO, gradStrideK, gradStrideV = 192, 200, 208, 216, 224
	gradStrideLines, gradStrideMix, gradStridePairs                    = 232, 240, 248
	gradScale, gradFetch, gradWork                                     = 256, 264, 272

	nowStrips, nowPanels, nowRest, nowMasked = 416, 424, 432, 440
	unitMix, unitPairs, unitLines, unitIota  = 448, 456, 472, 488
	unitK, unitV                             = 496, 512
	factLSE, factDelta, factLam              = 520, 776, 1032 // of both maps; Δ2 times lam

	unitRow, unitSize = 128, 32 * 128 // of the logits of a unit
	regPairs          = 24            // the permutation that interleaves
)

// attnGrad lets strips of 32 queries meet a tile of keys and values in the backward pass: logits x and dP, and the softmax backward in units
// of log 2: with P_m = 2^(scale·x_m − lse_m), mix = P1 + lam·P2, dS1 = P1∘(dP − Δ1), dS2 = lam·P2∘(dP − Δ2); with one map mix = P1.
// It writes mix as a packed B, dS as a packed A and as a packed B: two rows and 32 columns at a time hold a line of each kind. Panels of 32
// keys that a strip does not see are zeros.
//
// A unit is a strip's meeting with one panel: its logits and dP leave room in the first cache for keys and values. That is worth more than
// products in the shadow of the exponentials, which gain nothing here.
func (a *asm) attnGrad(maps int) {
	a.text(fmt.Sprintf("attnGrad%d", maps), 8, 8)
	a.op("MOVQ", "p+0(FP)", "DI")
	a.op("MOVQ", arg(gradConfig), "AX")
	a.tileConfig("AX")
	for off := 0; off < gradUnit; off += 8 {
		a.move(off, gradWork+off)
	}
	a.move(gradStrips, nowStrips)
	a.op("VBROADCASTSS", arg(gradScale), a.v(regScale))
	a.exp2Begin()
	a.op("VMOVDQU64", "bytes"+a.tag+"<>(SB)", a.v(regPairs))
	a.mark("strip")
	a.startStrip(maps)
	a.mark("unit")
	a.unitProducts(maps)
	a.maskUnit(maps)
	a.gradRows(maps)
	a.nextColumns(maps)
	a.op("DECQ", arg(nowPanels))
	a.op("JNZ", "unit")
	a.zeroRest(maps)
	a.nextStrip(maps)
	a.tileRelease()
	a.exp2End()
	a.op("VZEROUPPER")
	a.op("RET")
}

func now(off int) int { return gradWork + off }

// unitProducts computes the unit's logits and dP.
func (a *asm) unitProducts(maps int) {
	for m := range maps + 1 {
		from, with, depth, stride := now(gradQ), unitK+8*m, gradDepth, gradStrideK
		if m == maps {
			from, with, depth, stride = now(gradDO), unitV, gradDepthV, gradStrideV
		}
		a.op("MOVQ", arg(from), "R8")
		if m == 1 && maps == 2 {
			a.op("ADDQ", arg(gradStrideMap), "R8")
		}
		a.op("MOVQ", arg(with), "BX")
		a.op("MOVQ", arg(gradUnit), "R11")
		a.op("ADDQ", fmt.Sprintf("$%d", m*unitSize), "R11")
		a.unitProduct(depth)
		a.advance(stride, with)
	}
}

// advance adds an argument to another.
func (a *asm) advance(by, off int) {
	a.op("MOVQ", arg(by), "AX")
	a.op("ADDQ", "AX", arg(off))
}

// startStrip gathers the strip's factors and begins with its first panel.
func (a *asm) startStrip(maps int) {
	a.liveColumns(now(gradLive), nowPanels, nowMasked)
	a.op("NEGQ", "AX")
	a.op("ADDQ", arg(gradPanels), "AX")
	a.op("MOVQ", "AX", arg(nowRest))
	a.move(now(gradMix), unitMix, gradV, unitV)
	a.op("LEAQ", fmt.Sprintf("iota%s<>(SB)", a.tag), "AX")
	a.op("MOVQ", "AX", arg(unitIota))
	if maps == 2 {
		a.op("MOVQ", arg(now(gradLam)), "CX")
	}
	for m := range maps {
		a.move(gradK+8*m, unitK+8*m, now(gradPairs)+8*m, unitPairs+8*m, now(gradLines)+8*m, unitLines+8*m)
		a.op("MOVQ", arg(now(gradLSE)+8*m), "AX")
		a.op("MOVQ", arg(now(gradDelta)+8*m), "DX")
		for half := range 2 {
			a.op("VMOVUPS", fmt.Sprintf("%d(AX)", 64*half), "Z0")
			a.op("VMOVUPS", fmt.Sprintf("%d(DX)", 64*half), "Z1")
			if m == 1 {
				a.op("VMOVUPS", fmt.Sprintf("%d(CX)", 64*half), "Z2")
				a.op("VMOVUPS", "Z2", arg(factLam+64*half))
				a.op("VMULPS", "Z2", "Z1", "Z1")
			}
			a.op("VMOVUPS", "Z0", arg(factLSE+128*m+64*half))
			a.op("VMOVUPS", "Z1", arg(factDelta+128*m+64*half))
		}
	}
}

// maskUnit sets logits to −Inf outside of each row's columns lo … hi−1, if the strip is masked.
func (a *asm) maskUnit(maps int) {
	a.op("CMPQ", arg(nowMasked), "$0")
	a.op("JEQ", "masked")
	a.op("MOVQ", arg(now(gradLo)), "R9")
	a.op("MOVQ", arg(now(gradHi)), "R11")
	a.op("MOVQ", arg(unitIota), "R14")
	a.op("MOVQ", arg(gradUnit), "AX")
	a.maskPanel(32, unitRow, maps)
	a.mark("masked")
}

// gradRows goes through the unit, two rows at a time: SI their logits, DX 8 bytes for each pair of rows.
func (a *asm) gradRows(maps int) {
	a.op("MOVQ", arg(gradUnit), "SI")
	a.op("XORL", "DX", "DX")
	a.mark("rows")
	spread := func(off, reg int) {
		for row := range 2 {
			a.op("VBROADCASTSS", fmt.Sprintf("%d(DI)(DX*1)", off+4*row), a.v(reg+row))
		}
	}
	if maps == 2 {
		spread(factLam, 22)
	}
	for m := range maps {
		spread(factLSE+128*m, 14)
		spread(factDelta+128*m, 16)
		a.gradMap(m, maps)
	}
	a.fetchSome(gradFetch, 1)
	a.op("ADDQ", fmt.Sprintf("$%d", 2*unitRow), "SI")
	a.op("ADDQ", "$8", "DX")
	a.op("CMPQ", "DX", "$128")
	a.op("JLT", "rows")
}

// gradMap is map m of two rows of a unit, registers 0–3 hold P1 of both halves of the first, then of the second.
func (a *asm) gradMap(m, maps int) {
	for i := range 4 {
		row, mem, p := i/2, i/2*unitRow+i%2*64, i
		a.op("VMOVUPS", fmt.Sprintf("%d(SI)", m*unitSize+mem), "Z9")
		a.op("VFMSUB213PS", a.v(14+row), a.v(regScale), "Z9")
		a.op("VMOVUPS", fmt.Sprintf("%d(SI)", maps*unitSize+mem), a.v(4+i))
		if m == 0 {
			a.exp2(p, 9, 10)
			a.op("VSUBPS", a.v(16+row), a.v(4+i), a.v(4+i))
		} else {
			p = 8
			a.exp2(p, 9, 10)
			a.op("VFMADD231PS", a.v(22+row), a.v(p), a.v(i))
			a.op("VFMSUB213PS", a.v(16+row), a.v(22+row), a.v(4+i))
		}
		a.op("VMULPS", a.v(p), a.v(4+i), a.v(4+i))
	}
	if m == maps-1 {
		a.storePairs(0, unitMix, 0)
	}
	a.storePairs(4, unitPairs+8*m, unitLines+8*m)
}

// storePairs writes a line of both tiles of a B: two rows of registers from … from+3, interleaved; and each row as a line of an A, if there is one.
func (a *asm) storePairs(from, to, lines int) {
	for half := range 2 {
		a.narrowPair(12+half, from+2+half, from+half)
	}
	a.op("MOVQ", arg(to), "AX")
	if lines != 0 {
		a.op("MOVQ", arg(lines), "CX")
		a.op("LEAQ", "(DX)(DX*1)", "R9")
		for row, imm := range []string{"$0x44", "$0xEE"} {
			a.op("VSHUFF64X2", imm, "Z13", "Z12", a.v(10+row))
			a.op("VMOVDQU64", a.v(10+row), fmt.Sprintf("%d(CX)(R9*8)", 64*row))
		}
	}
	for half := range 2 {
		a.op("VPERMB", a.v(12+half), a.v(regPairs), a.v(12+half))
		a.op("VMOVDQU64", a.v(12+half), fmt.Sprintf("%d(AX)(DX*8)", 1024*half))
	}
}

// nextColumns goes to the next 32 columns of the results.
func (a *asm) nextColumns(maps int) {
	a.advance(gradStrideMix, unitMix)
	a.op("ADDQ", "$128", arg(unitIota))
	for m := range maps {
		a.advance(gradStridePairs, unitPairs+8*m)
		a.op("ADDQ", fmt.Sprintf("$%d", panelStep), arg(unitLines+8*m))
	}
}

// zeroRest clears the panels that the strip does not see.
func (a *asm) zeroRest(maps int) {
	a.op("VXORPS", "Z0", "Z0", "Z0")
	a.op("CMPQ", arg(nowRest), "$0")
	a.op("JEQ", "whole")
	a.mark("rest")
	outs := []int{unitMix}
	for m := range maps {
		outs = append(outs, unitPairs+8*m, unitLines+8*m)
	}
	for _, off := range outs {
		a.op("MOVQ", arg(off), "AX")
		for i := 0; i < panelStep; i += 64 {
			a.op("VMOVUPS", "Z0", fmt.Sprintf("%d(AX)", i))
		}
	}
	a.nextColumns(maps)
	a.op("DECQ", arg(nowRest))
	a.op("JNZ", "rest")
	a.mark("whole")
}

// nextStrip goes to the next step of the packed Bs and the next panel of the As.
func (a *asm) nextStrip(maps int) {
	a.op("ADDQ", fmt.Sprintf("$%d", panelStep), arg(now(gradMix)))
	for m := range maps {
		a.op("ADDQ", fmt.Sprintf("$%d", panelStep), arg(now(gradPairs)+8*m))
		a.advance(gradStrideLines, now(gradLines)+8*m)
		a.op("ADDQ", "$128", arg(now(gradLSE)+8*m))
		a.op("ADDQ", "$128", arg(now(gradDelta)+8*m))
	}
	for _, off := range []int{gradLam, gradLo, gradHi} {
		a.op("ADDQ", "$128", arg(now(off)))
	}
	a.advance(gradStrideQ, now(gradQ))
	a.advance(gradStrideDO, now(gradDO))
	a.op("ADDQ", "$4", arg(now(gradLive)))
	a.op("DECQ", arg(nowStrips))
	a.op("JNZ", "strip")
}

// byteTable is the permutation of bytes that interleaves the halves of a vector of 32 words.
func (a *asm) byteTable() {
	for i := 0; i < 16; i += 2 {
		var x uint64
		for b, word := range []int{i, 16 + i, i + 1, 17 + i} {
			x |= uint64((2*word+1)<<8|2*word) << (16 * b)
		}
		fmt.Fprintf(&a.out, "DATA bytes%s<>+%d(SB)/8, $0x%016X\n", a.tag, 4*i, x)
	}
	fmt.Fprintf(&a.out, "GLOBL bytes%s<>(SB), RODATA|NOPTR, $64\n", a.tag)
}
