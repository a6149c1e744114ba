package main

import "fmt"

// valuesKernel adds up to 32 positions to acc, of n·turns rows of each of some groups: acc += even + odd, the sums of
// p·v over the even and over the odd positions. A line is 32 columns, the even ones and the odd ones a register each.
// 3 cycles a line with two rows.
type valuesKernel struct {
	*asm
	n            int
	p            fields
	ld, four     *reg // from a position to the next, to the fourth
	column       *reg // in bytes
	probs, acc   *reg // of the group's first row
	prob, accRow *reg // of the current row
	upper        *reg // mask of the upper words
	join         []*reg
	sums         []*reg // of row r: 4·r + 2·odd position + odd column
}

func newValuesKernel(a *asm, n int) *valuesKernel {
	k := &valuesKernel{asm: a, n: n, p: a.kernel(fmt.Sprintf("values%dx", n), "stretchValues", 8, "DI")}
	k.upper, k.join, k.sums = a.vec(31, "upper words"), a.vecs(29, 2, "order"), a.vecs(16, 4*n, "sums")
	k.prob, k.accRow = a.hold("R13", "p of a row"), a.hold("R14", "acc of a row")
	flush(a)
	a.op("VMOVDQU64", a.bits(0xFFFF0000), k.upper)
	for i, r := range k.join {
		a.op("VMOVDQU64", fmt.Sprintf("join%s<>+%d(SB)", a.tag, 64*i), r)
	}
	k.ld, k.probs, k.acc = a.take(k.p, "ld", "R8"), a.take(k.p, "p", "R10"), a.take(k.p, "acc", "R11")
	k.column, k.four = a.hold("R12", "column"), a.hold("R15", "four positions")
	return k
}

func (k *valuesKernel) emit() {
	k.zero(k.column)
	k.lea(operand(fmt.Sprintf("(%s*4)", k.ld)), k.four)
	k.repeat("group", k.p.at("groups"), func() {
		copyField(k.asm, k.p.at("pieces"), k.p.at("piece"))
		k.repeat("piece", k.p.at("piece"), func() {
			k.mov(k.probs, k.prob)
			k.mov(k.acc, k.accRow)
			copyField(k.asm, k.p.at("turns"), k.p.at("row"))
			k.repeat("rows", k.p.at("row"), k.piece)
			k.add("$64", k.column)
			k.add("$128", k.acc)
		})
		k.mov(k.prob, k.probs) // after this group's rows
		k.lea(mem(k.accRow, 128), k.acc)
		k.sub(k.p.at("ldacc"), k.acc)
	})
	unflush(k.asm)
}

// piece is the line at column of all positions, for the n rows at prob and accRow, which both move to the next rows.
func (k *valuesKernel) piece() {
	k.zero(k.sums...)
	prob, left := k.hold("BX", "p of a position"), k.hold("DX", "positions left")
	k.mov(k.prob, prob)
	k.mov(k.p.at("count"), left)
	done := k.fresh("done")
	k.block(0, prob, left, done)
	k.block(1, prob, left, done)
	k.drop(prob, left)
	k.mark(done)
	joined := k.vecs(0, 2, "columns in order")
	for r := range k.n {
		s := k.sums[4*r:]
		for col := range 2 {
			k.op("VADDPS", s[2+col], s[col], s[col])
		}
		for i, x := range joined {
			k.op("VMOVAPS", s[0], x)
			k.op("VPERMT2PS", s[1], k.join[i], x)
			k.op("VADDPS", mem(k.accRow, 64*i), x, x)
			k.op("VMOVUPS", x, mem(k.accRow, 64*i))
		}
		k.add(k.p.at("ldacc"), k.accRow)
	}
	k.drop(joined...)
	k.add(imm(k.n*tileRow), k.prob)
}

// block is 16 of the positions left, or what there is; after the last it jumps to done. It prefetches the next block in
// the order of keysKernel.
func (k *valuesKernel) block(block int, prob, left *reg, done string) {
	four, pair, rest, more := k.fresh("four"), k.fresh("pair"), k.fresh("rest"), k.fresh("more")
	line, next, count := k.hold("SI", "line"), k.hold("R9", "next block"), k.hold("CX", "positions of the block")
	k.mov(k.p.at("v", block), line)
	k.add(k.column, line)
	k.mov(k.p.at("next", block), next)
	k.lea(indexed(next, k.column, 4), next)
	k.mov("$16", count)
	k.op("CMPQ", left, count)
	k.op("CMOVQLT", left, count)
	k.sub(count, left)
	k.sub("$4", count)
	k.op("JLT", pair)
	k.mark(four)
	for i := range 4 {
		k.op("PREFETCHT1", mem(next, 64*i))
		k.position(i%2, line, prob)
	}
	k.add(k.four, next)
	k.sub("$4", count)
	k.op("JGE", four)
	k.mark(pair)
	k.add("$2", count)
	k.op("JLT", rest)
	for odd := range 2 {
		k.position(odd, line, prob)
	}
	k.sub("$2", count)
	k.mark(rest)
	k.jump(count, -1, "JNE", more)
	k.position(0, line, prob)
	k.mark(more)
	k.op("TESTQ", left, left)
	k.op("JZ", done)
	k.drop(line, next, count)
}

// position adds one position, odd or even.
func (k *valuesKernel) position(odd int, at, prob *reg) {
	line, low, high := k.vec(3*odd, "line"), k.vec(3*odd+1, "even columns"), k.vec(3*odd+2, "odd columns")
	k.op("VMOVDQU64", mem(at), line)
	k.op("VPSLLD", "$16", line, low)
	k.op("VPANDD", k.upper, line, high)
	for r := range k.n {
		p := k.vec(6+2*odd+r, "p")
		k.op("VBROADCASTSS", mem(prob, r*tileRow), p)
		k.op("VFMADD231PS", low, p, k.sums[4*r+2*odd])
		k.op("VFMADD231PS", high, p, k.sums[4*r+2*odd+1])
		k.drop(p)
	}
	k.add(k.ld, at)
	k.add("$4", prob)
	k.drop(line, low, high)
}
