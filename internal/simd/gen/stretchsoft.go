package main

import "fmt"

// stretchQueries is the most queries that meet a tile of keys at once.
const stretchQueries = 4

// softKernel is one step of the online softmax of rows of up to 128 logits, as softmaxStrip does it for 32 rows, bit for bit: logits turn
// into p, rounded to bfloat16, in place. A row attends to its first hi columns.
type softKernel struct{ *asm }

func (k softKernel) emit() {
	k.text("soft", 8, 8)
	k.op("MOVQ", "p+0(FP)", "DI")
	k.op("VBROADCASTSS", soft.at("scale"), numberedExp2.scale)
	beginExp2(k.asm, &numberedExp2)
	k.load(soft, "logits:SI top:R8 sum:R9 acc:R10 hi:R11 rows:R12 steps:R13")
	k.mark("row")
	k.top()
	k.raise()
	k.op("VXORPS", "Z20", "Z20", "Z20")
	k.op("VXORPS", "Z21", "Z21", "Z21")
	k.op("MOVQ", "SI", "AX")
	k.op("MOVQ", "R13", "CX")
	k.mark("line")
	for i := range 2 {
		x, e := 0+4*i, 1+4*i
		k.op("VMOVUPS", fmt.Sprintf("%d(AX)", 64*i), k.v(x))
		k.op("VFMSUB213PS", "Z8", numberedExp2.scale, k.v(x))
		exp2(k.asm, &numberedExp2, k.v(e), k.v(x), k.v(2+4*i))
		k.op("VADDPS", k.v(e), k.v(20+i), k.v(20+i))
	}
	k.use(narrowPair(1, 5, 1))
	k.op("VEXTRACTI64X4", "$1", "Z1", "Y5")
	for i, r := range []string{"1", "5"} {
		k.op("VPMOVZXWD", "Y"+r, "Z"+r)
		k.op("VPSLLD", "$16", "Z"+r, "Z"+r)
		k.op("VMOVUPS", "Z"+r, fmt.Sprintf("%d(AX)", 64*i))
	}
	k.op("ADDQ", "$128", "AX")
	k.op("DECQ", "CX")
	k.op("JNZ", "line")
	k.op("VADDPS", "Z21", "Z20", "Z0")
	foldLanes(k.asm, "VADDPS", k.v(0), k.v(1))
	k.op("VADDSS", "(R9)", "X0", "X0")
	k.op("VMOVSS", "X0", "(R9)")
	k.op("ADDQ", fmt.Sprintf("$%d", tileRow), "SI")
	for _, r := range []string{"R8", "R9", "R11"} {
		k.op("ADDQ", "$4", r)
	}
	k.op("DECQ", "R12")
	k.op("JNZ", "row")
	endExp2(k.asm)
	k.op("VZEROUPPER")
	k.op("RET")
}

// foldLanes reduces register x to every lane of itself, in fold16's order; t is used on the way.
func foldLanes(a *asm, op string, x, t any) {
	for _, s := range []string{"$0x4E", "$0xB1"} {
		a.op("VPERMILPS", s, x, t)
		a.op(op, t, x, x)
	}
	for _, s := range []string{"$0x4E", "$0xB1"} {
		a.op("VSHUFF32X4", s, x, x, t)
		a.op(op, t, x, x)
	}
}

// top masks the row's logits and leaves the largest in all lanes of Z8.
func (k softKernel) top() {
	k.op("VPBROADCASTD", "(R11)", "Z9")
	k.op("VMOVUPS", k.bits(negInf), "Z10")
	k.op("VMOVAPS", "Z10", "Z8")
	k.op("LEAQ", fmt.Sprintf("iota%s<>(SB)", k.tag), "BX")
	k.op("MOVQ", "SI", "AX")
	k.op("MOVQ", "R13", "CX")
	k.mark("tops")
	for i := range 2 {
		k.op("VMOVDQU64", fmt.Sprintf("%d(BX)", 64*i), "Z11")
		k.op("VMOVUPS", fmt.Sprintf("%d(AX)", 64*i), k.v(12+i))
		k.op("VPCMPD", "$5", "Z9", "Z11", "K1") // not below hi
		k.op("VMOVAPS", "Z10", "K1", k.v(12+i))
		k.op("VMOVUPS", k.v(12+i), fmt.Sprintf("%d(AX)", 64*i))
		k.op("VMAXPS", k.v(12+i), "Z8", "Z8")
	}
	k.op("ADDQ", "$128", "AX")
	k.op("ADDQ", "$128", "BX")
	k.op("DECQ", "CX")
	k.op("JNZ", "tops")
	foldLanes(k.asm, "VMAXPS", k.v(8), k.v(9))
}

// raise is raiseTops for one row: it leaves what is subtracted in Z8.
func (k softKernel) raise() {
	k.op("VMULPS", numberedExp2.scale, "Z8", "Z8")
	k.op("VBROADCASTSS", "(R8)", "Z9")
	k.op("VMAXPS", "Z9", "Z8", "Z8")
	k.op("VMOVSS", "X8", "(R8)")
	k.op("VMOVUPS", k.bits(0xFF7FFFFF), "Z10")
	k.op("VMAXPS", "Z10", "Z8", "Z8")
	k.op("VMAXPS", "Z10", "Z9", "Z9")
	k.op("VSUBPS", "Z8", "Z9", "Z9")
	exp2(k.asm, &numberedExp2, k.v(11), k.v(9), k.v(12))
	k.op("VMULSS", "(R9)", "X11", "X12")
	k.op("VMOVSS", "X12", "(R9)")
	k.op("MOVQ", soft.at("vectors"), "DX")
	k.op("VXORPS", "Z12", "Z12", "Z12")
	k.op("VCMPPS", "$4", "Z12", "Z9", "K1")
	k.op("KORTESTW", "K1", "K1")
	k.op("JZ", "same")
	k.mark("scale")
	k.op("VMULPS", "(R10)", "Z11", "Z12")
	k.op("VMOVUPS", "Z12", "(R10)")
	k.op("ADDQ", "$64", "R10")
	k.op("DECQ", "DX")
	k.op("JNZ", "scale")
	k.op("JMP", "raised")
	k.mark("same")
	k.op("SHLQ", "$6", "DX")
	k.op("ADDQ", "DX", "R10")
	k.mark("raised")
}

// joinRows: row r of x = fx[r]·x + fy[r]·y, 16·vectors elements each.
func joinRows(a *asm) {
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
		stretchKeys(a, n)
	}
	for n := 1; n <= 2; n++ {
		valuesKernel{a, n}.emit()
	}
	softKernel{a}.emit()
	joinRows(a)
	joinTable(a)
	iotaTable(a)
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
