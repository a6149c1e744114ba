package main

// emitNEON is emit in NEON: R13 is the size of a head in bytes, R14 the number of heads, R15 counts them, R16 and R17
// save the pointers.
func (r *rotation) emitNEON() {
	r.op("MOVD", "cos_len+32(FP)", "R13")
	r.op("LSL", "$1", "R13")
	r.op("MOVD", "x_len+8(FP)", "R14")
	r.op("UDIV", "R13", "R14", "R14")
	r.op("LSL", map[bool]string{true: "$1", false: "$2"}[r.half["x"]], "R13")
	if r.steps > 1 {
		r.loop("many", r.steps, func() { r.headsNEON(r.steps) })
	}
	r.loop("one", 1, func() { r.headsNEON(1) })
	r.left(nil, func() { r.headsNEON(1) })
}

func (r *rotation) headsNEON(steps int) {
	base := r.free
	for r.step = range steps {
		r.angles()
	}
	kept, top := r.free, r.fresh("head")
	both := r.mem["b"] != ""
	r.op("MOVD", "R0", "R16")
	if both {
		r.op("MOVD", "R5", "R17")
	}
	r.op("MOVD", "R14", "R15")
	r.mark(top)
	for r.step = range steps {
		r.free = kept
		r.turn()
	}
	r.op("ADD", "R13", "R0")
	if both {
		r.op("ADD", "R13", "R5")
	}
	r.op("SUB", "$1", "R15")
	r.op("CBNZ", "R15", top)
	r.op("MOVD", "R16", "R0")
	if both {
		r.op("MOVD", "R17", "R5")
	}
	r.step, r.free = 0, base
}

// rotatePairsNEON separates the elements of pairs when it loads them.
func rotatePairsNEON(b *body) {
	var cos, sin string
	b.pair["x"] = true
	b.op("MOVD", "cos_len+32(FP)", "R7")
	r := rotation{body: b, steps: 1}
	r.angles = func() {
		cos, sin = b.load("cos"), b.load("sin")
		b.mul(b.s("sign"), sin, sin)
	}
	r.turn = func() {
		x, y := loadPairs(neonFrame{b})
		t := b.tmp()
		b.mul(y, sin, t)
		b.subFrom(x, cos, t)
		b.mul(y, cos, y)
		b.fma(x, sin, y)
		storePairs(neonFrame{b}, x, t, y)
	}
	r.emit()
}

// loadPairs loads the first and the second element of each pair of x.
func loadPairs(f neonFrame) (x, y string) {
	x, y = f.tmp(), f.tmp()
	switch {
	case f.masked && f.half["x"]:
		for at, r := range []string{x, y} {
			f.op("MOVHU", []string{"(R0)", "2(R0)"}[at], "R11")
			f.op("LSL", "$16", "R11")
			f.op("FMOVS", "R11", float(r))
		}
	case f.masked:
		f.op("FMOVS", "(R0)", float(x))
		f.op("FMOVS", "4(R0)", float(y))
	case f.half["x"]:
		f.fetch("x")
		f.op("VLD2", "(R0)", "["+x+".H4, "+y+".H4]")
		f.use(widened(x))
		f.use(widened(y))
	default:
		f.op("VLD2", "(R0)", "["+x+".S4, "+y+".S4]")
	}
	return x, y
}

// storePairs stores pairs of t and y; x, the register before y, is overwritten.
func storePairs(f neonFrame, x, t, y string) {
	if f.half["x"] {
		t, h := f.halved(t), f.halved(y)
		if f.masked {
			for at, r := range []string{t, h} {
				f.op("FMOVS", float(r), "R11")
				f.op("MOVH", "R11", []string{"(R0)", "2(R0)"}[at])
			}
			return
		}
		f.move(t, x)
		f.move(h, y)
		f.op("VST2", "["+x+".H4, "+y+".H4]", "(R0)")
		return
	}
	if f.masked {
		f.op("FMOVS", float(t), "(R0)")
		f.op("FMOVS", float(y), "4(R0)")
		return
	}
	f.move(t, x)
	f.op("VST2", "["+x+".S4, "+y+".S4]", "(R0)")
}
