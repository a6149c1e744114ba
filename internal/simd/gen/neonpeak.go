package main

import "fmt"

// neonPeakFile holds the loops of peakFile for arm64, and fetch.
func neonPeakFile() []byte {
	a := newAsm(neon)
	peakNEON(a, "peakFMA", func(d int) { a.use(vvv(0x4E20CC00, "fmla", "4s", a.v(d), "V24", "V25")) })
	peakNEON(a, "peakSMLAL", func(d int) { a.use(longer(0x0E608000, "smlal", "4s", "4h", a.v(d), "V24", "V25")) })
	peakNEON(a, "peakSDOT", func(d int) {
		a.use(word(0x4E809400|25<<16|24<<5|uint32(d), fmt.Sprintf("sdot v%d.4s, v24.16b, v25.16b", d)))
	})
	peakNEON(a, "peakSMMLA", func(d int) {
		a.use(word(0x4E80A400|25<<16|24<<5|uint32(d), fmt.Sprintf("smmla v%d.4s, v24.16b, v25.16b", d)))
	})
	peakNEON(a, "peakBFMMLA", func(d int) {
		a.use(word(0x6E40EC00|25<<16|24<<5|uint32(d), fmt.Sprintf("bfmmla v%d.4s, v24.8h, v25.8h", d)))
	})
	readMemoryNEON(a)
	a.text("fetch", 0, 8)
	loadArgs(a, "at+0", "R0")
	for i := range fetchLines {
		a.op("PRFM", fmt.Sprintf("%d(R0)", 64*i), "PLDL2KEEP")
	}
	a.op("RET")
	return a.finish()
}

// peakNEON: n iterations of 24 independent instructions, more than four pipes with a latency of four need.
func peakNEON(a *asm, name string, product func(d int)) {
	a.text(name, 0, 8)
	loadArgs(a, "n+0", "R0")
	for r := range 26 {
		fill(a, 0, a.v(r))
	}
	a.mark("loop")
	for d := range 24 {
		product(d)
	}
	a.op("SUBS", "$1", "R0")
	a.op("BNE", "loop")
	a.op("RET")
}

// readMemoryNEON is readMemory with four streams.
func readMemoryNEON(a *asm) {
	a.text("readMemory", 0, 16)
	loadArgs(a, "p+0", "R8", "n+8", "R0")
	a.op("LSR", "$2", "R0")
	pointRows(a, "R8", "R0", 4)
	a.mark("loop")
	for i := 0; i < 64; i += 32 {
		for s := range 4 {
			a.op("FLDPQ", fmt.Sprintf("%d(%s)", i, rowsNEON[s]), fmt.Sprintf("(F%d, F%d)", 2*s, 2*s+1))
		}
	}
	for s := range 4 {
		a.op("ADD", "$64", rowsNEON[s])
	}
	a.op("SUBS", "$64", "R0")
	a.op("BNE", "loop")
	a.op("RET")
}
