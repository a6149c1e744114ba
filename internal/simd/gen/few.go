package main

import "fmt"

const (
	// fewRows is the largest number of rows of the kernels of few.
	fewRows = 4
	// fewGroup is the number of panels that a single row meets at once.
	fewGroup = 6
	// fewAhead is how far B is fetched before its use, in bytes: a step and a half, so that the lines of one tile ask for those of
	// the other. Behind the last step comes the first one of the next group.
	fewAhead = 3072
)

// few: C[rows, 32·panels] += A·B for float32 rows of A that hold bfloat16 values and packed panels of B, stride bytes apart.
// It repeats the sums of a tile product bit for bit: over each 32 steps of k one chain of multiply-adds
// for the even elements and one for the odd, then C += even + odd, subnormal numbers being 0. So rows may go either way,
// and where there are no tiles this is the product.
//
// A line of B serves 2·rows multiply-adds: memory is the bound. It gives more to several streams than to one, so a line of each
// of group panels is read before the next of the first, and a step of every group before the next step of the first.
func (a *asm) few(rows, group int) {
	frame := 8
	if group > 1 {
		frame = 16
	}
	a.text(fewName(rows, group), frame, 64)
	a.op("STMXCSR", "mode-8(SP)")
	a.op("LDMXCSR", a.bits(0x9FC0)) // all exceptions masked, subnormal inputs and results zero
	a.op("MOVQ", "steps+0(FP)", "CX")
	a.op("MOVQ", "a+8(FP)", "SI")
	a.op("MOVQ", "lda+16(FP)", "R8")
	a.op("MOVQ", "b+24(FP)", "R11")
	a.op("MOVQ", "ldc+40(FP)", "R9")
	a.op("MOVQ", "stride+56(FP)", "R13")
	a.op("SHLQ", "$2", "R8")
	a.op("SHLQ", "$2", "R9")
	a.op("LEAQ", "(R8)(R8*2)", "R10")
	if group > 1 {
		a.op("IMUL3Q", fmt.Sprintf("$%d", group-1), "R13", "AX")
		a.op("MOVQ", "AX", "jump-16(SP)") // from behind a panel to the one that follows it in the next group
	}
	a.op("VMOVUPS", a.bits(0xFFFF0000), a.fewReg(fewMask))
	a.mark("step")
	a.op("MOVQ", "R11", "BX")
	a.op("MOVQ", "c+32(FP)", "DI")
	a.op("MOVQ", "panels+48(FP)", "R12")
	a.mark("panel")
	a.fewPanel(rows, group)
	for range group {
		a.op("ADDQ", "R13", "BX")
	}
	a.op("SUBQ", fmt.Sprintf("$%d", group), "R12")
	a.op("JNZ", "panel")
	a.op("ADDQ", "$128", "SI")
	a.op("ADDQ", fmt.Sprintf("$%d", panelStep), "R11")
	a.op("DECQ", "CX")
	a.op("JNZ", "step")
	a.op("LDMXCSR", "mode-8(SP)")
	a.op("VZEROUPPER")
	a.op("RET")
}

func fewName(rows, group int) string {
	if group > 1 {
		return "fewBF16One"
	}
	return fmt.Sprintf("fewBF16x%d", rows)
}

// fewPanel is a step of the panels at BX: all 32 columns at once, or with AVX2 8 at a time, which are half of each line of a
// tile, then the other half, then the other tile. DI moves on by 32 columns.
func (a *asm) fewPanel(rows, group int) {
	if a.wide() {
		if group > 1 {
			a.op("LEAQ", "(R13)(R13*2)", "R14")
			a.op("ADDQ", "BX", "R14")
			a.fewTargets()
		}
		a.fewStep(rows, 2*group)
		a.op("ADDQ", fmt.Sprintf("$%d", 128*group), "DI")
		return
	}
	const half, tile = 32, 1024
	a.op("MOVQ", "BX", "R14")
	a.op("MOVQ", "$4", "AX")
	a.mark("group")
	a.fewStep(rows, 1)
	a.op("ADDQ", "$32", "DI")
	a.op("ADDQ", fmt.Sprintf("$%d", half), "BX")
	a.op("CMPQ", "AX", "$3")
	a.op("JNE", "same")
	a.op("ADDQ", fmt.Sprintf("$%d", tile-2*half), "BX")
	a.mark("same")
	a.op("DECQ", "AX")
	a.op("JNZ", "group")
	a.op("MOVQ", "R14", "BX")
}

// fewTargets sets where the lines of a step are fetched ahead for, but for the distance: R8 and R10 for the first tile of the first and
// the last three panels, R9 and DX for the second. A single row needs none of them for itself.
func (a *asm) fewTargets() {
	last := [2]int{1, 2} // steps left when the distance leads behind the panel
	for tile, regs := range [][2]string{{"R8", "R10"}, {"R9", "DX"}} {
		a.op("MOVQ", "$0", "AX")
		a.op("CMPQ", "CX", fmt.Sprintf("$%d", last[tile]))
		a.op("CMOVQLE", "jump-16(SP)", "AX")
		a.op("LEAQ", "(BX)(AX*1)", regs[0])
		a.op("LEAQ", "(R14)(AX*1)", regs[1])
	}
}

const (
	fewEven = iota // chains of row r, vector i
	fewOdd
	fewB // even and odd elements of B
	fewMask
	fewSpread
)

// fewReg is the register of one of these parts. Rows times vectors is at most 12; two pairs of registers take turns with B.
func (a *asm) fewReg(part int, at ...int) string {
	n, pairs := 2*fewGroup, 2
	if !a.wide() {
		n, pairs = fewRows, 1
	}
	switch part {
	case fewEven, fewOdd:
		return a.v(part*n + at[0])
	case fewB:
		return a.v(2*n + 2*(at[1]%pairs) + at[0])
	case fewMask:
		return a.v(2*n + 2*pairs)
	}
	return a.v(2*n + 2*pairs + 1)
}

// fewStep is 32 steps of k for vecs vectors of columns.
func (a *asm) fewStep(rows, vecs int) {
	for n := range rows * vecs {
		for _, part := range []int{fewEven, fewOdd} {
			x := a.fewReg(part, n)
			a.op("VXORPS", x, x, x)
		}
	}
	for p := range 16 {
		for i := range vecs {
			a.fewB(p, i, vecs > 2)
			a.fewLine(rows, vecs, p, i)
		}
	}
	a.op("MOVQ", "DI", "DX")
	for r := range rows {
		for i := range vecs {
			even, mem := a.fewReg(fewEven, r*vecs+i), fmt.Sprintf("%d(DX)", i*a.bytes())
			a.op("VADDPS", a.fewReg(fewOdd, r*vecs+i), even, even)
			a.op("VADDPS", mem, even, even)
			a.op("VMOVUPS", even, mem)
		}
		if r < rows-1 {
			a.op("ADDQ", "R9", "DX")
		}
	}
}

// fewLine multiplies line p, vector i of B with the elements of all rows.
func (a *asm) fewLine(rows, vecs, p, i int) {
	for odd, part := range []int{fewEven, fewOdd} {
		for r := range rows {
			mem := fmt.Sprintf([]string{"%d(SI)", "%d(SI)(R8*1)", "%d(SI)(R8*2)", "%d(SI)(R10*1)"}[r], 8*p+4*odd)
			b, acc := a.fewReg(fewB, odd, i), a.fewReg(part, r*vecs+i)
			if a.wide() {
				a.op("VFMADD231PS.BCST", mem, b, acc)
				continue
			}
			a.op("VBROADCASTSS", mem, a.fewReg(fewSpread))
			a.op("VFMADD231PS", a.fewReg(fewSpread), b, acc)
		}
	}
}

// fewB widens the elements of line p, vector i of B, and fetches what comes behind, in a group by way of fewTargets.
func (a *asm) fewB(p, i int, group bool) {
	even, odd := a.fewReg(fewB, 0, i), a.fewReg(fewB, 1, i)
	from := func(at int, base string) string {
		return fmt.Sprintf([]string{"%d(%s)", "%d(%s)(R13*1)", "%d(%s)(R13*2)"}[i/2%3], at, base)
	}
	mem := func(at int) string { return from(at, []string{"BX", "R14"}[i/6]) }
	fetch := func(at int) {
		base := "BX"
		if group {
			base = [][]string{{"R8", "R10"}, {"R9", "DX"}}[i%2][i/6]
		}
		a.op("PREFETCHT0", from(at, base))
	}
	at := 1024*(i%2) + 64*p
	fetch(at + fewAhead)
	a.op("VMOVUPS", mem(at), odd)
	a.op("VPSLLD", "$16", odd, even)
	a.op("VANDPS", a.fewReg(fewMask), odd, odd)
}

func fewFile(i isa) []byte {
	a := newAsm(i)
	for r := 1; r <= fewRows; r++ {
		a.few(r, 1)
	}
	if i.wide() {
		a.few(1, fewGroup)
	}
	return a.finish()
}
