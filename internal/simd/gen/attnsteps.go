package main

// The unit of tile work that overlaps a softmax is a step: 16 rows of A times 32 elements of k of a panel of B. A list
// of steps (simd.attnStep) is written first; then the vector code takes one or two after each row, so that tiles
// multiply while exponentials are computed. Steps of one 16 × 32 piece of C are consecutive; the first has the initial
// sums and the last their destination.

// Values of attnStep.start; any other is where C is.
const startKeep, startZero = 0, 1

// stepper holds what the list takes.
type stepper struct {
	*asm
	next, end   *reg // steps of the list: the next one, and after the last
	line        *reg // 64
	sums        []*reg
	left, right *reg // tiles of A and B
}

func newStepper(a *asm) stepper {
	return stepper{asm: a, next: a.hold("R8", "next step"), end: a.hold("R15", "end of the steps"),
		line: a.hold("R10", "64"), sums: a.tmms(0, 2, "C"), left: a.tmm(4, "A"), right: a.tmm(6, "B")}
}

// step is the step at a register.
func step(at *reg) fields { return fields{"attnStep", at} }

// takeStep does the next step.
func (s *stepper) takeStep() {
	for _, piece := range s.pieces() {
		piece()
	}
}

// pieces are the parts of a step. Until the last one R11 is held.
func (s *stepper) pieces() []func() {
	var b *reg
	return []func(){
		func() { b = s.begin() },
		func() { s.use(streamTile(s.right, b, s.line, 0)) },
		func() { s.use(multiplyTiles(s.sums[0], s.left, s.right)) },
		func() { s.use(streamTile(s.right, b, s.line, 1024)) },
		func() { s.finish(b) },
	}
}

// begin sets the sums and loads A. It returns where B is.
func (s *stepper) begin() *reg {
	begun, zero := s.fresh("begun"), s.fresh("zero")
	start := s.take(step(s.next), "start", "CX")
	a, b := s.take(step(s.next), "a", "R9"), s.take(step(s.next), "b", "R11")
	s.jump(start, startZero, "JLT", begun)
	s.op("JEQ", zero)
	ld := s.take(step(s.next), "ld", "AX")
	for col, sum := range s.sums {
		s.use(loadTile(sum, start, ld, 64*col))
	}
	s.op("JMP", begun)
	s.mark(zero)
	for _, sum := range s.sums {
		s.use(zeroTile(sum))
	}
	s.mark(begun)
	s.use(loadTile(s.left, a, s.line, 0))
	s.drop(start, a, ld)
	return b
}

// finish does the last product and stores the sums if they are complete.
func (s *stepper) finish(b *reg) {
	s.drop(b)
	kept := s.fresh("kept")
	s.use(multiplyTiles(s.sums[1], s.left, s.right))
	c := s.take(step(s.next), "c", "CX")
	s.op("TESTQ", c, c)
	s.op("JZ", kept)
	ld := s.take(step(s.next), "ld", "AX")
	for col, sum := range s.sums {
		s.use(storeTile(sum, c, ld, 64*col))
	}
	s.mark(kept)
	s.add(imm(sizeOf("attnStep")), s.next)
	s.drop(c, ld)
}

// takeUntil does steps up to the one at the address that an operand holds, or all.
func (s *stepper) takeUntil(end any) {
	again, done := s.fresh("take"), s.fresh("taken")
	s.mark(again)
	s.op("CMPQ", s.next, end)
	s.op("JGE", done)
	s.takeStep()
	s.op("JMP", again)
	s.mark(done)
}

// product is one that addSteps lists: A's rows sizeA bytes apart for each 32 of depth elements of k, times panels of B,
// strideB bytes apart.
type product struct {
	a, b, c, panels, depth *reg
	sizeA                  int
	strideB, ld            any
	start                  any // of C; negative: C itself
}

// addSteps lists the steps of a product and drops its registers.
func (s *stepper) addSteps(p product) {
	panel, one, fresh := s.fresh("addpanel"), s.fresh("addstep"), s.fresh("addfresh")
	start, ld, left := s.hold("AX", "start"), s.hold("DX", "ld"), s.hold("R14", "steps of k left")
	a, b := s.hold("R9", "A"), s.hold("R12", "B")
	s.repeat(panel, p.panels, func() {
		s.mov(p.start, start)
		s.op("TESTQ", start, start)
		s.op("JGE", fresh)
		s.mov(p.c, start)
		s.mark(fresh)
		s.mov(p.a, a)
		s.mov(p.b, b)
		s.mov(p.depth, left)
		s.mov(p.ld, ld)
		s.repeat(one, left, func() {
			s.mov(a, step(s.end).at("a"))
			s.mov(b, step(s.end).at("b"))
			s.mov(start, step(s.end).at("start"))
			s.zero(start) // startKeep, and no place for C
			s.mov(start, step(s.end).at("c"))
			s.mov(ld, step(s.end).at("ld"))
			s.add(imm(p.sizeA), a)
			s.add(imm(panelStep), b)
			s.add(imm(sizeOf("attnStep")), s.end)
		})
		s.mov(p.c, mem(s.end, offset("attnStep", "c")-sizeOf("attnStep"))) // of the last
		s.add("$128", p.c)
		s.add(p.strideB, p.b)
	})
	s.drop(start, ld, left, a, b, p.a, p.b, p.c, p.panels, p.depth)
}

// fetchSome prefetches n of the rows that a field points to into the second cache.
func fetchSome(a *asm, fetch operand, n int) {
	same := a.fresh("same")
	now, at, ld := a.hold("AX", "where the present rows are"), a.hold("R9", "row"), a.hold("R11", "ld")
	rows := fields{"fetchRows", a.hold("CX", "rows")}
	list := rows.base.(*reg)
	a.mov(fetch, now)
	a.mov(mem(now), list)
	a.mov(mem(list), at)
	a.mov(rows.at("ld"), ld)
	for range n {
		a.op("PREFETCHT1", mem(at))
		a.op("PREFETCHT1", mem(at, 64))
		a.add(ld, at)
	}
	a.mov(at, mem(list))
	a.sub(imm(n), rows.at("left"))
	a.op("JGT", same)
	a.add(imm(sizeOf("fetchRows")), mem(now))
	a.mark(same)
	a.drop(now, at, ld, list)
}
