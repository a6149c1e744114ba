package main

import "fmt"

// Arguments of the kernels below.
var (
	keys   = fields{"stretchKeys", "DI"}
	values = fields{"stretchValues", "DI"}
	soft   = fields{"stretchSoft", "DI"}
	join   = fields{"joinArgs", "AX"}
)

// stretch names the kernels that let few rows meet keys and values as they lie in a cache: bfloat16, a position's heads side by side. They
// repeat the sums of attnForward bit for bit, and read memory once, from end to end: that is their bound, about 10 cycles for a line.
var stretch = isa{tag: "Stretch", file: "stretch", lanes: 16, reg: "Z", regs: 32}

// moveArg copies an argument.
func moveArg(a *asm, from, to int) {
	a.op("MOVQ", arg(from), "AX")
	a.op("MOVQ", "AX", arg(to))
}

// flush makes subnormal numbers 0, as tiles do; unflush ends that.
func flush(a *asm) {
	a.op("STMXCSR", "mode-8(SP)")
	a.op("LDMXCSR", a.bits(0x9FC0))
}

func unflush(a *asm) {
	a.op("LDMXCSR", "mode-8(SP)")
	a.op("VZEROUPPER")
	a.op("RET")
}

// stretchKeys: logits of blocks of 16 positions for some key heads, each with n queries. A block's 16 lines, 32 elements of each position, are a
// tile as they lie, the left factor; 32 elements of a query are one of a single column. Their product has the sums of the tiles in which the
// query is a row of the left factor. About 2 cycles for a line.
func stretchKeys(a *asm, n int) {
	a.text(fmt.Sprintf("keys%dx", n), 0, 8)
	a.op("MOVQ", "p+0(FP)", "DI")
	a.op("MOVQ", keys.at("config"), "AX")
	a.use(tileConfig("AX"))
	a.op("MOVQ", keys.at("ld"), "R8")
	a.op("MOVQ", "$4", "R10")
	a.op("XORL", "R11", "R11")
	a.mark("block")
	a.op("MOVQ", fmt.Sprintf("%d(DI)(R11*8)", keys.off("k")), "SI")
	a.op("MOVQ", fmt.Sprintf("%d(DI)(R11*8)", keys.off("next")), "R13")
	a.op("LEAQ", "(R13)(R8*8)", "R14")
	a.op("MOVQ", keys.at("q"), "BX")
	a.op("MOVQ", "R11", "CX")
	a.op("SHLQ", "$6", "CX")
	a.op("ADDQ", keys.at("logits"), "CX")
	a.op("MOVQ", keys.at("heads"), "DX")
	a.mark("head")
	for i := range n {
		a.use(tileZero(i))
	}
	a.op("MOVQ", keys.at("steps"), "AX")
	a.mark("step")
	a.use(tileLoad(4, "SI", "R8", 0))
	fetchKeys(a, 0, 6)
	for i := range n {
		a.use(tileLoad(5+i%3, "BX", "R10", 64*i))
		fetchKeys(a, 6+10*i/n, 6+10*(i+1)/n)
		a.use(tileProduct(i, 4, 5+i%3))
	}
	a.op("ADDQ", "$256", "R13")
	a.op("ADDQ", "$256", "R14")
	a.op("ADDQ", "$64", "SI")
	a.op("ADDQ", fmt.Sprintf("$%d", 64*n), "BX")
	a.op("DECQ", "AX")
	a.op("JNZ", "step")
	for i := range n {
		a.use(tileStore(i, "CX", "R10", i*tileRow))
	}
	a.op("ADDQ", fmt.Sprintf("$%d", n*tileRow), "CX")
	a.op("DECQ", "DX")
	a.op("JNZ", "head")
	a.op("INCQ", "R11")
	a.op("CMPQ", "R11", keys.at("count"))
	a.op("JLT", "block")
	a.use(tileRelease())
	a.op("RET")
}

// fetchKeys is part of 16 steps that fetch four lines of each fourth row of the block at R13, R14 being its second half: by the time that rows
// have been gone through once these are whole fours of rows, 4 streams, which memory serves faster than one or sixteen.
func fetchKeys(a *asm, from, to int) {
	for i := from; i < to; i++ {
		row := []string{"(%s)", "(%s)(R8*4)"}[i/4%2]
		a.op("PREFETCHT1", fmt.Sprintf("%d"+row, 64*(i%4), []string{"R13", "R14"}[i/8]))
	}
}

// valuesKernel adds up to 32 positions to acc, of n·turns rows of each of some groups: acc += even + odd, the sums of p·v over the even
// and over the odd positions. A line is 32 columns, the even ones and the odd ones a register each. 3 cycles for a line with two rows.
type valuesKernel struct {
	*asm
	n int
}

func (k valuesKernel) emit() {
	k.text(fmt.Sprintf("values%dx", k.n), 8, 8)
	k.op("MOVQ", "p+0(FP)", "DI")
	flush(k.asm)
	k.op("VMOVDQU64", k.bits(0xFFFF0000), "Z31")
	for i := range 2 {
		k.op("VMOVDQU64", fmt.Sprintf("join%s<>+%d(SB)", k.tag, 64*i), k.v(29+i))
	}
	k.op("MOVQ", values.at("ld"), "R8")
	k.op("MOVQ", values.at("p"), "R10")
	k.op("MOVQ", values.at("acc"), "R11")
	k.op("XORL", "R12", "R12") // column, in bytes
	k.op("LEAQ", "(R8*4)", "R15")
	k.mark("group")
	moveArg(k.asm, values.off("pieces"), values.off("piece"))
	k.mark("piece")
	k.op("MOVQ", "R10", "R13")
	k.op("MOVQ", "R11", "R14")
	moveArg(k.asm, values.off("turns"), values.off("row"))
	k.mark("rows")
	k.piece()
	k.op("DECQ", values.at("row"))
	k.op("JNZ", "rows")
	k.op("ADDQ", "$64", "R12")
	k.op("ADDQ", "$128", "R11")
	k.op("DECQ", values.at("piece"))
	k.op("JNZ", "piece")
	k.op("MOVQ", "R13", "R10") // behind this group's rows
	k.op("LEAQ", "128(R14)", "R11")
	k.op("SUBQ", values.at("ldacc"), "R11")
	k.op("DECQ", values.at("groups"))
	k.op("JNZ", "group")
	unflush(k.asm)
}

// piece is the line at column R12 of all positions, for n rows with p from R13 and acc from R14 on; both move on behind them.
func (k valuesKernel) piece() {
	sum := func(r, odd, col int) string { return k.v(16 + 4*r + 2*odd + col) }
	for r := range k.n {
		for i := range 4 {
			k.op("VXORPS", sum(r, i/2, i%2), sum(r, i/2, i%2), sum(r, i/2, i%2))
		}
	}
	k.op("MOVQ", "R13", "BX")
	k.op("MOVQ", values.at("count"), "DX")
	done := k.fresh("done")
	k.block(0, sum, done)
	k.block(1, sum, done)
	k.mark(done)
	for r := range k.n {
		for col := range 2 {
			k.op("VADDPS", sum(r, 1, col), sum(r, 0, col), sum(r, 0, col))
		}
		for i := range 2 {
			mem := fmt.Sprintf("%d(R14)", 64*i)
			k.op("VMOVAPS", sum(r, 0, 0), k.v(i))
			k.op("VPERMT2PS", sum(r, 0, 1), k.v(29+i), k.v(i))
			k.op("VADDPS", mem, k.v(i), k.v(i))
			k.op("VMOVUPS", k.v(i), mem)
		}
		k.op("ADDQ", values.at("ldacc"), "R14")
	}
	k.op("ADDQ", fmt.Sprintf("$%d", k.n*tileRow), "R13")
}

// block is 16 positions of them, or the DX that are left; behind the last it goes to done. It fetches the next block as fetchKeys does.
func (k valuesKernel) block(block int, sum func(r, odd, col int) string, done string) {
	four, pair, rest, more := k.fresh("four"), k.fresh("pair"), k.fresh("rest"), k.fresh("more")
	k.op("MOVQ", values.at("v", block), "SI")
	k.op("ADDQ", "R12", "SI")
	k.op("MOVQ", values.at("next", block), "R9")
	k.op("LEAQ", "(R9)(R12*4)", "R9")
	k.op("MOVQ", "$16", "CX")
	k.op("CMPQ", "DX", "CX")
	k.op("CMOVQLT", "DX", "CX")
	k.op("SUBQ", "CX", "DX")
	k.op("SUBQ", "$4", "CX")
	k.op("JLT", pair)
	k.mark(four)
	for i := range 4 {
		k.op("PREFETCHT1", fmt.Sprintf("%d(R9)", 64*i))
		k.line(i%2, sum)
	}
	k.op("ADDQ", "R15", "R9")
	k.op("SUBQ", "$4", "CX")
	k.op("JGE", four)
	k.mark(pair)
	k.op("ADDQ", "$2", "CX")
	k.op("JLT", rest)
	for odd := range 2 {
		k.line(odd, sum)
	}
	k.op("SUBQ", "$2", "CX")
	k.mark(rest)
	k.op("CMPQ", "CX", "$-1")
	k.op("JNE", more)
	k.line(0, sum)
	k.mark(more)
	k.op("TESTQ", "DX", "DX")
	k.op("JZ", done)
}

// line is one position, odd or even.
func (k valuesKernel) line(odd int, sum func(r, odd, col int) string) {
	line, low, high := k.v(3*odd), k.v(3*odd+1), k.v(3*odd+2)
	k.op("VMOVDQU64", "(SI)", line)
	k.op("VPSLLD", "$16", line, low)
	k.op("VPANDD", "Z31", line, high)
	for r := range k.n {
		p := k.v(6 + 2*odd + r)
		k.op("VBROADCASTSS", fmt.Sprintf("%d(BX)", r*tileRow), p)
		k.op("VFMADD231PS", low, p, sum(r, odd, 0))
		k.op("VFMADD231PS", high, p, sum(r, odd, 1))
	}
	k.op("ADDQ", "R8", "SI")
	k.op("ADDQ", "$4", "BX")
}

// joinTable interleaves two vectors: the first 16 elements, then the others.
func joinTable(a *asm) {
	for i := range 16 {
		fmt.Fprintf(&a.out, "DATA join%s<>+%d(SB)/8, $0x%08X%08X\n", a.tag, 8*i, 16+i, i)
	}
	fmt.Fprintf(&a.out, "GLOBL join%s<>(SB), RODATA|NOPTR, $128\n", a.tag)
}
