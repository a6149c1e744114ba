package main

import "fmt"

// Byte offsets of the fields of simd.outArgs.
const (
	outDst, outSrc, outScale, outLdDst, outLdSrc, outRows, outVecs = 0, 8, 16, 24, 32, 40, 48
)

// scaleRows: row r of dst = scale[r] · row r of src, 16·vectors elements each, or 32·vectors that are rounded to half. Rows are pieces of a matrix
// that is larger than the caches: they are written around them, whole lines at a time, when far.
func (a *asm) scaleRows(far, half bool) {
	a.text(scaleName(far, half), 0, 8)
	a.op("MOVQ", "p+0(FP)", "AX")
	a.outBegin()
	a.op("MOVQ", fmt.Sprintf("%d(AX)", outScale), "BX")
	a.mark("row")
	a.op("VBROADCASTSS", "(BX)", "Z0")
	a.op("MOVQ", "SI", "R10")
	a.op("MOVQ", "DI", "R11")
	a.op("MOVQ", "R13", "DX")
	a.mark("vector")
	a.op("VMULPS", "(R10)", "Z0", "Z1")
	if half {
		a.op("VMULPS", "64(R10)", "Z0", "Z2")
		a.narrowPair(1, 2, 1)
		a.op("ADDQ", "$64", "R10")
	}
	a.op(storeWay(far), "Z1", "(R11)")
	a.op("ADDQ", "$64", "R10")
	a.op("ADDQ", "$64", "R11")
	a.op("DECQ", "DX")
	a.op("JNZ", "vector")
	a.op("ADDQ", "R8", "DI")
	a.op("ADDQ", "R9", "SI")
	a.op("ADDQ", "$4", "BX")
	a.op("DECQ", "CX")
	a.op("JNZ", "row")
	a.outEnd(far)
}

// turnRows: element (r, c) of dst = scale[0] · element (c, r) of src, for 16·rows and 16·vectors of them: 16 whole rows of dst at a time. To half
// go 32·vectors: pairs of rows of src, interleaved, are 32-bit elements.
func (a *asm) turnRows(far, half bool) {
	a.text(turnName(far, half), 0, 8)
	a.op("MOVQ", "p+0(FP)", "AX")
	a.outBegin()
	a.op("MOVQ", fmt.Sprintf("%d(AX)", outScale), "BX")
	a.op("VBROADCASTSS", "(BX)", "Z31")
	if half {
		a.op("VMOVDQU64", "bytes"+a.tag+"<>(SB)", a.v(regPairs))
	}
	a.mark("rows")
	a.op("MOVQ", "SI", "R10")
	a.op("MOVQ", "DI", "R11")
	a.op("MOVQ", "R13", "DX")
	a.mark("block")
	for i := range 16 {
		a.op("VMULPS", "(R10)", "Z31", a.v(i))
		a.op("ADDQ", "R9", "R10")
		if half {
			a.op("VMULPS", "(R10)", "Z31", a.v(16+i%4))
			a.op("ADDQ", "R9", "R10")
			a.narrowPair(i, 16+i%4, i)
			a.op("VPERMB", a.v(i), a.v(regPairs), a.v(i))
		}
	}
	a.turnRegisters()
	a.op("MOVQ", "R11", "R12")
	for i := range 16 {
		a.op(storeWay(far), a.v(i), "(R12)")
		a.op("ADDQ", "R8", "R12")
	}
	a.op("ADDQ", "$64", "R11")
	a.op("DECQ", "DX")
	a.op("JNZ", "block")
	a.op("MOVQ", "R8", "R12")
	a.op("SHLQ", "$4", "R12")
	a.op("ADDQ", "R12", "DI")
	a.op("ADDQ", "$64", "SI")
	a.op("DECQ", "CX")
	a.op("JNZ", "rows")
	a.outEnd(far)
}

func scaleName(far, half bool) string {
	if half {
		return "scaleHalves" + way(far)
	}
	return "scaleRows" + way(far)
}

func turnName(far, half bool) string {
	if half {
		return "turnToHalves" + way(far)
	}
	return "turnRows" + way(far)
}

func way(far bool) string {
	if far {
		return "Far"
	}
	return "Near"
}

func storeWay(far bool) string {
	if far {
		return "VMOVNTPS"
	}
	return "VMOVUPS"
}

// argument is one and the register that it goes with.
type argument struct {
	off int
	reg string
}

func (a *asm) outBegin() {
	for _, p := range []argument{{outDst, "DI"}, {outSrc, "SI"}, {outLdDst, "R8"}, {outLdSrc, "R9"}, {outRows, "CX"}, {outVecs, "R13"}} {
		a.op("MOVQ", fmt.Sprintf("%d(AX)", p.off), p.reg)
	}
}

func (a *asm) outEnd(far bool) {
	if far {
		a.op("SFENCE") // other threads may see the result as soon as the caller says so
	}
	a.op("VZEROUPPER")
	a.op("RET")
}
