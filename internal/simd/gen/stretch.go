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

// move copies an argument.
func (a *asm) move(from, to int) {
	a.op("MOVQ", arg(from), "AX")
	a.op("MOVQ", "AX", arg(to))
}

// flush makes subnormal numbers 0, as tiles do; unflush ends that.
func (a *asm) flush() {
	a.op("STMXCSR", "mode-8(SP)")
	a.op("LDMXCSR", a.bits(0x9FC0))
}

func (a *asm) unflush() {
	a.op("LDMXCSR", "mode-8(SP)")
	a.op("VZEROUPPER")
	a.op("RET")
}

// stretchKeys: logits of blocks of 16 positions for some key heads, each with n queries. A block's 16 lines, 32 elements of each position, are a
// tile as they lie, the left factor; 32 elements of a query are one of a single column. Their product has the sums of the tiles in which the
// query is a row of the left factor. About 2 cycles for a line.
func (a *asm) stretchKeys(n int) {
	a.text(fmt.Sprintf("keys%dx", n), 0, 8)
	a.op("MOVQ", "p+0(FP)", "DI")
	a.op("MOVQ", keys.at("config"), "AX")
	a.tileConfig("AX")
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
		a.tileZero(i)
	}
	a.op("MOVQ", keys.at("steps"), "AX")
	a.mark("step")
	a.tileLoad(4, "SI", "R8", 0)
	a.fetchLines(0, 6)
	for i := range n {
		a.tileLoad(5+i%3, "BX", "R10", 64*i)
		a.fetchLines(6+10*i/n, 6+10*(i+1)/n)
		a.tileProduct(i, 4, 5+i%3)
	}
	a.op("ADDQ", "$256", "R13")
	a.op("ADDQ", "$256", "R14")
	a.op("ADDQ", "$64", "SI")
	a.op("ADDQ", fmt.Sprintf("$%d", 64*n), "BX")
	a.op("DECQ", "AX")
	a.op("JNZ", "step")
	for i := range n {
		a.tileStore(i, "CX", "R10", i*tileRow)
	}
	a.op("ADDQ", fmt.Sprintf("$%d", n*tileRow), "CX")
	a.op("DECQ", "DX")
	a.op("JNZ", "head")
	a.op("INCQ", "R11")
	a.op("CMPQ", "R11", keys.at("count"))
	a.op("JLT", "block")
	a.tileRelease()
	a.op("RET")
}

// fetchLines is part of 16 steps that fetch four lines of each fourth row of the block at R13, R14 being its second half: by the time that rows
// have been gone through once these are whole fours of rows, 4 streams, which memory serves faster than one or sixteen.
func (a *asm) fetchLines(from, to int) {
	for i := from; i < to; i++ {
		row := []string{"(%s)", "(%s)(R8*4)"}[i/4%2]
		a.op("PREFETCHT1", fmt.Sprintf("%d"+row, 64*(i%4), []string{"R13", "R14"}[i/8]))
	}
}

// stretchValues adds up to 32 positions to acc, of n·turns rows of each of some groups: acc += even + odd, the sums of p·v over the even
// and over the odd positions. A line is 32 columns, the even ones and the odd ones a register each. 3 cycles for a line with two rows.
func (a *asm) stretchValues(n int) {
	a.text(fmt.Sprintf("values%dx", n), 8, 8)
	a.op("MOVQ", "p+0(FP)", "DI")
	a.flush()
	a.op("VMOVDQU64", a.bits(0xFFFF0000), "Z31")
	for i := range 2 {
		a.op("VMOVDQU64", fmt.Sprintf("join%s<>+%d(SB)", a.tag, 64*i), a.v(29+i))
	}
	a.op("MOVQ", values.at("ld"), "R8")
	a.op("MOVQ", values.at("p"), "R10")
	a.op("MOVQ", values.at("acc"), "R11")
	a.op("XORL", "R12", "R12") // column, in bytes
	a.op("LEAQ", "(R8*4)", "R15")
	a.mark("group")
	a.move(values.off("pieces"), values.off("piece"))
	a.mark("piece")
	a.op("MOVQ", "R10", "R13")
	a.op("MOVQ", "R11", "R14")
	a.move(values.off("turns"), values.off("row"))
	a.mark("rows")
	a.stretchPiece(n)
	a.op("DECQ", values.at("row"))
	a.op("JNZ", "rows")
	a.op("ADDQ", "$64", "R12")
	a.op("ADDQ", "$128", "R11")
	a.op("DECQ", values.at("piece"))
	a.op("JNZ", "piece")
	a.op("MOVQ", "R13", "R10") // behind this group's rows
	a.op("LEAQ", "128(R14)", "R11")
	a.op("SUBQ", values.at("ldacc"), "R11")
	a.op("DECQ", values.at("groups"))
	a.op("JNZ", "group")
	a.unflush()
}

// stretchPiece is the line at column R12 of all positions, for n rows with p from R13 and acc from R14 on; both move on behind them.
func (a *asm) stretchPiece(n int) {
	sum := func(r, odd, col int) string { return a.v(16 + 4*r + 2*odd + col) }
	for r := range n {
		for i := range 4 {
			a.op("VXORPS", sum(r, i/2, i%2), sum(r, i/2, i%2), sum(r, i/2, i%2))
		}
	}
	a.op("MOVQ", "R13", "BX")
	a.op("MOVQ", values.at("count"), "DX")
	done := a.fresh("done")
	a.stretchBlock(n, 0, sum, done)
	a.stretchBlock(n, 1, sum, done)
	a.mark(done)
	for r := range n {
		for col := range 2 {
			a.op("VADDPS", sum(r, 1, col), sum(r, 0, col), sum(r, 0, col))
		}
		for i := range 2 {
			mem := fmt.Sprintf("%d(R14)", 64*i)
			a.op("VMOVAPS", sum(r, 0, 0), a.v(i))
			a.op("VPERMT2PS", sum(r, 0, 1), a.v(29+i), a.v(i))
			a.op("VADDPS", mem, a.v(i), a.v(i))
			a.op("VMOVUPS", a.v(i), mem)
		}
		a.op("ADDQ", values.at("ldacc"), "R14")
	}
	a.op("ADDQ", fmt.Sprintf("$%d", n*tileRow), "R13")
}

// stretchBlock is 16 positions of them, or the DX that are left; behind the last it goes to done. It fetches the next block as fetchLines does.
func (a *asm) stretchBlock(n, block int, sum func(r, odd, col int) string, done string) {
	four, pair, rest, more := a.fresh("four"), a.fresh("pair"), a.fresh("rest"), a.fresh("more")
	a.op("MOVQ", values.at("v", block), "SI")
	a.op("ADDQ", "R12", "SI")
	a.op("MOVQ", values.at("next", block), "R9")
	a.op("LEAQ", "(R9)(R12*4)", "R9")
	a.op("MOVQ", "$16", "CX")
	a.op("CMPQ", "DX", "CX")
	a.op("CMOVQLT", "DX", "CX")
	a.op("SUBQ", "CX", "DX")
	a.op("SUBQ", "$4", "CX")
	a.op("JLT", pair)
	a.mark(four)
	for i := range 4 {
		a.op("PREFETCHT1", fmt.Sprintf("%d(R9)", 64*i))
		a.stretchLine(n, i%2, sum)
	}
	a.op("ADDQ", "R15", "R9")
	a.op("SUBQ", "$4", "CX")
	a.op("JGE", four)
	a.mark(pair)
	a.op("ADDQ", "$2", "CX")
	a.op("JLT", rest)
	for odd := range 2 {
		a.stretchLine(n, odd, sum)
	}
	a.op("SUBQ", "$2", "CX")
	a.mark(rest)
	a.op("CMPQ", "CX", "$-1")
	a.op("JNE", more)
	a.stretchLine(n, 0, sum)
	a.mark(more)
	a.op("TESTQ", "DX", "DX")
	a.op("JZ", done)
}

// stretchLine is one position, odd or even.
func (a *asm) stretchLine(n, odd int, sum func(r, odd, col int) string) {
	line, low, high := a.v(3*odd), a.v(3*odd+1), a.v(3*odd+2)
	a.op("VMOVDQU64", "(SI)", line)
	a.op("VPSLLD", "$16", line, low)
	a.op("VPANDD", "Z31", line, high)
	for r := range n {
		p := a.v(6 + 2*odd + r)
		a.op("VBROADCASTSS", fmt.Sprintf("%d(BX)", r*tileRow), p)
		a.op("VFMADD231PS", low, p, sum(r, odd, 0))
		a.op("VFMADD231PS", high, p, sum(r, odd, 1))
	}
	a.op("ADDQ", "R8", "SI")
	a.op("ADDQ", "$4", "BX")
}

// joinTable interleaves two vectors: the first 16 elements, then the others.
func (a *asm) joinTable() {
	for i := range 16 {
		fmt.Fprintf(&a.out, "DATA join%s<>+%d(SB)/8, $0x%08X%08X\n", a.tag, 8*i, 16+i, i)
	}
	fmt.Fprintf(&a.out, "GLOBL join%s<>(SB), RODATA|NOPTR, $128\n", a.tag)
}
