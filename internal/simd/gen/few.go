package main

import "fmt"

const (
	// fewRows is the largest number of rows of the kernels of few.
	fewRows = 4
	// fewGroup is the number of panels that a single row processes at once.
	fewGroup = 6
	// fewAhead is how far B is fetched before its use, in bytes: a step and a half, so that the lines of one tile ask
	// for those of the other. Behind the last step comes the first one of the next group.
	fewAhead = 3072
)

// fewKernel: C[rows, 32·panels] += A·B for float32 rows of A that hold bfloat16 values and packed panels of B, stride
// bytes apart. It repeats the sums of a tile product bit for bit: over each 32 steps of k one chain of multiply-adds
// for the even elements and one for the odd, then C += even + odd, subnormal numbers being 0. So rows may go either
// way, and where there are no tiles this is the product.
//
// A line of B serves 2·rows multiply-adds: memory is the bound. It gives more to several streams than to one, so a line
// of each of group panels is read before the next of the first, and a step of every group before the next step of the
// first.
type fewKernel struct {
	*asm
	rows, group int
}

func (k fewKernel) emit() {
	frame := 8
	if k.group > 1 {
		frame = 16
	}
	k.text(fewName(k.rows, k.group), frame, 64)
	k.op("STMXCSR", "mode-8(SP)")
	k.op("LDMXCSR", k.bits(0x9FC0)) // all exceptions masked, subnormal inputs and results zero
	loadArgs(k.asm, "steps+0", "CX", "a+8", "SI", "lda+16", "R8", "b+24", "R11", "ldc+40", "R9", "stride+56", "R13")
	k.op("SHLQ", "$2", "R8")
	k.op("SHLQ", "$2", "R9")
	k.op("LEAQ", "(R8)(R8*2)", "R10")
	if k.group > 1 {
		k.op("IMUL3Q", imm(k.group-1), "R13", "AX")
		k.op("MOVQ", "AX", "jump-16(SP)") // from the end of a panel to the one that follows it in the next group
	}
	k.op("VMOVUPS", k.bits(0xFFFF0000), k.part(fewMask))
	k.mark("step")
	k.op("MOVQ", "R11", "BX")
	k.op("MOVQ", "c+32(FP)", "DI")
	k.op("MOVQ", "panels+48(FP)", "R12")
	k.mark("panel")
	k.panel()
	for range k.group {
		k.op("ADDQ", "R13", "BX")
	}
	k.op("SUBQ", imm(k.group), "R12")
	k.op("JNZ", "panel")
	k.op("ADDQ", "$128", "SI")
	k.op("ADDQ", imm(panelStep), "R11")
	k.again("step", "CX")
	k.op("LDMXCSR", "mode-8(SP)")
	k.ret()
}

func fewName(rows, group int) string {
	if group > 1 {
		return "fewBF16One"
	}
	return fmt.Sprintf("fewBF16x%d", rows)
}

// panel is a step of the panels at BX: all 32 columns at once, or with AVX2 8 at a time, which are half of each line of
// a tile, then the other half, then the other tile. DI moves on by 32 columns.
func (k fewKernel) panel() {
	if k.wide() {
		if k.group > 1 {
			k.op("LEAQ", "(R13)(R13*2)", "R14")
			k.op("ADDQ", "BX", "R14")
			k.targets()
		}
		k.step(2 * k.group)
		k.op("ADDQ", imm(128*k.group), "DI")
		return
	}
	const half, tile = 32, 1024
	k.op("MOVQ", "BX", "R14")
	k.op("MOVQ", "$4", "AX")
	k.mark("group")
	k.step(1)
	k.op("ADDQ", "$32", "DI")
	k.op("ADDQ", imm(half), "BX")
	k.op("CMPQ", "AX", "$3")
	k.op("JNE", "same")
	k.op("ADDQ", imm(tile-2*half), "BX")
	k.mark("same")
	k.again("group", "AX")
	k.op("MOVQ", "R14", "BX")
}

// targets sets the prefetch addresses of a step's lines, except for the distance: R8 and R10 for the first tile of the
// first and the last three panels, R9 and DX for the second. A single row needs none of them for itself.
func (k fewKernel) targets() {
	last := [2]int{1, 2} // steps left when the distance leads past the panel
	for tile, regs := range [][2]string{{"R8", "R10"}, {"R9", "DX"}} {
		k.op("MOVQ", "$0", "AX")
		k.op("CMPQ", "CX", imm(last[tile]))
		k.op("CMOVQLE", "jump-16(SP)", "AX")
		k.op("LEAQ", "(BX)(AX*1)", regs[0])
		k.op("LEAQ", "(R14)(AX*1)", regs[1])
	}
}

const (
	fewEven = iota // chains of row r, vector i
	fewOdd
	fewB // even and odd elements of B
	fewMask
	fewSpread
)

// part is the register of one of these parts. Rows times vectors is at most 12; two pairs of registers take turns with
// B.
func (k fewKernel) part(part int, at ...int) string {
	n, pairs := 2*fewGroup, 2
	if !k.wide() {
		n, pairs = fewRows, 1
	}
	switch part {
	case fewEven, fewOdd:
		return k.v(part*n + at[0])
	case fewB:
		return k.v(2*n + 2*(at[1]%pairs) + at[0])
	case fewMask:
		return k.v(2*n + 2*pairs)
	}
	return k.v(2*n + 2*pairs + 1)
}

// step is 32 steps of k for vecs vectors of columns.
func (k fewKernel) step(vecs int) {
	for n := range k.rows * vecs {
		for _, part := range []int{fewEven, fewOdd} {
			x := k.part(part, n)
			k.op("VXORPS", x, x, x)
		}
	}
	for p := range 16 {
		for i := range vecs {
			k.widenB(p, i)
			k.line(vecs, p, i)
		}
	}
	k.op("MOVQ", "DI", "DX")
	for r := range k.rows {
		for i := range vecs {
			even, mem := k.part(fewEven, r*vecs+i), fmt.Sprintf("%d(DX)", i*k.bytes())
			k.op("VADDPS", k.part(fewOdd, r*vecs+i), even, even)
			k.op("VADDPS", mem, even, even)
			k.op("VMOVUPS", even, mem)
		}
		if r < k.rows-1 {
			k.op("ADDQ", "R9", "DX")
		}
	}
}

// line multiplies line p, vector i of B with the elements of all rows.
func (k fewKernel) line(vecs, p, i int) {
	for odd, part := range []int{fewEven, fewOdd} {
		for r := range k.rows {
			mem := fmt.Sprintf([]string{"%d(SI)", "%d(SI)(R8*1)", "%d(SI)(R8*2)", "%d(SI)(R10*1)"}[r], 8*p+4*odd)
			b, acc := k.part(fewB, odd, i), k.part(part, r*vecs+i)
			if k.wide() {
				k.op("VFMADD231PS.BCST", mem, b, acc)
				continue
			}
			k.op("VBROADCASTSS", mem, k.part(fewSpread))
			k.op("VFMADD231PS", k.part(fewSpread), b, acc)
		}
	}
}

// widenB widens the elements of line p, vector i of B, and prefetches the following data, in a group through targets.
func (k fewKernel) widenB(p, i int) {
	even, odd := k.part(fewB, 0, i), k.part(fewB, 1, i)
	from := func(at int, base string) string {
		return fmt.Sprintf([]string{"%d(%s)", "%d(%s)(R13*1)", "%d(%s)(R13*2)"}[i/2%3], at, base)
	}
	mem := func(at int) string { return from(at, []string{"BX", "R14"}[i/6]) }
	fetch := func(at int) {
		base := "BX"
		if k.group > 1 {
			base = [][]string{{"R8", "R10"}, {"R9", "DX"}}[i%2][i/6]
		}
		k.op("PREFETCHT0", from(at, base))
	}
	at := 1024*(i%2) + 64*p
	fetch(at + fewAhead)
	k.op("VMOVUPS", mem(at), odd)
	k.op("VPSLLD", "$16", odd, even)
	k.op("VANDPS", k.part(fewMask), odd, odd)
}

func fewFile(i isa) []byte {
	a := newAsm(i)
	for r := 1; r <= fewRows; r++ {
		fewKernel{a, r, 1}.emit()
	}
	if i.wide() {
		fewKernel{a, 1, fewGroup}.emit()
	}
	return a.finish()
}
