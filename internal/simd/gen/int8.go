package main

import "fmt"

// vnni is AVX-512 with VPDPBUSD, which sums products of four bytes each.
var vnni = isa{tag: "VNNI", file: "vnni", lanes: 16, reg: "Z", regs: 32}

const (
	// int8Head is the bytes of the head of a panel, its scales and sums, int8Sums where the sums begin.
	int8Head, int8Sums = 256, 128
	// int8Rows is the largest number of rows of few.
	int8Rows = 4
	// int8Accs is the number of accumulators of VPDPBUSD.
	int8Accs = 24
	// int8Ahead is how far W is fetched before its use, in bytes: a step and a half, so that the lines of one tile ask
	// for those of the other. Behind the last step comes the first one of the next group.
	int8Ahead = 3072
)

// int8Group is the number of panels that this many rows process at once.
func int8Group(rows int) int { return int8Accs / 4 / rows }

func int8Name(rows, group int) string {
	if group > 1 {
		return fmt.Sprintf("fewInt8Side%dx", rows)
	}
	return fmt.Sprintf("fewInt8x%d", rows)
}

// fewInt8Begin begins a kernel of few rows: R9 a step of x, R8 half of that, from upper bytes to lower ones, BX W, R10
// its head, DI C, R12 the rows' scales, R11 panels left, R13 the stride from a panel to the next.
func fewInt8Begin(a *asm, rows, group, frame int) {
	a.text(int8Name(rows, group), frame, 80)
	loadArgs(a, "step+16", "R9", "w+24", "BX", "head+32", "R10", "c+40", "DI", "scale+56", "R12", "panels+64", "R11",
		"stride+72", "R13")
	a.op("MOVQ", "R9", "R8")
	a.op("SHRQ", "$1", "R8")
}

// vnniFew: y of rows rows and 32·panels columns: 64 bytes of W are multiplied with the upper and the lower bytes of
// every row, one instruction each. That is far faster than memory, which serves several streams faster than one: a line
// of each of group panels is read before the next of the first.
type vnniFew struct {
	*asm
	rows, group int
}

func (k vnniFew) emit() {
	vecs := 2 * k.group
	fewInt8Begin(k.asm, k.rows, k.group, 8)
	k.op("IMUL3Q", imm(k.group-1), "R13", "AX")
	k.op("MOVQ", "AX", "jump-8(SP)") // from the end of a panel to the one that follows it in the next group
	k.mark("group")
	k.op("MOVQ", "steps+0(FP)", "CX")
	k.op("MOVQ", "x+8(FP)", "SI")
	if k.group > 3 { // the last three of six
		k.op("LEAQ", "(R13)(R13*2)", "R14")
		k.op("ADDQ", "BX", "R14")
	}
	for i := range int8Head / 64 * k.group {
		k.op("PREFETCHT0", fmt.Sprintf("%d(R10)", 64*i))
	}
	for i := range 2 * k.rows * vecs {
		k.op("VPXORD", k.v(i), k.v(i), k.v(i))
	}
	k.mark("step")
	k.targets()
	for p := range 16 {
		k.line(vecs, p)
	}
	k.op("ADDQ", "R9", "SI")
	k.op("ADDQ", "$2048", "BX")
	k.op("ADDQ", "$2048", "R14")
	k.again("step", "CX")
	k.results(vecs)
	for range k.group - 1 { // already past the first one
		k.op("ADDQ", "R13", "BX")
	}
	k.op("ADDQ", imm(int8Head*k.group), "R10")
	k.op("ADDQ", imm(128*k.group), "DI")
	k.op("SUBQ", imm(k.group), "R11")
	k.op("JNZ", "group")
	k.ret()
}

// targets sets the prefetch addresses of lines, except for the distance: AX and DX for the first tile of the first and
// the last three panels, R15 and BP for the second.
func (k vnniFew) targets() {
	for tile, regs := range int8Bases {
		k.op("MOVQ", "$0", regs[0])
		k.op("CMPQ", "CX", imm(tile+1)) // steps left when the distance leads past the panel
		k.op("CMOVQLE", "jump-8(SP)", regs[0])
		if k.group > 3 {
			k.op("LEAQ", fmt.Sprintf("(R14)(%s*1)", regs[0]), regs[1])
		}
		k.op("ADDQ", "BX", regs[0])
	}
}

var int8Bases = [2][2]string{{"AX", "DX"}, {"R15", "BP"}}

// int8Panel is a place in the panel of vector i, given registers for the first and the last three panels.
func int8Panel(at, i int, bases [2]string) string {
	return fmt.Sprintf([]string{"%d(%s)", "%d(%s)(R13*1)", "%d(%s)(R13*2)"}[i/2%3], at, bases[i/6])
}

// line is line p of every tile: 4 elements of k. Registers are the accumulators, rows' bytes, two of W.
func (k vnniFew) line(vecs, p int) {
	x := func(r, part int) string { return k.v(2*k.rows*vecs + 2*r + part) }
	for r := range k.rows {
		k.op("VPBROADCASTD", fmt.Sprintf("%d(SI)", 64*r+4*p), x(r, 0))
		k.op("VPBROADCASTD", fmt.Sprintf("%d(SI)(R8*1)", 64*r+4*p), x(r, 1))
	}
	for i := range vecs {
		at, w := 1024*(i%2)+64*p, k.v(2*k.rows*vecs+2*k.rows+i%2)
		k.op("VMOVDQU64", int8Panel(at, i, [2]string{"BX", "R14"}), w)
		k.op("PREFETCHT0", int8Panel(at+int8Ahead, i, int8Bases[i%2]))
		for r := range k.rows {
			for part := range 2 {
				k.op("VPDPBUSD", w, x(r, part), k.v(2*(r*vecs+i)+part))
			}
		}
	}
}

// results turns the sums into y.
func (k vnniFew) results(vecs int) {
	k.op("MOVQ", "ldc+48(FP)", "DX")
	k.op("MOVQ", "DI", "AX")
	for r := range k.rows {
		for i := range vecs {
			hi, lo, head := k.v(2*(r*vecs+i)), k.v(2*(r*vecs+i)+1), int8Head*(i/2)+64*(i%2)
			k.op("VPADDD", fmt.Sprintf("%d(R10)", head+int8Sums), hi, hi)
			int8Round(k.asm, hi, lo, k.v(31), k.bits(255), k.constant(256))
			k.op("VMULPS", fmt.Sprintf("%d(R10)", head), lo, lo)
			k.op("VMULPS.BCST", fmt.Sprintf("%d(R12)", 4*r), lo, lo)
			k.op("VMOVUPS", lo, fmt.Sprintf("%d(AX)", 64*i))
		}
		if r < k.rows-1 {
			k.op("LEAQ", "(AX)(DX*4)", "AX")
		}
	}
}

// int8Round: lo = 256·hi + lo as float32, by way of ⌊·/256⌋ and the rest, which every implementation agrees on.
func int8Round(a *asm, hi, lo, tmp, low8, c256 any) {
	and := "VPAND"
	if a.wide() {
		and = "VPANDD"
	}
	a.op("VPSRAD", "$8", lo, tmp)
	a.op("VPADDD", tmp, hi, hi)
	a.op(and, low8, lo, lo)
	a.op("VCVTDQ2PS", hi, hi)
	a.op("VCVTDQ2PS", lo, lo)
	a.op("VFMADD231PS", c256, hi, lo)
}

// topInt8 is the largest |x| of steps of 64, as bits: whole numbers are in the order of floats then, NaN above all.
func topInt8(a *asm) {
	vecs, and := 64/a.lanes, "VPAND"
	if a.wide() {
		and = "VPANDD"
	}
	a.text("topInt8", 0, 20)
	a.op("MOVQ", "x+0(FP)", "SI")
	a.op("MOVQ", "steps+8(FP)", "CX")
	a.op("VMOVUPS", a.bits(0x7FFFFFFF), a.v(8))
	for i := range 4 {
		a.op("VXORPS", a.v(i), a.v(i), a.v(i))
	}
	a.mark("step")
	for i := range vecs {
		a.op(and, fmt.Sprintf("%d(SI)", i*a.bytes()), a.v(8), a.v(4+i%4))
		a.op("VPMAXSD", a.v(4+i%4), a.v(i%4), a.v(i%4))
	}
	for i := range 4 {
		a.op("PREFETCHT0", fmt.Sprintf("%d(SI)", 2048+64*i)) // across pages, and rows
	}
	a.op("ADDQ", "$256", "SI")
	a.again("step", "CX")
	a.op("VPMAXSD", a.v(1), a.v(0), a.v(0))
	a.op("VPMAXSD", a.v(3), a.v(2), a.v(2))
	a.op("VPMAXSD", a.v(2), a.v(0), a.v(0))
	if a.wide() {
		a.op("VEXTRACTI64X4", "$1", "Z0", "Y1")
		a.op("VPMAXSD", "Y1", "Y0", "Y0")
	}
	a.op("VEXTRACTI128", "$1", "Y0", "X1")
	a.op("VPMAXSD", "X1", "X0", "X0")
	for _, turn := range []string{"$0x4E", "$0xB1"} {
		a.op("VPSHUFD", turn, "X0", "X1")
		a.op("VPMAXSD", "X1", "X0", "X0")
	}
	a.op("VMOVD", "X0", "AX")
	a.op("MOVL", "AX", "ret+16(FP)")
	a.ret()
}

// splitInt8 rounds x·inv to 16 bits: bytes of two planes, or with AVX2 words.
func splitInt8(a *asm) {
	a.text("splitInt8", 0, 36)
	loadArgs(a, "dst+0", "DI", "x+8", "SI", "steps+16", "CX", "stride+24", "R8")
	a.op("VBROADCASTSS", "inv+32(FP)", a.v(15))
	if a.tag != avx2.tag {
		a.op("MOVQ", "R8", "R9")
		a.op("SHRQ", "$1", "R9")
		if a.wide() {
			a.op("VMOVUPS", a.bits(0x80008000), a.v(14))
			a.op("VMOVUPS", a.bits(0x00FF00FF), a.v(13))
		}
		a.op("VMOVUPS", "order"+a.tag+"<>(SB)", a.v(12))
	}
	a.mark("step")
	switch a.tag {
	case vnni.tag:
		splitBytes(a)
	case avxVNNI.tag:
		splitHalfLines(a)
	default:
		splitWords(a)
	}
	a.op("ADDQ", "$256", "SI")
	a.op("ADDQ", "R8", "DI")
	a.again("step", "CX")
	a.ret()
}

// splitWords is 64 elements as words.
func splitWords(a *asm) {
	for i := range 4 {
		for h := range 2 {
			a.op("VMULPS", fmt.Sprintf("%d(SI)", 64*i+32*h), a.v(15), a.v(h))
			a.op("VCVTPS2DQ", a.v(h), a.v(h))
		}
		a.op("VPACKSSDW", a.v(1), a.v(0), a.v(0))
		a.op("VPERMQ", "$0xD8", a.v(0), a.v(0))
		a.op("VMOVDQU", a.v(0), fmt.Sprintf("%d(DI)", 32*i))
	}
}

// splitBytes is 64 elements as upper bytes at DI and lower ones at DI + R9, a whole line each, plus 2¹⁵. The following
// lines are those of the next row, needed next. Packing works within parts of 16 bytes; groups of four bytes are
// reordered at the end.
func splitBytes(a *asm) {
	for i := range 4 {
		a.op("VMULPS", fmt.Sprintf("%d(SI)", 64*i), a.v(15), a.v(i))
		a.op("VCVTPS2DQ", a.v(i), a.v(i))
	}
	a.op("PREFETCHT0", "64(DI)")
	a.op("PREFETCHT0", "64(DI)(R9*1)")
	for i := 0; i < 4; i += 2 {
		a.op("VPACKSSDW", a.v(i+1), a.v(i), a.v(i))
		a.op("VPXORD", a.v(14), a.v(i), a.v(i))
		a.op("VPANDD", a.v(13), a.v(i), a.v(i+1))
		a.op("VPSRLW", "$8", a.v(i), a.v(i))
	}
	for part, mem := range []string{"(DI)", "(DI)(R9*1)"} {
		a.op("VPACKUSWB", a.v(2+part), a.v(part), a.v(part))
		a.op("VPERMD", a.v(part), a.v(12), a.v(part))
		a.op("VMOVDQU64", a.v(part), mem)
	}
}

// orderTable is the order of splitBytes: group j comes from part j mod 4.
func orderTable(a *asm) {
	for j := 0; j < 16; j += 2 {
		fmt.Fprintf(&a.out, "DATA order%s<>+%d(SB)/8, $0x%08X%08X\n", a.tag, 4*j, 4*((j+1)%4)+(j+1)/4, 4*(j%4)+j/4)
	}
	fmt.Fprintf(&a.out, "GLOBL order%s<>(SB), RODATA|NOPTR, $64\n", a.tag)
}

func int8File(i isa) []byte {
	a := newAsm(i)
	if i.tag == avxVNNI.tag {
		a.include(missingFile)
	}
	topInt8(a)
	splitInt8(a)
	for r := 1; r <= int8Rows; r++ {
		switch {
		case i.tag == avxVNNI.tag:
			newAVXFew(a, r).emit()
		case !i.wide():
			newWordFew(a, r).emit()
		default:
			vnniFew{a, r, 1}.emit()
			if int8Group(r) > 1 {
				vnniFew{a, r, int8Group(r)}.emit()
			}
		}
	}
	switch i.tag {
	case vnni.tag:
		orderTable(a)
	case avxVNNI.tag:
		halfOrderTable(a)
	}
	return a.finish()
}
