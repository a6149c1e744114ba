package main

import "fmt"

// stretchQueries is the most queries that meet a tile of keys at once.
const stretchQueries = 4

// stretchSoft is one step of the online softmax of rows of up to 128 logits, as softmaxStrip does it for 32 rows, bit for bit: logits turn
// into p, rounded to bfloat16, in place. A row attends to its first hi columns.
func (a *asm) stretchSoft() {
	a.text("soft", 8, 8)
	a.op("MOVQ", "p+0(FP)", "DI")
	a.op("VBROADCASTSS", soft.at("scale"), numberedExp2.scale)
	a.exp2Begin(&numberedExp2)
	a.load(soft, "logits:SI top:R8 sum:R9 acc:R10 hi:R11 rows:R12 steps:R13")
	a.mark("row")
	a.softTop()
	a.softRaise()
	a.op("VXORPS", "Z20", "Z20", "Z20")
	a.op("VXORPS", "Z21", "Z21", "Z21")
	a.op("MOVQ", "SI", "AX")
	a.op("MOVQ", "R13", "CX")
	a.mark("line")
	for i := range 2 {
		x, e := 0+4*i, 1+4*i
		a.op("VMOVUPS", fmt.Sprintf("%d(AX)", 64*i), a.v(x))
		a.op("VFMSUB213PS", "Z8", numberedExp2.scale, a.v(x))
		a.exp2(&numberedExp2, a.v(e), a.v(x), a.v(2+4*i))
		a.op("VADDPS", a.v(e), a.v(20+i), a.v(20+i))
	}
	a.narrowPair(1, 5, 1)
	a.op("VEXTRACTI64X4", "$1", "Z1", "Y5")
	for i, r := range []string{"1", "5"} {
		a.op("VPMOVZXWD", "Y"+r, "Z"+r)
		a.op("VPSLLD", "$16", "Z"+r, "Z"+r)
		a.op("VMOVUPS", "Z"+r, fmt.Sprintf("%d(AX)", 64*i))
	}
	a.op("ADDQ", "$128", "AX")
	a.op("DECQ", "CX")
	a.op("JNZ", "line")
	a.op("VADDPS", "Z21", "Z20", "Z0")
	a.foldLanes("VADDPS", a.v(0), a.v(1))
	a.op("VADDSS", "(R9)", "X0", "X0")
	a.op("VMOVSS", "X0", "(R9)")
	a.op("ADDQ", fmt.Sprintf("$%d", tileRow), "SI")
	for _, r := range []string{"R8", "R9", "R11"} {
		a.op("ADDQ", "$4", r)
	}
	a.op("DECQ", "R12")
	a.op("JNZ", "row")
	a.exp2End()
	a.op("VZEROUPPER")
	a.op("RET")
}

// foldLanes reduces register x to every lane of itself, in fold16's order; t is used on the way.
func (a *asm) foldLanes(op string, x, t any) {
	for _, s := range []string{"$0x4E", "$0xB1"} {
		a.op("VPERMILPS", s, x, t)
		a.op(op, t, x, x)
	}
	for _, s := range []string{"$0x4E", "$0xB1"} {
		a.op("VSHUFF32X4", s, x, x, t)
		a.op(op, t, x, x)
	}
}

// softTop masks the row's logits and leaves the largest in all lanes of Z8.
func (a *asm) softTop() {
	a.op("VPBROADCASTD", "(R11)", "Z9")
	a.op("VMOVUPS", a.bits(negInf), "Z10")
	a.op("VMOVAPS", "Z10", "Z8")
	a.op("LEAQ", fmt.Sprintf("iota%s<>(SB)", a.tag), "BX")
	a.op("MOVQ", "SI", "AX")
	a.op("MOVQ", "R13", "CX")
	a.mark("tops")
	for i := range 2 {
		a.op("VMOVDQU64", fmt.Sprintf("%d(BX)", 64*i), "Z11")
		a.op("VMOVUPS", fmt.Sprintf("%d(AX)", 64*i), a.v(12+i))
		a.op("VPCMPD", "$5", "Z9", "Z11", "K1") // not below hi
		a.op("VMOVAPS", "Z10", "K1", a.v(12+i))
		a.op("VMOVUPS", a.v(12+i), fmt.Sprintf("%d(AX)", 64*i))
		a.op("VMAXPS", a.v(12+i), "Z8", "Z8")
	}
	a.op("ADDQ", "$128", "AX")
	a.op("ADDQ", "$128", "BX")
	a.op("DECQ", "CX")
	a.op("JNZ", "tops")
	a.foldLanes("VMAXPS", a.v(8), a.v(9))
}

// softRaise is raiseTops for one row: it leaves what is subtracted in Z8.
func (a *asm) softRaise() {
	a.op("VMULPS", numberedExp2.scale, "Z8", "Z8")
	a.op("VBROADCASTSS", "(R8)", "Z9")
	a.op("VMAXPS", "Z9", "Z8", "Z8")
	a.op("VMOVSS", "X8", "(R8)")
	a.op("VMOVUPS", a.bits(0xFF7FFFFF), "Z10")
	a.op("VMAXPS", "Z10", "Z8", "Z8")
	a.op("VMAXPS", "Z10", "Z9", "Z9")
	a.op("VSUBPS", "Z8", "Z9", "Z9")
	a.exp2(&numberedExp2, a.v(11), a.v(9), a.v(12))
	a.op("VMULSS", "(R9)", "X11", "X12")
	a.op("VMOVSS", "X12", "(R9)")
	a.op("MOVQ", soft.at("vectors"), "DX")
	a.op("VXORPS", "Z12", "Z12", "Z12")
	a.op("VCMPPS", "$4", "Z12", "Z9", "K1")
	a.op("KORTESTW", "K1", "K1")
	a.op("JZ", "same")
	a.mark("scale")
	a.op("VMULPS", "(R10)", "Z11", "Z12")
	a.op("VMOVUPS", "Z12", "(R10)")
	a.op("ADDQ", "$64", "R10")
	a.op("DECQ", "DX")
	a.op("JNZ", "scale")
	a.op("JMP", "raised")
	a.mark("same")
	a.op("SHLQ", "$6", "DX")
	a.op("ADDQ", "DX", "R10")
	a.mark("raised")
}

// joinRows: row r of x = fx[r]·x + fy[r]·y, 16·vectors elements each.
func (a *asm) joinRows() {
	a.text("joinRows", 0, 8)
	a.op("MOVQ", "p+0(FP)", "AX")
	a.load(join, "x:DI y:SI fx:BX fy:DX ldx:R8 ldy:R9 rows:CX vecs:R13")
	a.mark("row")
	a.op("VBROADCASTSS", "(BX)", "Z0")
	a.op("VBROADCASTSS", "(DX)", "Z1")
	a.op("MOVQ", "DI", "R10")
	a.op("MOVQ", "SI", "R11")
	a.op("MOVQ", "R13", "R12")
	a.mark("vector")
	a.op("VMULPS", "(R10)", "Z0", "Z2")
	a.op("VFMADD231PS", "(R11)", "Z1", "Z2")
	a.op("VMOVUPS", "Z2", "(R10)")
	a.op("ADDQ", "$64", "R10")
	a.op("ADDQ", "$64", "R11")
	a.op("DECQ", "R12")
	a.op("JNZ", "vector")
	a.op("ADDQ", "R8", "DI")
	a.op("ADDQ", "R9", "SI")
	a.op("ADDQ", "$4", "BX")
	a.op("ADDQ", "$4", "DX")
	a.op("DECQ", "CX")
	a.op("JNZ", "row")
	a.op("VZEROUPPER")
	a.op("RET")
}

func stretchFile() []byte {
	a := newAsm(stretch)
	a.include(missingFile)
	for n := 1; n <= stretchQueries; n++ {
		a.stretchKeys(n)
	}
	for n := 1; n <= 2; n++ {
		a.stretchValues(n)
	}
	a.stretchSoft()
	a.joinRows()
	a.joinTable()
	a.iotaTable()
	return a.finish()
}

func stretchStubs(declare func(format string, a ...any)) {
	for n := 1; n <= stretchQueries; n++ {
		declare("keys%dxStretch(p *stretchKeys)", n)
	}
	for n := 1; n <= 2; n++ {
		declare("values%dxStretch(p *stretchValues)", n)
	}
	declare("softStretch(p *stretchSoft)")
	declare("joinRowsStretch(p *joinArgs)")
}
