package main

// halfProduct is the product of 16 rows of A with a panel of B: few tiles in use, kept apart, see gemmTiles, and a
// result can be stored while the next half multiplies. The operand that streams past, B or else A, is loaded so as not
// to evict the other from the first cache.
type halfProduct struct {
	*asm
	panelA, panelB *reg
	line           *reg   // 64
	rowsA          *reg   // of the half
	sums           []*reg // two tiles of each half
	left, right    *reg   // tiles of A and B
	streamB        bool
}

// emit adds depth steps of k to the half's sums. It uses CX and R9.
func (h *halfProduct) emit(half int, depth operand) {
	loadA, loadB := streamTile, loadTile
	if h.streamB {
		loadA, loadB = loadTile, streamTile
	}
	b, left := h.hold("R9", "step of B"), h.hold("CX", "steps of k left")
	h.mov(h.panelB, b)
	h.mov(depth, left)
	h.repeat(h.fresh("step"), left, func() {
		h.use(loadA(h.left, h.rowsA, h.line, 0))
		h.gap()
		for col := range 2 {
			h.use(loadB(h.right, b, h.line, 1024*col))
			h.gap()
			h.use(multiplyTiles(h.sums[2*half+col], h.left, h.right))
			h.gap()
		}
		h.add(imm(panelStep), h.rowsA)
		h.add(imm(panelStep), b)
	})
	h.drop(b, left)
}

// unitProduct multiplies panels of A and B, depth steps of k, into a unit. With two steps A stays in its tiles.
func unitProduct(a *asm, panelA, panelB, unit *reg, depth operand) {
	end, long := a.fresh("multiplied"), a.fresh("long")
	line, row := a.hold("R10", "64"), a.hold("R12", "row of a unit")
	a.mov("$64", line)
	a.mov(imm(unitRow), row)
	a.jump(depth, 2, "JNE", long)
	shallowProduct(a, panelA, panelB, unit, line, row)
	a.op("JMP", end)
	a.mark(long)
	h := halfProduct{asm: a, panelA: panelA, panelB: panelB, line: line, rowsA: a.hold("SI", "rows of A"),
		sums: a.tmms(0, 4, "C"), left: a.tmm(4, "A"), right: a.tmm(6, "B"),
		streamB: true}
	for half := range 2 {
		sums := h.sums[2*half:][:2]
		a.use(zeroTile(sums[0]))
		a.use(zeroTile(sums[1]))
		a.lea(mem(panelA, 1024*half), h.rowsA)
		h.emit(half, depth)
		a.use(storeTile(sums[0], unit, row, half*16*unitRow))
		a.use(storeTile(sums[1], unit, row, half*16*unitRow+64))
	}
	a.mark(end)
	a.drop(line, row, h.rowsA, h.left, h.right)
	a.drop(h.sums...)
}

// shallowProduct is unitProduct of two steps of k.
func shallowProduct(a *asm, panelA, panelB, unit, line, row *reg) {
	sums, right := a.tmms(0, 2, "C of 16 rows"), a.tmm(6, "B")
	left := append(a.tmms(2, 2, "A of 16 rows, both steps"), a.tmms(4, 2, "A of the others")...)
	for i, t := range left {
		a.use(loadTile(t, panelA, line, i/2*1024+i%2*panelStep))
	}
	for col := range 2 {
		a.use(zeroTile(sums[0]))
		a.use(zeroTile(sums[1]))
		for step := range 2 {
			a.use(streamTile(right, panelB, line, step*panelStep+1024*col))
			a.gap()
			for half, sum := range sums {
				a.use(multiplyTiles(sum, left[2*half+step], right))
				a.gap()
			}
		}
		for half, sum := range sums {
			a.use(storeTile(sum, unit, row, half*16*unitRow+64*col))
		}
	}
	a.drop(append(append(sums, left...), right)...)
}

// productTiles emits C[32·rows, 32·cols] (+)= A·B for operands and a C that the first two caches hold: a finished tile
// goes straight to C. On the diagonal, where a triangle of A or B is zeros, a column begins one step of k later than
// the previous one, or a row ends one step later.
func productTiles(a *asm) {
	p := a.kernel("product", "productArgs", 0, "DI")
	configTiles(a, p.at("config"))
	panelB, ldc := a.take(p, "b", "BX"), a.take(p, "ldc", "R12")
	half := a.hold("R15", "16 rows of C")
	a.mov(ldc, half)
	a.shl(4, half)
	h := halfProduct{asm: a, panelA: a.hold("R8", "panel of A"), panelB: panelB, line: a.hold("R10", "64"),
		rowsA: a.hold("SI", "rows of A"), sums: a.tmms(0, 4, "C"), left: a.tmm(4, "A"), right: a.tmm(6, "B")}
	a.mov("$64", h.line)
	copyField(a, p.at("c"), p.at("column"))
	copyField(a, p.at("a"), p.at("panel"))
	upper, lower, rows := a.hold("R11", "C"), a.hold("R14", "its other 16 rows"), a.hold("R13", "panels of A left")
	a.repeat("column", p.at("cols"), func() {
		a.mov(p.at("panel"), h.panelA)
		a.mov(p.at("column"), upper)
		a.mov(p.at("rows"), rows)
		copyField(a, p.at("steps"), p.at("now"))
		a.jump(p.at("longer"), 0, "JEQ", "panel")
		copyField(a, p.at("longer"), p.at("now"))
		a.repeat("panel", rows, func() {
			a.lea(indexed(upper, half, 1), lower)
			for i, c := range []*reg{upper, lower} {
				sums := h.sums[2*i:][:2]
				startSums(a, sums, c, ldc, p.at("load"))
				a.lea(mem(h.panelA, 1024*i), h.rowsA)
				h.emit(i, p.at("now"))
				a.use(storeTile(sums[0], c, ldc, 0))
				a.use(storeTile(sums[1], c, ldc, 64))
			}
			a.lea(indexed(lower, half, 1), upper)
			a.add(p.at("strideA"), h.panelA)
			lengthen(a, p)
		})
		a.add("$128", p.at("column"))
		a.add(p.at("strideB"), panelB)
		a.jump(p.at("later"), 0, "JEQ", "whole")
		a.add(imm(panelStep), panelB)
		a.add(imm(panelStep), p.at("panel"))
		a.op("DECQ", p.at("steps"))
		a.mark("whole")
	})
	a.use(tileRelease())
	a.op("RET")
}

// startSums sets two tiles to 16 rows of C, or to zero unless the product is added to it.
func startSums(a *asm, sums []*reg, c, ldc *reg, load operand) {
	zero, begin := a.fresh("zero"), a.fresh("begin")
	a.jump(load, 0, "JEQ", zero)
	a.use(loadTile(sums[0], c, ldc, 0))
	a.use(loadTile(sums[1], c, ldc, 64))
	a.op("JMP", begin)
	a.mark(zero)
	a.use(zeroTile(sums[0]))
	a.use(zeroTile(sums[1]))
	a.mark(begin)
}

// lengthen gives the next panel one step of k more, unless it has all.
func lengthen(a *asm, p fields) {
	now := a.take(p, "now", "AX")
	a.op("CMPQ", now, p.at("steps"))
	a.op("JGE", "long")
	a.op("INCQ", p.at("now"))
	a.mark("long")
	a.drop(now)
}
