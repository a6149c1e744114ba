package main

import "fmt"

// rotatePairs turns the pairs (x[2j], x[2j+1]) by cos[j], sin[j], whole vectors of x only. With c and s each element twice
// and x' = x with the elements of each pair exchanged: even lanes x·c − x'·s, odd lanes x·c + x'·s.
func (a *asm) rotatePairs() {
	a.text("rotatePairs", 0, 72)
	a.op("MOVQ", "x_base+0(FP)", "DI")
	a.op("MOVQ", "x_len+8(FP)", "CX")
	a.op("MOVQ", "cos_base+24(FP)", "SI")
	a.op("MOVQ", "sin_base+48(FP)", "BX")
	a.op("VMOVUPS", "twice"+a.tag+"<>(SB)", a.v(4))
	a.op("XORQ", "AX", "AX")
	half := "Y"
	if !a.wide() {
		half = "X"
	}
	a.mark("loop")
	a.op("CMPQ", "CX", fmt.Sprintf("$%d", a.lanes))
	a.op("JLT", "done")
	a.op("VMOVUPS", "(DI)(AX*4)", a.v(0))
	a.op("VMOVUPS", "(SI)(AX*2)", half+"1")
	a.op("VMOVUPS", "(BX)(AX*2)", half+"2")
	a.op("VPERMPS", a.v(1), a.v(4), a.v(1))
	a.op("VPERMPS", a.v(2), a.v(4), a.v(2))
	a.op("VPERMILPS", "$0xB1", a.v(0), a.v(3))
	a.op("VMULPS", a.v(3), a.v(2), a.v(2))
	a.op("VFMADDSUB213PS", a.v(2), a.v(1), a.v(0))
	a.op("VMOVUPS", a.v(0), "(DI)(AX*4)")
	a.op("ADDQ", fmt.Sprintf("$%d", a.lanes), "AX")
	a.op("SUBQ", fmt.Sprintf("$%d", a.lanes), "CX")
	a.op("JMP", "loop")
	a.mark("done")
	a.op("VZEROUPPER")
	a.op("RET")
	for i := range a.lanes / 2 {
		fmt.Fprintf(&a.out, "DATA twice%s<>+%d(SB)/8, $0x%08X%08X\n", a.tag, 8*i, i, i)
	}
	fmt.Fprintf(&a.out, "GLOBL twice%s<>(SB), RODATA|NOPTR, $%d\n", a.tag, a.bytes())
}
