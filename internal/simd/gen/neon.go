package main

import (
	"fmt"
	"maps"
	"slices"
)

// The frame of vector programs in NEON. Pointers walk along their slices, R7 counts the elements left, R8 points to parameters, R9 is a distance
// ahead; R11 and R12 are for a moment. Vectors have no masks: what is left behind the last whole one goes through the program one by
// one, as the first lane of a vector whose others load as 0.

var pointersARM = []string{"R0", "R1", "R2", "R3", "R4", "R5"}

// bf16ARM is NEON with instructions on bfloat16, its own conversion among them.
var bf16ARM = isa{tag: "NEONBF16", file: "neonbf16", lanes: 4, reg: "V", regs: 32}

// spare is a register that an instruction made of several may use.
func (a *asm) spare() string { return a.v(a.regs - 1) }

func (o *vecOp) emitNEON(a *asm) {
	ps, ret, size := o.layout()
	a.text(o.name, 0, size)
	b := newBody(a, o)
	b.prologueNEON(ps)
	if o.flush {
		a.op("MOVD", "FPCR", "R10")
		a.op("ORR", "$0x1000000", "R10", "R11") // subnormal inputs and results zero
		a.op("MOVD", "R11", "FPCR")
	}
	if base := b.free; o.loops != nil {
		o.loops(b)
	} else {
		b.holdNEON()
		b.loops(base)
	}
	if o.end != nil {
		o.end(b)
		a.op(map[string]string{"float32": "FMOVS", "float64": "FMOVD"}[o.result], "F0", fmt.Sprintf("ret+%d(FP)", ret))
	}
	if o.flush {
		a.op("MOVD", "R10", "FPCR")
	}
	a.op("RET")
}

func (b *body) prologueNEON(ps []param) {
	for i := range b.kernel.accs * b.kernel.unroll {
		fill(b.asm, b.kernel.start, b.v(i))
	}
	b.free = b.kernel.accs * b.kernel.unroll
	ptr := 0
	for i, p := range ps {
		switch {
		case p.kind == "f":
			b.scalar[p.name] = b.free
			b.op("FMOVS", fmt.Sprintf("%s+%d(FP)", p.name, p.off), float(b.v(b.free)))
			spread(b.asm, b.v(b.free))
			b.free++
		case p.kind == "i":
			b.ahead = true
			b.op("MOVD", fmt.Sprintf("%s+%d(FP)", p.name, p.off), "R9")
			b.op("LSL", "$1", "R9")
		case p.kind != "" && p.kind != "h":
			b.op("MOVD", fmt.Sprintf("%s+%d(FP)", p.name, p.off), "R8")
		default:
			b.half[p.name] = p.kind == "h"
			b.mem[p.name] = pointersARM[ptr]
			b.op("MOVD", fmt.Sprintf("%s_base+%d(FP)", p.name, p.off), pointersARM[ptr])
			if i == 0 {
				b.op("MOVD", fmt.Sprintf("%s_len+%d(FP)", p.name, p.off+8), "R7")
			}
			ptr++
		}
	}
}

// holdNEON keeps the program's constants and parameters in registers that it leaves: there are no operands in memory.
func (b *body) holdNEON() {
	trial := *b
	trial.asm = &asm{isa: b.isa, dry: true}
	trial.fields = map[int]string{}
	b.kernel.body(&trial)
	r := b.regs - 2
	for _, c := range trial.consts {
		fill(b.asm, c, b.v(r))
		b.held[c] = b.v(r)
		r--
	}
	for _, i := range slices.Sorted(maps.Keys(trial.fields)) {
		b.op("FMOVS", fmt.Sprintf("%d(R8)", 4*i), float(b.v(r)))
		spread(b.asm, b.v(r))
		b.fields[i] = b.v(r)
		r--
	}
	if r+1 < trial.most {
		panic(b.kernel.name + b.tag + ": no registers for constants")
	}
}

// fill sets every lane of a register, spread makes them the first one.
func fill(a *asm, c uint32, r string) {
	if c == 0 {
		a.op("VEOR", r+".B16", r+".B16", r+".B16")
		return
	}
	a.op("MOVD", fmt.Sprintf("$0x%X", c), "R11")
	a.op("VDUP", "R11", r+".S4")
}

func spread(a *asm, r string) { a.op("VDUP", r+".S[0]", r+".S4") }

// float is a vector register's name as a single number.
func float(r string) string { return "F" + r[1:] }

// size is the bytes of an element of a slice, for each element that is counted: of pairs there are two.
func (b *body) size(name string) int {
	n := 4
	if b.half[name] {
		n = 2
	}
	if b.pair[name] {
		n *= 2
	}
	return n
}

// advance moves all pointers on.
func (b *body) advance(elements int) {
	for _, name := range slices.SortedFunc(maps.Keys(b.mem), func(x, y string) int { return slices.Compare([]byte(b.mem[x]), []byte(b.mem[y])) }) {
		b.op("ADD", imm(elements*b.size(name)), b.mem[name])
	}
}

// loopNEON runs f while at least n vectors are left.
func (b *body) loopNEON(stem string, n int, f func()) {
	top, end := b.fresh(stem), b.fresh("end")
	b.op("CMP", imm(n*b.lanes), "R7")
	b.op("BLT", end)
	b.mark(top)
	f()
	b.advance(n * b.lanes)
	b.op("SUB", imm(n*b.lanes), "R7")
	b.op("CMP", imm(n*b.lanes), "R7")
	b.op("BGE", top)
	b.mark(end)
}

// eachLeft runs f for every element that is left.
func (b *body) eachLeft(f func()) {
	top, end := b.fresh("rest"), b.fresh("end")
	b.op("CBZ", "R7", end)
	b.masked = true
	b.mark(top)
	f()
	b.advance(1)
	b.op("SUB", "$1", "R7")
	b.op("CBNZ", "R7", top)
	b.mark(end)
	b.masked = false
}

func (b *body) atNEON(name string) string {
	return fmt.Sprintf("%d(%s)", b.step*b.lanes*b.size(name), b.mem[name])
}

func (b *body) loadNEON(name string) string {
	r := b.tmp()
	switch {
	case b.half[name] && b.masked:
		b.op("MOVHU", b.atNEON(name), "R11")
		b.op("LSL", "$16", "R11")
		b.op("FMOVS", "R11", float(r))
	case b.half[name]:
		b.fetchNEON(name)
		b.op("FMOVD", b.atNEON(name), float(r))
		b.use(widened(r))
	case b.masked:
		b.op("FMOVS", b.atNEON(name), float(r))
	default:
		b.op("FMOVQ", b.atNEON(name), float(r))
	}
	return r
}

// widened makes four numbers of bfloat16 float32.
func widened(r string) macro {
	return word(0x2E613800|number(r)<<5|number(r), fmt.Sprintf("shll v%d.4s, v%d.4h, #16", number(r), number(r)))
}

func (b *body) fetchNEON(name string) {
	if b.ahead && b.step*b.lanes*2%64 == 0 {
		b.op("ADD", "R9", b.mem[name], "R12")
		b.op("PRFM", "(R12)", "PLDL1KEEP")
	}
}

// storeNEON writes float32.
func (b *body) storeNEON(name, r string) {
	move := "FMOVQ"
	if b.masked {
		move = "FMOVS"
	}
	b.op(move, float(r), b.atNEON(name))
}

// wordsNEON loads words and widens them, with their sign or without.
func (b *body) wordsNEON(signed bool, name string) string {
	r := b.tmp()
	load, code, op := "MOVHU", uint32(0x2F10A400), "uxtl"
	if signed {
		load, code, op = "MOVH", 0x0F10A400, "sxtl"
	}
	if b.masked {
		b.op(load, b.atNEON(name), "R11")
		b.op("FMOVS", "R11", float(r))
		return r
	}
	b.op("FMOVD", b.atNEON(name), float(r))
	b.use(turned(code, op, "4s", "4h", r, r))
	return r
}

// storeWordsNEON stores the lower halves of r, which is lost.
func (b *body) storeWordsNEON(name, r string) {
	if b.masked {
		b.op("FMOVS", float(r), "R11")
		b.op("MOVH", "R11", b.atNEON(name))
		return
	}
	b.use(turned(0x0E612800, "xtn", "4h", "4s", r, r))
	b.op("FMOVD", float(r), b.atNEON(name))
}

// halved rounds r to four numbers of bfloat16, in a register of its own.
func (b *body) halved(r string) string {
	if b.tag == bf16ARM.tag {
		h := b.tmp()
		b.use(turned(0x0EA16800, "bfcvtn", "4h", "4s", h, r))
		return h
	}
	h := b.rounded(r)
	b.use(word(0x0F108400|number(h)<<5|number(h), fmt.Sprintf("shrn v%d.4h, v%d.4s, #16", number(h), number(h))))
	return h
}

func (b *body) storeRoundedNEON(name, r string) {
	free := b.free
	defer func() { b.free = free }()
	h := b.halved(r)
	if b.masked {
		b.op("FMOVS", float(h), "R11")
		b.op("MOVH", "R11", b.atNEON(name))
		return
	}
	b.op("FMOVD", float(h), b.atNEON(name))
}

func (b *body) fieldNEON(i int) string {
	if b.dry {
		b.fields[i] = b.v(0)
	}
	return b.fields[i]
}

// foldNEON adds the accumulators into the first, and that one's lanes into its first.
func (b *body) foldNEON(op string) {
	type form struct {
		code, last  uint32
		name, shape string
	}
	f := map[string]form{"VADDPS": {0x4E20D400, 0x7E30D800, "fadd", "4s"}, "VADDPD": {0x4E60D400, 0x7E70D800, "fadd", "2d"}, "VMAXPS": {0x4E20F400, 0, "fmax", "4s"}}[op]
	for n := b.kernel.accs * b.kernel.unroll; n > 1; n /= 2 {
		for i := range n / 2 {
			b.use(vvv(f.code, f.name, f.shape, b.v(i), b.v(i), b.v(i+n/2)))
		}
	}
	switch op {
	case "VMAXPS":
		b.use(word(0x6E30F800, "fmaxv s0, v0.4s"))
	case "VADDPD":
		b.use(word(f.last, "faddp d0, v0.2d"))
	default:
		b.use(vvv(0x6E20D400, "faddp", "4s", "V0", "V0", "V0"))
		b.use(word(f.last, "faddp s0, v0.2s"))
	}
}

// sumSquaresNEON squares both halves of a vector in float64.
func sumSquaresNEON(b *body) {
	x, hi := b.load("x"), b.tmp()
	b.use(turned(0x4E617800, "fcvtl2", "2d", "4s", hi, x))
	b.use(turned(0x0E617800, "fcvtl", "2d", "2s", x, x))
	b.use(vvv(0x4E60CC00, "fmla", "2d", b.v(b.acc), x, x))
	b.use(vvv(0x4E60CC00, "fmla", "2d", b.v(b.acc+1), hi, hi))
}
