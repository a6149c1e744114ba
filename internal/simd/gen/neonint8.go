package main

import "fmt"

// dotARM is NEON with SDOT, which sums products of four bytes each.
var dotARM = isa{tag: "SDOT", file: "sdot", lanes: 4, reg: "V", regs: 32}

// matrixARM is NEON with SMMLA, which sums products of eight bytes each, of two rows and two columns.
var matrixARM = isa{tag: "SMMLA", file: "smmla", lanes: 4, reg: "V", regs: 32}

// planar reports whether an instruction set takes x as two planes of bytes.
func (i isa) planar() bool { return i.tag == dotARM.tag || i.tag == matrixARM.tag }

// smlalSteps is the number of steps whose sums fit in 32 bits: a lane adds 16 products per step, 16·32·127·32767 < 2³¹.
const smlalSteps = 32

// int8Vectors is the number of vectors of W, four columns each, that are multiplied at once with this many rows.
// Without SDOT each column takes a register of sums, with it four columns take two, for upper and for lower bytes.
func (i isa) int8Vectors(rows int) int {
	switch {
	case i.planar() && rows <= 2:
		return 4
	case i.planar():
		return 2
	}
	return []int{0, 4, 2, 1, 1}[rows]
}

// neonBytes is fewInt8 in NEON. R3 points to the panel of W, R12 to part of it, R15 to the current step, R5 to the
// head, R13 to C, R6 to the scales of rows; R10 counts the remaining panels.
type neonBytes struct {
	*asm
	rows int
}

func (k neonBytes) emit() {
	vecs, frame := k.int8Vectors(k.rows), 0
	if !k.planar() {
		frame = 64 * k.rows * vecs
	}
	k.text(int8Name(k.rows, 1), frame, 80)
	loadArgs(k.asm, "step+16", "R2", "w+24", "R3", "head+32", "R5", "c+40", "R13", "ldc+48", "R9", "scale+56", "R6",
		"panels+64", "R10", "stride+72", "R19")
	k.op("LSL", "$2", "R9")
	fill(k.asm, 255, k.v(30))
	fill(k.asm, 0x43800000, k.v(29)) // 256
	k.mark("panel")
	k.op("MOVD", "R3", "R12")
	k.op("MOVD", imm(8/vecs), "R16")
	k.mark("part")
	k.op("MOVD", "R12", "R15")
	loadArgs(k.asm, "steps+0", "R0", "x+8", "R1")
	switch k.tag {
	case matrixARM.tag:
		k.matrixPart(vecs)
	case dotARM.tag:
		k.dotPart(vecs)
	default:
		k.smlalPart(vecs)
	}
	k.op("ADD", imm(16*vecs), "R13")
	k.op("ADD", imm(16*vecs), "R5")
	nextPart(k.asm, vecs, "R12", "R16")
	k.op("BNE", "part")
	k.op("ADD", imm(int8Head-int8Sums), "R5")
	k.op("ADD", "R19", "R3")
	k.op("SUBS", "$1", "R10")
	k.op("BNE", "panel")
	k.op("RET")
}

// dotPart sums part of a panel's columns. Registers 2·(row·vecs + vector) hold the sums of upper bytes, the next ones
// those of lower bytes.
func (k neonBytes) dotPart(vecs int) {
	for i := range 2 * k.rows * vecs {
		fill(k.asm, 0, k.v(i))
	}
	k.mark("step")
	k.op("ADD", "R2>>1", "R1", "R4") // lower bytes
	for p := range 16 {
		for r := 0; r < k.rows && p%4 == 0; r++ { // elements of four lines
			k.op("FMOVQ", fmt.Sprintf("%d(R1)", 64*r+4*p), float(k.v(20+2*r)))
			k.op("FMOVQ", fmt.Sprintf("%d(R4)", 64*r+4*p), float(k.v(21+2*r)))
		}
		k.op("PRFM", fmt.Sprintf("%d(R15)", 64*p+int8Ahead), "PLDL1STRM")
		for i := range vecs {
			w := k.v(16 + i)
			k.op("FMOVQ", fmt.Sprintf("%d(R15)", 64*p+16*i), float(w))
			for r := range k.rows {
				for part := range 2 {
					k.use(dotLane(k.v(2*(r*vecs+i)+part), w, k.v(20+2*r+part), p%4))
				}
			}
		}
	}
	k.op("ADD", "R2", "R1")
	k.op("ADD", "$2048", "R15")
	k.op("SUBS", "$1", "R0")
	k.op("BNE", "step")
	k.eachResult(vecs, func(r, i int) (hi, lo string) {
		hi, lo = k.v(2*(r*vecs+i)), k.v(2*(r*vecs+i)+1)
		carry(k.asm, hi, lo, i)
		return hi, lo
	})
}

// carry turns the sums of upper and of lower bytes of the columns of vector i into ⌊t/256⌋ and t mod 256.
func carry(a *asm, hi, lo string, i int) {
	a.op("FMOVQ", fmt.Sprintf("%d(R5)", int8Sums+16*i), float(a.v(28)))
	a.use(vvv(0x6EA08400, "sub", "4s", lo, lo, a.v(28))) // lower bytes less 128
	a.use(shifted(0x4F000400, "sshr", 64-8, 8, a.v(28), lo))
	a.use(vvv(0x4EA08400, "add", "4s", hi, hi, a.v(28)))
	a.use(vvv(0x4E201C00, "and", "16b", lo, lo, a.v(30)))
}

// matrixPart is dotPart with SMMLA. The two rows of its left operand are the upper and the lower bytes of one row of x,
// those of the right operand two columns of W; each has 8 elements of k, from two lines of W. Registers
// 2·(row·vecs + vector) hold the sums of two columns, upper bytes and then lower ones, the next registers those of the
// other two columns.
func (k neonBytes) matrixPart(vecs int) {
	for i := range 2 * k.rows * vecs {
		fill(k.asm, 0, k.v(i))
	}
	k.mark("step")
	k.op("ADD", "R2>>1", "R1", "R4") // lower bytes
	for p := 0; p < 16; p += 2 {
		for r := 0; r < k.rows && p%4 == 0; r++ { // four lines: the first 8 elements of both planes, then the last 8
			first, last := k.v(20+2*r), k.v(21+2*r)
			k.op("FMOVQ", fmt.Sprintf("%d(R1)", 64*r+4*p), float(k.v(28)))
			k.op("FMOVQ", fmt.Sprintf("%d(R4)", 64*r+4*p), float(k.v(31)))
			zipHalves(k.asm, k.v(28), k.v(31), first, last)
		}
		k.op("PRFM", fmt.Sprintf("%d(R15)", 64*p+int8Ahead), "PLDL1STRM")
		k.op("PRFM", fmt.Sprintf("%d(R15)", 64*p+64+int8Ahead), "PLDL1STRM")
		for i := range vecs {
			for line := range 2 {
				k.op("FMOVQ", fmt.Sprintf("%d(R15)", 64*(p+line)+16*i), float(k.v(16+line)))
			}
			k.op("VZIP1", k.v(17)+".S4", k.v(16)+".S4", k.v(18)+".S4")
			k.op("VZIP2", k.v(17)+".S4", k.v(16)+".S4", k.v(19)+".S4")
			for r := range k.rows {
				for pair := range 2 {
					d, n, m := 2*(r*vecs+i)+pair, 20+2*r+p%4/2, 18+pair
					k.use(word(0x4E80A400|uint32(m<<16|n<<5|d), fmt.Sprintf("smmla v%d.4s, v%d.16b, v%d.16b", d, n, m)))
				}
			}
		}
	}
	k.op("ADD", "R2", "R1")
	k.op("ADD", "$2048", "R15")
	k.op("SUBS", "$1", "R0")
	k.op("BNE", "step")
	k.eachResult(vecs, func(r, i int) (hi, lo string) {
		x, y := k.v(2*(r*vecs+i)), k.v(2*(r*vecs+i)+1)
		zipHalves(k.asm, x, y, k.v(16), k.v(17))
		carry(k.asm, k.v(16), k.v(17), i)
		return k.v(16), k.v(17)
	})
}

// dotLane: d += bytes of n · (four bytes i of m).
func dotLane(d, n, m string, i int) macro {
	return word(0x4F80E000|lane(i)|number(m)<<16|number(n)<<5|number(d),
		fmt.Sprintf("sdot v%d.4s, v%d.16b, v%d.4b[%d]", number(d), number(n), number(m), i))
}

// smlalPart sums part of a panel's columns. Register 4·(row·vecs + vector) + column holds four partial sums of a
// column. After smlalSteps steps they are added to 64-bit sums in memory.
func (k neonBytes) smlalPart(vecs int) {
	n := 4 * k.rows * vecs
	at := func(i int) string { return fmt.Sprintf("sums-%d(SP)", 16*(n-i)) }
	fill(k.asm, 0, k.v(0))
	for i := range n {
		k.op("FMOVQ", "F0", at(i))
	}
	k.mark("block")
	k.op("MOVD", imm(smlalSteps), "R7")
	k.op("CMP", "R7", "R0")
	k.op("CSEL", "LT", "R0", "R7", "R7")
	k.op("SUB", "R7", "R0")
	for i := range n {
		fill(k.asm, 0, k.v(i))
	}
	k.mark("step")
	for r := range k.rows {
		k.op("ADD", imm(128*r), "R1", leftInt8[r])
	}
	for p := range 16 {
		k.smlalLine(vecs, p)
	}
	k.op("ADD", "R2", "R1")
	k.op("ADD", "$2048", "R15")
	k.op("SUBS", "$1", "R7")
	k.op("BNE", "step")
	for i := range n {
		k.op("FMOVQ", at(i), "F16")
		k.use(turned(0x4EA06800, "sadalp", "2d", "4s", k.v(16), k.v(i)))
		k.op("FMOVQ", "F16", at(i))
	}
	k.op("CBNZ", "R0", "block")
	k.eachResult(vecs, func(r, i int) (hi, lo string) {
		for c := range 4 {
			k.op("FMOVQ", at(4*(r*vecs+i)+c), float(k.v(c)))
		}
		for c := 0; c < 4; c += 2 {
			k.use(vvv(0x4EE0BC00, "addp", "2d", k.v(c), k.v(c), k.v(c+1)))
			k.use(word(0x4F780400|number(k.v(c))<<5|number(k.v(c+1)), fmt.Sprintf("sshr v%d.2d, v%d.2d, #8", c+1, c)))
		}
		for part := range 2 { // whole numbers of 256, and all of it
			hi = k.v(4 + part)
			k.use(turned(0x0EA12800, "xtn", "2s", "2d", hi, k.v(1-part)))
			k.use(turned(0x4EA12800, "xtn2", "4s", "2d", hi, k.v(3-part)))
		}
		k.use(vvv(0x4E201C00, "and", "16b", k.v(5), k.v(5), k.v(30)))
		return k.v(4), k.v(5)
	})
}

// leftInt8 are pointers to rows of x.
var leftInt8 = []string{"R4", "R8", "R11", "R14"}

// smlalLine multiplies 4 elements of k: those of x in both halves of a register, bytes of W widened to 16 bits.
func (k neonBytes) smlalLine(vecs, p int) {
	for r := range k.rows {
		k.op("VLD1R.P", "8("+leftInt8[r]+")", "["+k.v(20+r)+".D2]")
	}
	k.op("PRFM", fmt.Sprintf("%d(R15)", 64*p+int8Ahead), "PLDL1STRM")
	for i := range vecs {
		w, up := k.v(16+2*(i%2)), k.v(17+2*(i%2))
		k.op("FMOVQ", fmt.Sprintf("%d(R15)", 64*p+16*i), float(w))
		k.use(turned(0x4F08A400, "sxtl2", "8h", "16b", up, w))
		k.use(turned(0x0F08A400, "sxtl", "8h", "8b", w, w))
		for r := range k.rows {
			sum := 4 * (r*vecs + i)
			for c, words := range []string{w, w, up, up} {
				if c%2 == 0 {
					k.use(longer(0x0E608000, "smlal", "4s", "4h", k.v(sum+c), words, k.v(20+r)))
				} else {
					k.use(longer(0x4E608000, "smlal2", "4s", "8h", k.v(sum+c), words, k.v(20+r)))
				}
			}
		}
	}
}

// eachResult turns sums into y: f gives ⌊t/256⌋ and t mod 256 of four columns.
func (k neonBytes) eachResult(vecs int, f func(r, i int) (hi, lo string)) {
	k.op("MOVD", "R13", "R4")
	for r := range k.rows {
		for i := range vecs {
			hi, lo := f(r, i)
			k.use(vv(0x4E21D800, "scvtf", hi, hi))
			k.use(vv(0x4E21D800, "scvtf", lo, lo))
			k.use(vvv(0x4E20CC00, "fmla", "4s", lo, hi, k.v(29)))
			k.op("FMOVQ", fmt.Sprintf("%d(R5)", 16*i), float(k.v(28)))
			k.use(vvv(0x6E20DC00, "fmul", "4s", lo, lo, k.v(28)))
			k.op("FMOVS", fmt.Sprintf("%d(R6)", 4*r), float(k.v(28)))
			spread(k.asm, k.v(28))
			k.use(vvv(0x6E20DC00, "fmul", "4s", lo, lo, k.v(28)))
			k.op("FMOVQ", float(lo), fmt.Sprintf("%d(R4)", 16*i))
		}
		if r < k.rows-1 {
			k.op("ADD", "R9", "R4")
		}
	}
}

// topInt8NEON is topInt8.
func topInt8NEON(a *asm) {
	a.text("topInt8", 0, 20)
	loadArgs(a, "x+0", "R0", "steps+8", "R1")
	fill(a, 0x7FFFFFFF, a.v(8))
	for i := range 4 {
		fill(a, 0, a.v(i))
	}
	a.mark("step")
	for i := range 16 {
		x := a.v(4 + i%4)
		a.op("FMOVQ", fmt.Sprintf("%d(R0)", 16*i), float(x))
		a.use(vvv(0x4E201C00, "and", "16b", x, x, a.v(8)))
		a.use(vvv(0x4EA06400, "smax", "4s", a.v(i%4), a.v(i%4), x))
	}
	a.op("ADD", "$256", "R0")
	a.op("SUBS", "$1", "R1")
	a.op("BNE", "step")
	for i := 3; i > 0; i-- {
		a.use(vvv(0x4EA06400, "smax", "4s", a.v(0), a.v(0), a.v(i)))
	}
	a.use(word(0x4EB0A800, "smaxv s0, v0.4s"))
	a.op("FMOVS", "F0", "ret+16(FP)")
	a.op("RET")
}

// splitInt8NEON rounds x·inv to 16 bits: words or, with SDOT, signed bytes of two planes, v = 256·hi + lo + 128.
func splitInt8NEON(a *asm) {
	a.text("splitInt8", 0, 36)
	loadArgs(a, "dst+0", "R0", "x+8", "R1", "steps+16", "R2", "stride+24", "R3")
	a.op("FMOVS", "inv+32(FP)", "F16")
	spread(a, a.v(16))
	fill(a, 0x80808080, a.v(17))
	a.mark("step")
	a.op("ADD", "R3>>1", "R0", "R4")
	for i := 0; i < 64; i += 16 {
		for q := range 4 {
			x := a.v(q)
			a.op("FMOVQ", fmt.Sprintf("%d(R1)", 4*i+16*q), float(x))
			a.use(vvv(0x6E20DC00, "fmul", "4s", x, x, a.v(16)))
			a.use(vv(0x4E21A800, "fcvtns", x, x))
		}
		for h := range 2 {
			a.use(turned(0x0E614800, "sqxtn", "4h", "4s", a.v(4+h), a.v(2*h)))
			a.use(turned(0x4E614800, "sqxtn2", "8h", "4s", a.v(4+h), a.v(2*h+1)))
		}
		if !a.planar() {
			a.op("FSTPQ", "(F4, F5)", fmt.Sprintf("%d(R0)", 2*i))
			continue
		}
		splitPlanes(a, i)
	}
	a.op("ADD", "$256", "R1")
	a.op("ADD", "R3", "R0")
	a.op("SUBS", "$1", "R2")
	a.op("BNE", "step")
	a.op("RET")
}

// splitPlanes stores the bytes of 16 words in V4 and V5.
func splitPlanes(a *asm, at int) {
	a.use(word(0x0F088400|4<<5|6, "shrn v6.8b, v4.8h, #8"))
	a.use(word(0x4F088400|5<<5|6, "shrn2 v6.16b, v5.8h, #8"))
	a.use(turned(0x0E212800, "xtn", "8b", "8h", a.v(7), a.v(4)))
	a.use(turned(0x4E212800, "xtn2", "16b", "8h", a.v(7), a.v(5)))
	a.use(vvv(0x6E201C00, "eor", "16b", a.v(7), a.v(7), a.v(17)))
	a.op("FMOVQ", "F6", fmt.Sprintf("%d(R0)", at))
	a.op("FMOVQ", "F7", fmt.Sprintf("%d(R4)", at))
}

func neonInt8File(i isa) []byte {
	a := newAsm(i)
	if i.tag != matrixARM.tag { // SMMLA shares those of SDOT
		topInt8NEON(a)
		splitInt8NEON(a)
	}
	for r := i.firstInt8(); r <= int8Rows; r++ {
		neonBytes{a, r}.emit()
	}
	return a.finish()
}

// firstInt8 is the fewest rows that an instruction set has a kernel for. For one row SMMLA would take as many
// instructions as SDOT, and memory is the bound anyway.
func (i isa) firstInt8() int {
	if i.tag == matrixARM.tag {
		return 2
	}
	return 1
}
