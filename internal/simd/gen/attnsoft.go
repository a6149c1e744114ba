package main

import "fmt"

// softmaxGroup is the softmax of the present group. Meanwhile steps are taken: as many after each row that they end
// with the last.
func (f *attnForward) softmaxGroup() {
	f.group = fields{"forwardGroup", f.take(f.p, "group", "R12")}
	f.logits = f.hold("SI", "logits")
	f.mov(f.p.at("logits", 0), f.logits)
	f.panels = f.take(f.group, "panels", "R13")
	f.maskGroup()
	tops := f.rowTops()
	f.raiseTops(tops)
	f.stepRate()
	f.lines = f.hold("BX", "lines of p")
	f.mov(f.p.at("p", 0), f.lines)
	f.expRows()
	f.drop(f.group.base.(*reg), f.logits, f.panels, f.lines)
}

// maskGroup sets logits to −Inf outside of each row's columns lo … hi−1, if they are masked.
func (f *attnForward) maskGroup() {
	f.jump(f.group.at("masked"), 0, "JEQ", "masked")
	m := maskRegs{lo: f.take(f.group, "lo", "R9"), hi: f.take(f.group, "hi", "R11"),
		columns: f.hold("R14", "numbers of columns"), at: f.hold("AX", "logits of the panel")}
	left := f.hold("CX", "panels left")
	f.lea(operand(fmt.Sprintf("iota%s<>(SB)", f.tag)), m.columns)
	f.mov(f.logits, m.at)
	f.mov(f.panels, left)
	f.repeat("mask", left, func() {
		maskPanel(f.asm, m, 16, tileRow, 1)
		f.add("$128", m.at)
		f.add("$128", m.columns)
	})
	f.mark("masked")
	f.drop(m.lo, m.hi, m.columns, m.at, left)
}

// maskRegs are the operands of maskPanel: rows' lo and hi, the columns' numbers, the first row's logits.
type maskRegs struct{ lo, hi, columns, at *reg }

// maskPanel masks rows of 32 logits, step bytes apart, and those of a second map a unit further on, if any row's
// columns begin or end among them.
func maskPanel(a *asm, m maskRegs, rows, step, maps int) {
	label, whole := a.fresh("maskrow"), a.fresh("maskno")
	below, above, any := a.hold("K1", "below lo"), a.hold("K2", "not below hi"), a.hold("K3", "any")
	lo, hi := a.vec(0, "lo"), a.vec(1, "hi")
	first, last := a.vec(2, "first column, then −Inf"), a.vec(3, "last column, then 16 of them")
	more := a.vec(4, "16 more")
	at, row := a.hold("BX", "logits of the row"), a.hold("DX", "row")
	a.op("VPBROADCASTD", mem(m.columns), first)
	a.op("VPBROADCASTD", mem(m.columns, 124), last)
	a.op("KXORW", any, any, any)
	for i := 0; i < rows; i += 16 {
		a.op("VPCMPD", "$1", mem(m.lo, 4*i), first, below)
		a.op("VPCMPD", "$5", mem(m.hi, 4*i), last, above)
		a.op("KORW", below, any, any)
		a.op("KORW", above, any, any)
	}
	a.op("KORTESTW", any, any)
	a.op("JEQ", whole)
	inf := first
	a.op("VMOVUPS", a.bits(negInf), inf)
	a.op("VMOVDQU64", mem(m.columns), last)
	a.op("VMOVDQU64", mem(m.columns, 64), more)
	a.mov(m.at, at)
	a.zero(row)
	a.mark(label)
	a.op("VPBROADCASTD", indexed(m.lo, row, 4), lo)
	a.op("VPBROADCASTD", indexed(m.hi, row, 4), hi)
	for half, columns := range []*reg{last, more} {
		a.op("VPCMPD", "$1", lo, columns, below)
		a.op("VPCMPD", "$5", hi, columns, above)
		a.op("KORW", below, above, below)
		for m := range maps {
			a.op("VMOVUPS", inf, below, mem(at, m*unitSize+64*half))
		}
	}
	a.add(imm(step), at)
	a.op("INCQ", row)
	a.jump(row, rows, "JLT", label)
	a.mark(whole)
	a.drop(below, above, any, lo, hi, first, last, more, at, row)
}

// rowTops is the largest logits of the 16 rows, in Z0.
func (f *attnForward) rowTops() *reg {
	at, left := f.hold("AX", "logits of the panel"), f.hold("CX", "panels left")
	tops, temp := f.vecs(0, 16, "tops"), f.vecs(16, 2, "temporary")
	f.mov(f.logits, at)
	f.mov(f.panels, left)
	for r, top := range tops {
		f.op("VMOVUPS", mem(at, r*tileRow), top)
	}
	f.repeat("tops", left, func() {
		for r, top := range tops {
			f.op("VMAXPS", mem(at, r*tileRow), top, top)
			f.op("VMAXPS", mem(at, r*tileRow+64), top, top)
		}
		f.add("$128", at)
	})
	fold16(f.asm, "VMAXPS", tops, temp[0], temp[1])
	f.drop(at, left)
	f.drop(temp...)
	f.drop(tops[1:]...)
	return tops[0]
}

// raiseTops updates top, scales sums and, unless they are the first, accumulated rows down, and keeps what is
// subtracted. A row that has not seen any column yet has −Inf, for which the least number stands. It drops tops.
func (f *attnForward) raiseTops(tops *reg) {
	top, sum := f.take(f.group, "top", "AX"), f.take(f.group, "sum", "CX")
	old, least := f.vec(1, "old tops"), f.vec(2, "least number")
	factor, temp := f.vec(3, "factors of sums"), f.vec(4, "temporary")
	f.op("VMULPS", f.exp.scale, tops, tops)
	f.op("VMOVUPS", mem(top), old)
	f.op("VMAXPS", old, tops, tops)
	f.op("VMOVUPS", tops, mem(top))
	f.op("VMOVUPS", f.bits(0xFF7FFFFF), least)
	f.op("VMAXPS", least, tops, tops)
	f.op("VMAXPS", least, old, old)
	f.op("VMOVUPS", tops, f.p.at("shift"))
	f.op("VSUBPS", tops, old, old)
	exp2(f.asm, &f.exp, factor, old, temp)
	f.op("VMOVUPS", factor, f.p.at("factor"))
	f.op("VMULPS", mem(sum), factor, factor)
	f.op("VMOVUPS", factor, mem(sum))
	f.drop(top, sum, tops, factor, temp)
	f.jump(f.p.at("start"), 0, "JGE", "raised")
	f.scaleRaised(old, least)
	f.mark("raised")
	f.drop(old, least)
}

// scaleRaised scales the accumulated rows whose top has changed, by; zero is lost.
func (f *attnForward) scaleRaised(by, zero *reg) {
	changed := f.hold("K1", "changed")
	f.zero(zero)
	f.op("VCMPPS", "$4", zero, by, changed)
	rows, left := f.hold("AX", "rows left, as bits"), f.hold("DX", "vectors left")
	acc := f.hold("CX", "number of the row, then acc")
	factor, x := zero, f.vec(3, "elements")
	f.op("KMOVW", changed, rows)
	f.mark("raise")
	f.op("TESTL", rows, rows)
	f.op("JZ", "raised")
	f.op("BSFL", rows, acc)
	f.op("LEAL", mem(rows, -1), left)
	f.op("ANDL", left, rows)
	f.op("VBROADCASTSS", f.p.elem("factor", acc, 4), factor)
	f.op("IMULQ", f.p.at("ldacc"), acc)
	f.add(f.group.at("acc"), acc)
	f.mov(f.p.at("vectors"), left)
	f.repeat("scale", left, func() {
		f.op("VMULPS", mem(acc), factor, x)
		f.op("VMOVUPS", x, mem(acc))
		f.add("$64", acc)
	})
	f.op("JMP", "raise")
	f.drop(changed, rows, acc, left, x)
}

// stepRate finds the number of bytes of steps that go with a row: the list's, divided by 16 and rounded up to whole
// steps.
func (f *attnForward) stepRate() {
	left, rate := f.hold("AX", "bytes left"), f.hold("CX", "rate")
	f.mov(f.next, f.p.at("due"))
	f.mov(f.end, left)
	f.sub(f.next, left)
	f.zero(rate)
	f.mark("rate")
	f.add(imm(sizeOf("attnStep")), rate)
	f.sub(imm(16*sizeOf("attnStep")), left)
	f.op("JGT", "rate")
	f.mov(rate, f.p.at("rate"))
	f.drop(left, rate)
}

// expRows writes the rows' lines and adds their sums. Steps of tiles go best in small pieces between the lines of a
// whole row.
func (f *attnForward) expRows() {
	row := f.hold("DX", "row")
	line := expLine{asm: f.asm, exp: &f.exp, sums: f.vecs(0, 2, "sums"), shift: f.vec(16, "shift")}
	for _, n := range []int{4, 8} {
		line.x = append(line.x, f.vec(n, "logits"))
		line.e = append(line.e, f.vec(n+1, "exponentials"))
		line.temp = append(line.temp, f.vec(n+2, "temporary"))
	}
	f.zero(row)
	f.mark("row")
	f.op("VBROADCASTSS", f.p.elem("shift", row, 4), line.shift)
	f.zero(line.sums...)
	f.dueSteps()
	f.jump(f.panels, tileRow/128, "JNE", "alone")
	pieces := f.pieces()
	for n := range tileRow / 128 {
		pieces[n]()
		line.emit(f.logits, f.lines, n)
	}
	pieces[len(pieces)-1]()
	f.op("JMP", "exps")
	f.mark("alone")
	from, to, left := f.hold("AX", "logits of the line"), f.hold("R14", "line"), f.hold("CX", "lines left")
	f.mov(f.logits, from)
	f.mov(f.lines, to)
	f.mov(f.panels, left)
	f.repeat("line", left, func() {
		line.emit(from, to, 0)
		f.add("$128", from)
		f.add(imm(panelStep/2), to)
	})
	f.mark("exps")
	f.drop(from, to, left)
	f.keepSums(row, line.sums)
	f.takeUntil(f.p.at("due"))
	fetchSome(f.asm, f.p.at("fetch"), 2)
	f.add(imm(tileRow), f.logits)
	f.add("$64", f.lines)
	f.op("INCQ", row)
	f.op("CMPQ", row, f.group.at("rows"))
	f.op("JLT", "row")
	f.drop(row)
	line.drop()
	f.addSums()
}

// dueSteps finds the step up to which steps are taken in this row. It jumps where there are none.
func (f *attnForward) dueSteps() {
	due := f.hold("AX", "due")
	f.mov(f.p.at("rate"), due)
	f.add(f.p.at("due"), due)
	f.op("CMPQ", due, f.end)
	f.op("CMOVQGT", f.end, due)
	f.mov(due, f.p.at("due"))
	f.op("CMPQ", f.next, due)
	f.op("JGE", "alone")
	f.drop(due)
}

// keepSums stores a row's sums, a lane each.
func (f *attnForward) keepSums(row *reg, sums []*reg) {
	at := f.hold("AX", "offset of the row's sums")
	f.op("VADDPS", sums[1], sums[0], sums[0])
	f.mov(row, at)
	f.shl(6, at)
	f.op("VMOVUPS", sums[0], f.p.elem("sums", at, 1))
	f.drop(at)
}

// addSums folds the rows' sums and adds them to the group's.
func (f *attnForward) addSums() {
	sums, temp := f.vecs(0, 16, "sums"), f.vecs(16, 2, "temporary")
	for r, x := range sums {
		f.op("VMOVUPS", f.p.at("sums", r), x)
	}
	fold16(f.asm, "VADDPS", sums, temp[0], temp[1])
	at := f.take(f.group, "sum", "AX")
	f.op("VADDPS", mem(at), sums[0], sums[0])
	f.op("VMOVUPS", sums[0], mem(at))
	f.drop(at)
	f.drop(append(sums, temp...)...)
}

// expLine turns 32 logits into a line of p, rounded, and adds them to the sums.
type expLine struct {
	*asm
	exp        *exp2Regs
	shift      *reg
	sums       []*reg
	x, e, temp []*reg // of each half
}

// emit is line n of a row.
func (l *expLine) emit(from, to *reg, n int) {
	for i, sum := range l.sums {
		l.op("VMOVUPS", mem(from, 128*n+64*i), l.x[i])
		l.op("VFMSUB213PS", l.shift, l.exp.scale, l.x[i])
		exp2(l.asm, l.exp, l.e[i], l.x[i], l.temp[i])
		l.op("VADDPS", l.e[i], sum, sum)
	}
	l.use(roundPair(l.e[0], l.e[1], l.e[0]))
	l.op("VMOVDQU64", l.e[0], mem(to, panelStep/2*n))
}

// drop gives its registers back.
func (l *expLine) drop() {
	l.asm.drop(l.shift)
	for _, all := range [][]*reg{l.sums, l.x, l.e, l.temp} {
		l.asm.drop(all...)
	}
}
