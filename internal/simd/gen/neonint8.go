package main

import "fmt"

// dotARM is NEON with SDOT, which sums products of four bytes each.
var dotARM = isa{tag: "SDOT", file: "sdot", lanes: 4, reg: "V", regs: 32}

// matrixARM is NEON with SMMLA, which sums products of eight bytes each, of two rows and two columns.
var matrixARM = isa{tag: "SMMLA", file: "smmla", lanes: 4, reg: "V", regs: 32}

// planar says that an instruction set takes x as two planes of bytes.
func (i isa) planar() bool { return i.tag == dotARM.tag || i.tag == matrixARM.tag }

// smlalSteps is the steps of k whose sums have room in 32 bits: each lane takes 16 products a step, 16·32·127·32767 < 2³¹.
const smlalSteps = 32

// int8Vectors is the number of vectors of W, four columns each, that so many rows meet at once. Without SDOT every column has a
// register of sums, with it every four columns have two, for upper and for lower bytes.
func (i isa) int8Vectors(rows int) int {
	switch {
	case i.planar() && rows <= 2:
		return 4
	case i.planar():
		return 2
	}
	return []int{0, 4, 2, 1, 1}[rows]
}

// fewInt8NEON: R3 is W's panel, R12 a part of it, R15 where that is; R5 the head, R13 C, R6 rows' scales, R10 the panels left.
func (a *asm) fewInt8NEON(rows int) {
	vecs, frame := a.int8Vectors(rows), 0
	if !a.planar() {
		frame = 64 * rows * vecs
	}
	a.text(int8Name(rows, 1), frame, 80)
	a.args("step+16", "R2", "w+24", "R3", "head+32", "R5", "c+40", "R13", "ldc+48", "R9", "scale+56", "R6", "panels+64", "R10", "stride+72", "R19")
	a.op("LSL", "$2", "R9")
	a.fill(255, a.v(30))
	a.fill(0x43800000, a.v(29)) // 256
	a.mark("panel")
	a.op("MOVD", "R3", "R12")
	a.op("MOVD", imm(8/vecs), "R16")
	a.mark("part")
	a.op("MOVD", "R12", "R15")
	a.args("steps+0", "R0", "x+8", "R1")
	switch a.tag {
	case matrixARM.tag:
		a.matrixPart(rows, vecs)
	case dotARM.tag:
		a.dotPart(rows, vecs)
	default:
		a.smlalPart(rows, vecs)
	}
	a.op("ADD", imm(16*vecs), "R13")
	a.op("ADD", imm(16*vecs), "R5")
	a.nextPart(vecs, "R12", "R16")
	a.op("BNE", "part")
	a.op("ADD", imm(int8Head-int8Sums), "R5")
	a.op("ADD", "R19", "R3")
	a.op("SUBS", "$1", "R10")
	a.op("BNE", "panel")
	a.op("RET")
}

// dotPart sums a part of a panel's columns. Registers 2·(row·vecs + vector) hold the sums with upper bytes, the next ones those with lower bytes.
func (a *asm) dotPart(rows, vecs int) {
	for i := range 2 * rows * vecs {
		a.fill(0, a.v(i))
	}
	a.mark("step")
	a.op("ADD", "R2>>1", "R1", "R4") // lower bytes
	for p := range 16 {
		for r := 0; r < rows && p%4 == 0; r++ { // four lines' elements
			a.op("FMOVQ", fmt.Sprintf("%d(R1)", 64*r+4*p), float(a.v(20+2*r)))
			a.op("FMOVQ", fmt.Sprintf("%d(R4)", 64*r+4*p), float(a.v(21+2*r)))
		}
		a.op("PRFM", fmt.Sprintf("%d(R15)", 64*p+int8Ahead), "PLDL1STRM")
		for i := range vecs {
			w := a.v(16 + i)
			a.op("FMOVQ", fmt.Sprintf("%d(R15)", 64*p+16*i), float(w))
			for r := range rows {
				for part := range 2 {
					a.dotLane(a.v(2*(r*vecs+i)+part), w, a.v(20+2*r+part), p%4)
				}
			}
		}
	}
	a.op("ADD", "R2", "R1")
	a.op("ADD", "$2048", "R15")
	a.op("SUBS", "$1", "R0")
	a.op("BNE", "step")
	a.eachResult(rows, vecs, func(r, i int) (hi, lo string) {
		hi, lo = a.v(2*(r*vecs+i)), a.v(2*(r*vecs+i)+1)
		a.carry(hi, lo, i)
		return hi, lo
	})
}

// carry takes sums with upper and lower bytes of the columns of vector i to ⌊t/256⌋ and t mod 256.
func (a *asm) carry(hi, lo string, i int) {
	a.op("FMOVQ", fmt.Sprintf("%d(R5)", int8Sums+16*i), float(a.v(28)))
	a.vvv(0x6EA08400, "sub", "4s", lo, lo, a.v(28)) // lower bytes less 128
	a.shifted(0x4F000400, "sshr", 64-8, 8, a.v(28), lo)
	a.vvv(0x4EA08400, "add", "4s", hi, hi, a.v(28))
	a.vvv(0x4E201C00, "and", "16b", lo, lo, a.v(30))
}

// matrixPart is dotPart with SMMLA: the two rows of its left factor are the upper and the lower bytes of one row of x, the right factor's are
// two columns, 8 elements of k each, from two lines of W. Registers 2·(row·vecs + vector) hold the sums of two columns with upper bytes and of the same
// two with lower ones, the next registers those of the other two columns.
func (a *asm) matrixPart(rows, vecs int) {
	for i := range 2 * rows * vecs {
		a.fill(0, a.v(i))
	}
	a.mark("step")
	a.op("ADD", "R2>>1", "R1", "R4") // lower bytes
	for p := 0; p < 16; p += 2 {
		for r := 0; r < rows && p%4 == 0; r++ { // four lines' elements: the first 8 of both planes, the last 8
			first, last := a.v(20+2*r), a.v(21+2*r)
			a.op("FMOVQ", fmt.Sprintf("%d(R1)", 64*r+4*p), float(a.v(28)))
			a.op("FMOVQ", fmt.Sprintf("%d(R4)", 64*r+4*p), float(a.v(31)))
			a.zipHalves(a.v(28), a.v(31), first, last)
		}
		a.op("PRFM", fmt.Sprintf("%d(R15)", 64*p+int8Ahead), "PLDL1STRM")
		a.op("PRFM", fmt.Sprintf("%d(R15)", 64*p+64+int8Ahead), "PLDL1STRM")
		for i := range vecs {
			for line := range 2 {
				a.op("FMOVQ", fmt.Sprintf("%d(R15)", 64*(p+line)+16*i), float(a.v(16+line)))
			}
			a.op("VZIP1", a.v(17)+".S4", a.v(16)+".S4", a.v(18)+".S4")
			a.op("VZIP2", a.v(17)+".S4", a.v(16)+".S4", a.v(19)+".S4")
			for r := range rows {
				for pair := range 2 {
					d, n, m := 2*(r*vecs+i)+pair, 20+2*r+p%4/2, 18+pair
					a.word(0x4E80A400|uint32(m<<16|n<<5|d), fmt.Sprintf("smmla v%d.4s, v%d.16b, v%d.16b", d, n, m))
				}
			}
		}
	}
	a.op("ADD", "R2", "R1")
	a.op("ADD", "$2048", "R15")
	a.op("SUBS", "$1", "R0")
	a.op("BNE", "step")
	a.eachResult(rows, vecs, func(r, i int) (hi, lo string) {
		x, y := a.v(2*(r*vecs+i)), a.v(2*(r*vecs+i)+1)
		a.zipHalves(x, y, a.v(16), a.v(17))
		a.carry(a.v(16), a.v(17), i)
		return a.v(16), a.v(17)
	})
}

// dotLane: d += bytes of n · (four bytes i of m).
func (a *asm) dotLane(d, n, m string, i int) {
	a.word(0x4F80E000|lane(i)|number(m)<<16|number(n)<<5|number(d), fmt.Sprintf("sdot v%d.4s, v%d.16b, v%d.4b[%d]", number(d), number(n), number(m), i))
}

// smlalPart sums a part of a panel's columns: register 4·(row·vecs + vector) + column holds four sums. Those of up to 32 steps are
// added in memory, in 64 bits.
func (a *asm) smlalPart(rows, vecs int) {
	n := 4 * rows * vecs
	at := func(i int) string { return fmt.Sprintf("sums-%d(SP)", 16*(n-i)) }
	a.fill(0, a.v(0))
	for i := range n {
		a.op("FMOVQ", "F0", at(i))
	}
	a.mark("block")
	a.op("MOVD", imm(smlalSteps), "R7")
	a.op("CMP", "R7", "R0")
	a.op("CSEL", "LT", "R0", "R7", "R7")
	a.op("SUB", "R7", "R0")
	for i := range n {
		a.fill(0, a.v(i))
	}
	a.mark("step")
	for r := range rows {
		a.op("ADD", imm(128*r), "R1", leftInt8[r])
	}
	for p := range 16 {
		a.smlalLine(rows, vecs, p)
	}
	a.op("ADD", "R2", "R1")
	a.op("ADD", "$2048", "R15")
	a.op("SUBS", "$1", "R7")
	a.op("BNE", "step")
	for i := range n {
		a.op("FMOVQ", at(i), "F16")
		a.turned(0x4EA06800, "sadalp", "2d", "4s", a.v(16), a.v(i))
		a.op("FMOVQ", "F16", at(i))
	}
	a.op("CBNZ", "R0", "block")
	a.eachResult(rows, vecs, func(r, i int) (hi, lo string) {
		for c := range 4 {
			a.op("FMOVQ", at(4*(r*vecs+i)+c), float(a.v(c)))
		}
		for c := 0; c < 4; c += 2 {
			a.vvv(0x4EE0BC00, "addp", "2d", a.v(c), a.v(c), a.v(c+1))
			a.word(0x4F780400|number(a.v(c))<<5|number(a.v(c+1)), fmt.Sprintf("sshr v%d.2d, v%d.2d, #8", c+1, c))
		}
		for part := range 2 { // whole numbers of 256, and all of it
			hi = a.v(4 + part)
			a.turned(0x0EA12800, "xtn", "2s", "2d", hi, a.v(1-part))
			a.turned(0x4EA12800, "xtn2", "4s", "2d", hi, a.v(3-part))
		}
		a.vvv(0x4E201C00, "and", "16b", a.v(5), a.v(5), a.v(30))
		return a.v(4), a.v(5)
	})
}

// leftInt8 are pointers to rows of x.
var leftInt8 = []string{"R4", "R8", "R11", "R14"}

// smlalLine is 4 elements of k: those of x twice, bytes of W as words.
func (a *asm) smlalLine(rows, vecs, p int) {
	for r := range rows {
		a.op("VLD1R.P", "8("+leftInt8[r]+")", "["+a.v(20+r)+".D2]")
	}
	a.op("PRFM", fmt.Sprintf("%d(R15)", 64*p+int8Ahead), "PLDL1STRM")
	for i := range vecs {
		w, up := a.v(16+2*(i%2)), a.v(17+2*(i%2))
		a.op("FMOVQ", fmt.Sprintf("%d(R15)", 64*p+16*i), float(w))
		a.turned(0x4F08A400, "sxtl2", "8h", "16b", up, w)
		a.turned(0x0F08A400, "sxtl", "8h", "8b", w, w)
		for r := range rows {
			sum := 4 * (r*vecs + i)
			for c, words := range []string{w, w, up, up} {
				if c%2 == 0 {
					a.longer(0x0E608000, "smlal", "4s", "4h", a.v(sum+c), words, a.v(20+r))
				} else {
					a.longer(0x4E608000, "smlal2", "4s", "8h", a.v(sum+c), words, a.v(20+r))
				}
			}
		}
	}
}

// eachResult turns sums into y: f gives ⌊t/256⌋ and t mod 256 of four columns.
func (a *asm) eachResult(rows, vecs int, f func(r, i int) (hi, lo string)) {
	a.op("MOVD", "R13", "R4")
	for r := range rows {
		for i := range vecs {
			hi, lo := f(r, i)
			a.vv(0x4E21D800, "scvtf", hi, hi)
			a.vv(0x4E21D800, "scvtf", lo, lo)
			a.vvv(0x4E20CC00, "fmla", "4s", lo, hi, a.v(29))
			a.op("FMOVQ", fmt.Sprintf("%d(R5)", 16*i), float(a.v(28)))
			a.vvv(0x6E20DC00, "fmul", "4s", lo, lo, a.v(28))
			a.op("FMOVS", fmt.Sprintf("%d(R6)", 4*r), float(a.v(28)))
			a.spread(a.v(28))
			a.vvv(0x6E20DC00, "fmul", "4s", lo, lo, a.v(28))
			a.op("FMOVQ", float(lo), fmt.Sprintf("%d(R4)", 16*i))
		}
		if r < rows-1 {
			a.op("ADD", "R9", "R4")
		}
	}
}

// topInt8NEON is topInt8.
func (a *asm) topInt8NEON() {
	a.text("topInt8", 0, 20)
	a.args("x+0", "R0", "steps+8", "R1")
	a.fill(0x7FFFFFFF, a.v(8))
	for i := range 4 {
		a.fill(0, a.v(i))
	}
	a.mark("step")
	for i := range 16 {
		x := a.v(4 + i%4)
		a.op("FMOVQ", fmt.Sprintf("%d(R0)", 16*i), float(x))
		a.vvv(0x4E201C00, "and", "16b", x, x, a.v(8))
		a.vvv(0x4EA06400, "smax", "4s", a.v(i%4), a.v(i%4), x)
	}
	a.op("ADD", "$256", "R0")
	a.op("SUBS", "$1", "R1")
	a.op("BNE", "step")
	for i := 3; i > 0; i-- {
		a.vvv(0x4EA06400, "smax", "4s", a.v(0), a.v(0), a.v(i))
	}
	a.word(0x4EB0A800, "smaxv s0, v0.4s")
	a.op("FMOVS", "F0", "ret+16(FP)")
	a.op("RET")
}

// splitInt8NEON rounds x·inv to 16 bits: words or, with SDOT, signed bytes of two planes, v = 256·hi + lo + 128.
func (a *asm) splitInt8NEON() {
	a.text("splitInt8", 0, 36)
	a.args("dst+0", "R0", "x+8", "R1", "steps+16", "R2", "stride+24", "R3")
	a.op("FMOVS", "inv+32(FP)", "F16")
	a.spread(a.v(16))
	a.fill(0x80808080, a.v(17))
	a.mark("step")
	a.op("ADD", "R3>>1", "R0", "R4")
	for i := 0; i < 64; i += 16 {
		for q := range 4 {
			x := a.v(q)
			a.op("FMOVQ", fmt.Sprintf("%d(R1)", 4*i+16*q), float(x))
			a.vvv(0x6E20DC00, "fmul", "4s", x, x, a.v(16))
			a.vv(0x4E21A800, "fcvtns", x, x)
		}
		for h := range 2 {
			a.turned(0x0E614800, "sqxtn", "4h", "4s", a.v(4+h), a.v(2*h))
			a.turned(0x4E614800, "sqxtn2", "8h", "4s", a.v(4+h), a.v(2*h+1))
		}
		if !a.planar() {
			a.op("FSTPQ", "(F4, F5)", fmt.Sprintf("%d(R0)", 2*i))
			continue
		}
		a.splitPlanes(i)
	}
	a.op("ADD", "$256", "R1")
	a.op("ADD", "R3", "R0")
	a.op("SUBS", "$1", "R2")
	a.op("BNE", "step")
	a.op("RET")
}

// splitPlanes stores the bytes of 16 words in V4 and V5.
func (a *asm) splitPlanes(at int) {
	a.word(0x0F088400|4<<5|6, "shrn v6.8b, v4.8h, #8")
	a.word(0x4F088400|5<<5|6, "shrn2 v6.16b, v5.8h, #8")
	a.turned(0x0E212800, "xtn", "8b", "8h", a.v(7), a.v(4))
	a.turned(0x4E212800, "xtn2", "16b", "8h", a.v(7), a.v(5))
	a.vvv(0x6E201C00, "eor", "16b", a.v(7), a.v(7), a.v(17))
	a.op("FMOVQ", "F6", fmt.Sprintf("%d(R0)", at))
	a.op("FMOVQ", "F7", fmt.Sprintf("%d(R4)", at))
}

func neonInt8File(i isa) []byte {
	a := newAsm(i)
	if i.tag != matrixARM.tag { // which has SDOT's
		a.topInt8NEON()
		a.splitInt8NEON()
	}
	for r := i.firstInt8(); r <= int8Rows; r++ {
		a.fewInt8NEON(r)
	}
	return a.finish()
}

// firstInt8 is the fewest rows that an instruction set has a kernel for. One row is bound by memory, and SMMLA's would take as many instructions as SDOT's.
func (i isa) firstInt8() int {
	if i.tag == matrixARM.tag {
		return 2
	}
	return 1
}
