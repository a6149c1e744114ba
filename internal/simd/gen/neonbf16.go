package main

import (
	"bytes"
	"fmt"
)

// Products of bfloat16 with BFMMLA, which multiplies 2 rows by 2 columns, 4 elements of k each, and adds to 4 sums.
//
// Operands are first reordered for it: groups of 8 rows or columns, and in a group, for every 4 elements of k, four
// vectors of 2 rows or columns. A tile of 8 × 8 sums then takes 16 BFMMLA for 8 vectors, which are loaded in pairs.

// mmlaRun is the number of bytes of 4 elements of k of a group, mmlaStep that of 32.
const mmlaRun, mmlaStep = 64, 8 * mmlaRun

// mmla: C[8,8] (+)= A·B of two groups.
func mmla(a *asm) {
	a.text("mmla", 0, 41)
	loadArgs(a, "steps+0", "R0", "a+8", "R1", "b+16", "R2", "c+24", "R3", "ldc+32", "R4")
	a.op("LSL", "$2", "R4")
	a.op("MOVBU", "load+40(FP)", "R5")
	a.op("CBZ", "R5", "zero")
	eachSquare(a, func(r, i int, up, down string) {
		a.op("FMOVQ", up, "F24")
		a.op("FMOVQ", down, "F25")
		zipHalves(a, "V24", "V25", a.v(4*r+i), a.v(4*r+i+1))
	})
	a.op("JMP", "begin")
	a.mark("zero")
	for i := range 16 {
		fill(a, 0, a.v(i))
	}
	a.mark("begin")
	a.op("LSL", "$2", "R0") // pairs of runs
	a.mark("two")
	for u := range 2 {
		for i := 0; i < 4; i += 2 {
			a.op("FLDPQ", fmt.Sprintf("%d(R1)", mmlaRun*u+16*i), fmt.Sprintf("(F%d, F%d)", 16+8*u+i, 17+8*u+i))
			a.op("FLDPQ", fmt.Sprintf("%d(R2)", mmlaRun*u+16*i), fmt.Sprintf("(F%d, F%d)", 20+8*u+i, 21+8*u+i))
		}
		for r := range 4 {
			for c := range 4 {
				d, n, m := 4*r+c, 16+8*u+r, 20+8*u+c
				a.use(word(0x6E40EC00|uint32(m<<16|n<<5|d), fmt.Sprintf("bfmmla v%d.4s, v%d.8h, v%d.8h", d, n, m)))
			}
		}
	}
	a.op("ADD", imm(2*mmlaRun), "R1")
	a.op("ADD", imm(2*mmlaRun), "R2")
	a.op("SUBS", "$1", "R0")
	a.op("BNE", "two")
	eachSquare(a, func(r, i int, up, down string) {
		zipHalves(a, a.v(4*r+i), a.v(4*r+i+1), "V24", "V25")
		a.op("FMOVQ", "F24", up)
		a.op("FMOVQ", "F25", down)
	})
	a.op("RET")
}

// eachSquare calls f for pairs of rows of C, which R5 and R6 point to, and four columns at a time. Accumulators 4·r + i
// and 4·r + i + 1 hold those sums, i = 0 or 2.
func eachSquare(a *asm, f func(r, i int, up, down string)) {
	a.op("MOVD", "R3", "R5")
	for r := range 4 {
		a.op("ADD", "R4", "R5", "R6")
		for i := 0; i < 4; i += 2 {
			f(r, i, fmt.Sprintf("%d(R5)", 8*i), fmt.Sprintf("%d(R6)", 8*i))
		}
		a.op("ADD", "R4", "R6", "R5")
	}
}

// zipHalves: lo is the lower halves of x and y, hi their upper halves.
func zipHalves(a *asm, x, y, lo, hi string) {
	a.op("VZIP1", y+".D2", x+".D2", lo+".D2")
	a.op("VZIP2", y+".D2", x+".D2", hi+".D2")
}

// orderRows reorders 8 rows of a packed A, whose lines hold 32 elements of k of a row.
func orderRows(a *asm) {
	orderSteps(a, "orderRows", orderRowsStep)
}

func orderRowsStep(a *asm) {
	for k := 0; k < 32; k += 8 {
		for r := range 8 {
			a.op("FMOVQ", fmt.Sprintf("%d(R1)", 64*r+2*k), float(a.v(r)))
		}
		for r := 0; r < 8; r += 2 {
			zipHalves(a, a.v(r), a.v(r+1), a.v(8+r/2), a.v(12+r/2))
		}
		for i := 0; i < 8; i += 2 {
			a.op("FSTPQ", fmt.Sprintf("(F%d, F%d)", 8+i, 9+i), fmt.Sprintf("%d(R0)", mmlaRun/4*k+16*i))
		}
	}
}

// orderColumns reorders 8 columns of a packed B, whose lines hold 2 elements of k of 16 columns.
func orderColumns(a *asm) {
	orderSteps(a, "orderColumns", orderColumnsStep)
}

func orderColumnsStep(a *asm) {
	for p := 0; p < 16; p += 2 {
		a.op("FLDPQ", fmt.Sprintf("%d(R1)", 64*p), "(F0, F1)")
		a.op("FLDPQ", fmt.Sprintf("%d(R1)", 64*p+64), "(F2, F3)")
		for i := range 2 {
			x, y := a.v(i)+".S4", a.v(2+i)+".S4"
			a.op("VZIP1", y, x, a.v(4+2*i)+".S4")
			a.op("VZIP2", y, x, a.v(5+2*i)+".S4")
		}
		for i := 0; i < 4; i += 2 {
			a.op("FSTPQ", fmt.Sprintf("(F%d, F%d)", 4+i, 5+i), fmt.Sprintf("%d(R0)", mmlaRun*p/2+16*i))
		}
	}
}

// orderSteps repeats step, which reads at R1 and writes at R0, R2 times.
func orderSteps(a *asm, name string, step func(a *asm)) {
	a.text(name, 0, 24)
	loadArgs(a, "dst+0", "R0", "src+8", "R1", "steps+16", "R2")
	a.mark("step")
	step(a)
	a.op("ADD", imm(panelStep), "R1")
	a.op("ADD", imm(mmlaStep), "R0")
	a.op("SUBS", "$1", "R2")
	a.op("BNE", "step")
	a.op("RET")
}

func neonBF16File() []byte {
	a := newAsm(bf16ARM)
	mmla(a)
	orderRows(a)
	orderColumns(a)
	narrowOp.emit(a)
	for _, o := range bf16Ops() {
		o.emit(a)
	}
	return a.finish()
}

func declareBF16ARM(out *bytes.Buffer, declare func(format string, a ...any)) {
	tag := bf16ARM.tag
	declare("mmla%s(steps int, a, b *uint16, c *float32, ldc int, load bool)", tag)
	declare("orderRows%s(dst, src *uint16, steps int)", tag)
	declare("orderColumns%s(dst, src *uint16, steps int)", tag)
	declare("narrow%s%s", tag, narrowOp.signature())
	fmt.Fprintf(out, "\nvar vectors%s = bf16Vectors{\n", tag)
	for _, o := range bf16Ops() {
		fmt.Fprintf(out, "%s: %s%s,\n", o.name, o.name, tag)
	}
	out.WriteString("}\n")
	for _, o := range bf16Ops() {
		declare("%s%s%s", o.name, tag, o.signature())
	}
}
