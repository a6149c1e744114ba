package main

import "fmt"

// expPack is exp on its way into a packed A: a row of steps·32 elements, e^(scale·x − shift) for the first n and 0 for the
// rest, rounded to bfloat16, a line for each step of the panel. The sum, before rounding, is returned.
func (a *asm) expPack() {
	b := &body{asm: a, kernel: &vecOp{name: "expPack", accs: 2, unroll: 1}, free: 4}
	a.text("expPack", 0, 44)
	a.op("MOVQ", "dst+0(FP)", "DI")
	a.op("MOVQ", "src+8(FP)", "SI")
	a.op("MOVQ", "n+16(FP)", "CX")
	a.op("MOVQ", "steps+24(FP)", "R9")
	a.op("VBROADCASTSS", "scale+32(FP)", "Z2")
	a.op("VBROADCASTSS", "shift+36(FP)", "Z3")
	a.op("VXORPS", "Z0", "Z0", "Z0")
	a.op("VXORPS", "Z1", "Z1", "Z1")
	a.mark("whole")
	a.op("CMPQ", "CX", "$32")
	a.op("JLT", "part")
	b.expLine(false)
	a.op("ADDQ", "$128", "SI")
	a.op("SUBQ", "$32", "CX")
	a.op("DECQ", "R9")
	a.op("JNZ", "whole")
	a.op("JMP", "done")
	a.mark("part")
	a.op("TESTQ", "CX", "CX")
	a.op("JLE", "rest")
	a.op("MOVQ", "$1", "AX")
	a.op("SHLQ", "CX", "AX")
	a.op("DECQ", "AX")
	a.op("KMOVW", "AX", "K3")
	a.op("SHRQ", "$16", "AX")
	a.op("KMOVW", "AX", "K4")
	b.expLine(true)
	a.op("DECQ", "R9")
	a.op("JZ", "done")
	a.mark("rest")
	a.op("VXORPS", "Z4", "Z4", "Z4")
	a.mark("zeros")
	a.op("VMOVUPS", "Z4", "(DI)")
	a.op("ADDQ", fmt.Sprintf("$%d", panelStep), "DI")
	a.op("DECQ", "R9")
	a.op("JNZ", "zeros")
	a.mark("done")
	b.fold("VADDPS")
	a.op("VMOVSS", "X0", "ret+40(FP)")
	a.op("VZEROUPPER")
	a.op("RET")
}

// expLine is one line: two vectors, under masks K3 and K4 at the end of the row.
func (b *body) expLine(masked bool) {
	var e [2]int
	for i := range e {
		b.free = 4 + 4*i
		x, mem := b.tmp(), fmt.Sprintf("%d(SI)", 64*i)
		if masked {
			b.op("VMOVUPS.Z", mem, fmt.Sprintf("K%d", 3+i), x)
		} else {
			b.op("VMOVUPS", mem, x)
		}
		b.op("VFMSUB213PS", "Z3", "Z2", x)
		r := b.exp(x)
		if masked {
			b.op("VMOVAPS.Z", r, fmt.Sprintf("K%d", 3+i), r)
		}
		b.op("VADDPS", r, b.v(i), b.v(i))
		if _, err := fmt.Sscanf(r, "Z%d", &e[i]); err != nil {
			panic(err)
		}
	}
	b.narrowPair(e[0], e[1], e[0])
	b.op("VMOVDQU64", b.v(e[0]), "(DI)")
	b.op("ADDQ", fmt.Sprintf("$%d", panelStep), "DI")
}
