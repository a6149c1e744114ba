package main

import "fmt"

// peakFile holds the loops whose rates are the machine's limits: multiply-adds on registers alone, reads of memory.
func peakFile() []byte {
	a := newAsm(avx512)
	a.include(missingFile)
	for _, i := range []isa{avx512, avx2} {
		a.isa = i
		peakFMA(a)
		readMemory(a)
	}
	peakInt8(a)
	a.isa = amx
	peakTiles(a, "peakBF16", multiplyTiles)
	peakTiles(a, "peakInt8", multiplySigned)
	return a.finish()
}

// peakFMA: n turns of 24 independent multiply-adds on as many chains as hide their latency.
func peakFMA(a *asm) {
	a.text("peakFMA", 0, 8)
	a.op("MOVQ", "n+0(FP)", "CX")
	for r := range 14 {
		a.op("VXORPS", a.v(r), a.v(r), a.v(r))
	}
	a.mark("loop")
	for r := range 24 {
		a.op("VFMADD231PS", a.v(12), a.v(13), a.v(r%12))
	}
	a.again("loop", "CX")
	a.ret()
}

// peakInt8 are the same loops of what int8 products are made of: sums of byte products with VPDPBUSD in its two forms,
// and pairs of 16-bit products that are added in a second instruction.
func peakInt8(a *asm) {
	loop := func(i isa, product func(d int)) {
		a.isa = i
		a.text("peakInt8", 0, 8)
		a.op("MOVQ", "n+0(FP)", "CX")
		for r := range 16 {
			a.op("VPXOR", fmt.Sprintf("Y%d", r), fmt.Sprintf("Y%d", r), fmt.Sprintf("Y%d", r))
		}
		a.mark("loop")
		for r := range 24 {
			product(r % 12)
		}
		a.again("loop", "CX")
		a.ret()
	}
	loop(vnni, func(d int) { a.op("VPDPBUSD", a.v(12), a.v(13), a.v(d)) })
	loop(avxVNNI, func(d int) { a.use(dotBytes(d, 13, 12)) })
	loop(avx2, func(d int) {
		a.op("VPMADDWD", a.v(12), a.v(13), a.v(14+d%2))
		a.op("VPADDD", a.v(14+d%2), a.v(d), a.v(d))
	})
}

// readMemory reads n bytes, a multiple of 512, and uses them for nothing. It reads 8 parts side by side, because memory
// gives more to several streams than to one.
func readMemory(a *asm) {
	a.text("readMemory", 0, 16)
	a.op("MOVQ", "p+0(FP)", "SI")
	a.op("MOVQ", "n+8(FP)", "CX")
	a.op("SHRQ", "$3", "CX")
	a.op("LEAQ", "(CX)(CX*2)", "R9")
	a.op("LEAQ", "(SI)(CX*4)", "DI")
	a.op("MOVQ", "CX", "R8")
	a.mark("loop")
	for i := 0; i < 64; i += a.bytes() {
		for s := range 8 {
			mem := fmt.Sprintf([]string{"%d(%s)", "%d(%s)(R8*1)", "%d(%s)(R8*2)", "%d(%s)(R9*1)"}[s%4], i,
				[]string{"SI", "DI"}[s/4])
			a.op("VXORPS", mem, a.v(s), a.v(s))
		}
	}
	a.op("ADDQ", "$64", "SI")
	a.op("ADDQ", "$64", "DI")
	a.op("SUBQ", "$64", "CX")
	a.op("JGT", "loop")
	a.ret()
}

// peakTiles: n iterations of 4 tile products on the 2 KiB at data. The data matters: zeros draw less power and run
// faster. Few tiles, kept apart: with all eight in use the loop is slower by half if the other hyperthread is busy, and
// would not be a ceiling, see gemmTiles.
func peakTiles(a *asm, name string, product func(c, x, y *reg) macro) {
	a.named(name, 0, 24)
	config, turns, data, line := a.hold("AX", "shape of tiles"), a.hold("CX", "turns"), a.hold("SI", "data"),
		a.hold("R10", "64")
	a.mov("cfg+0(FP)", config)
	a.mov("n+8(FP)", turns)
	a.mov("data+16(FP)", data)
	a.mov("$64", line)
	a.use(tileConfig(config))
	sums, factors := a.tmms(0, 2, "sums"), a.tmms(4, 2, "factors")
	for t := range 2 {
		a.use(zeroTile(sums[t]))
		a.use(loadTile(factors[t], data, line, 1024*t))
	}
	a.repeat("loop", turns, func() {
		for t := range 4 {
			a.use(product(sums[t%2], factors[0], factors[1]))
			a.gap()
		}
	})
	a.use(tileRelease())
	a.op("RET")
}
