package main

import (
	"fmt"
	"maps"
	"slices"
)

var pointersARM = []string{"R0", "R1", "R2", "R3", "R4", "R5"}

// bf16ARM is NEON with the bfloat16 instructions, including the conversion from float32.
var bf16ARM = isa{tag: "NEONBF16", file: "neonbf16", lanes: 4, reg: "V", regs: 32}

// spare is a scratch register for operations that take several instructions.
func (i isa) spare() string { return i.v(i.regs - 1) }

// neonFrame runs programs in NEON. R0 to R5 point into the slices, R7 counts the remaining elements, R8 points to
// parameters, R9 is the prefetch distance; R11 and R12 are temporaries. NEON has no masks: the elements after the last
// whole vector run through the program one at a time, in lane 0 of a vector whose other lanes are 0.
type neonFrame struct{ *body }

func (f neonFrame) prologue(ps []param) {
	for i := range f.kernel.accs * f.kernel.unroll {
		fill(f.asm, f.kernel.start, f.v(i))
	}
	f.free = f.kernel.accs * f.kernel.unroll
	ptr := 0
	for i, p := range ps {
		switch {
		case p.kind == "f":
			at := f.v(f.assign(p.name))
			f.op("FMOVS", fmt.Sprintf("%s+%d(FP)", p.name, p.off), float(at))
			spread(f.asm, at)
		case p.kind == "i":
			f.ahead = true
			f.op("MOVD", fmt.Sprintf("%s+%d(FP)", p.name, p.off), "R9")
			f.op("LSL", "$1", "R9")
		case p.kind != "" && p.kind != "h":
			f.op("MOVD", fmt.Sprintf("%s+%d(FP)", p.name, p.off), "R8")
		default:
			f.half[p.name] = p.kind == "h"
			f.mem[p.name] = pointersARM[ptr]
			f.op("MOVD", fmt.Sprintf("%s_base+%d(FP)", p.name, p.off), pointersARM[ptr])
			if i == 0 {
				f.op("MOVD", fmt.Sprintf("%s_len+%d(FP)", p.name, p.off+8), "R7")
			}
			ptr++
		}
	}
}

func (f neonFrame) stack() int { return 0 }

// flush makes subnormal inputs and results zero; R10 keeps the mode for unflush.
func (f neonFrame) flush() {
	f.op("MOVD", "FPCR", "R10")
	f.op("ORR", "$0x1000000", "R10", "R11")
	f.op("MOVD", "R11", "FPCR")
}

func (f neonFrame) unflush() { f.op("MOVD", "R10", "FPCR") }

// hold loads the program's constants and parameters into registers that the program does not use: NEON instructions
// take no operands from memory.
func (f neonFrame) hold() {
	trial := *f.body
	trial.asm, trial.frame = &asm{isa: f.isa, dry: true}, neonFrame{&trial}
	trial.fields = map[int]string{}
	f.kernel.body(&trial)
	r := f.regs - 2
	for _, c := range trial.consts {
		fill(f.asm, c, f.v(r))
		f.held[c] = f.v(r)
		r--
	}
	for _, i := range slices.Sorted(maps.Keys(trial.fields)) {
		f.op("FMOVS", fmt.Sprintf("%d(R8)", 4*i), float(f.v(r)))
		spread(f.asm, f.v(r))
		f.fields[i] = f.v(r)
		r--
	}
	if r+1 < trial.most {
		panic(f.kernel.name + f.tag + ": no registers for constants")
	}
}

// advance adds elements to all pointers.
func (f neonFrame) advance(elements int) {
	for _, name := range slices.SortedFunc(maps.Keys(f.mem),
		func(x, y string) int { return slices.Compare([]byte(f.mem[x]), []byte(f.mem[y])) }) {
		f.op("ADD", imm(elements*f.size(name)), f.mem[name])
	}
}

// loop runs the program while at least n vectors remain.
func (f neonFrame) loop(stem string, n int, program func()) {
	top, end := f.fresh(stem), f.fresh("end")
	f.op("CMP", imm(n*f.lanes), "R7")
	f.op("BLT", end)
	f.mark(top)
	program()
	f.advance(n * f.lanes)
	f.op("SUB", imm(n*f.lanes), "R7")
	f.op("CMP", imm(n*f.lanes), "R7")
	f.op("BGE", top)
	f.mark(end)
}

// left runs the program for each remaining element.
func (f neonFrame) left(_, program func()) {
	top, end := f.fresh("rest"), f.fresh("end")
	f.op("CBZ", "R7", end)
	f.masked = true
	f.mark(top)
	program()
	f.advance(1)
	f.op("SUB", "$1", "R7")
	f.op("CBNZ", "R7", top)
	f.mark(end)
	f.masked = false
}

// lookAhead does nothing: fetch adds the distance itself.
func (f neonFrame) lookAhead() {}

func (f neonFrame) at(name string) string {
	return fmt.Sprintf("%d(%s)", f.step*f.lanes*f.size(name), f.mem[name])
}

func (f neonFrame) load(name string) string {
	r := f.tmp()
	switch {
	case f.half[name] && f.masked:
		f.op("MOVHU", f.at(name), "R11")
		f.op("LSL", "$16", "R11")
		f.op("FMOVS", "R11", float(r))
	case f.half[name]:
		f.fetch(name)
		f.op("FMOVD", f.at(name), float(r))
		f.use(widened(r))
	case f.masked:
		f.op("FMOVS", f.at(name), float(r))
	default:
		f.op("FMOVQ", f.at(name), float(r))
	}
	return r
}

func (f neonFrame) fetch(name string) {
	if f.ahead && f.step*f.lanes*2%64 == 0 {
		f.op("ADD", "R9", f.mem[name], "R12")
		f.op("PRFM", "(R12)", "PLDL1KEEP")
	}
}

// storeFloats writes float32.
func (f neonFrame) storeFloats(name, r string) {
	move := "FMOVQ"
	if f.masked {
		move = "FMOVS"
	}
	f.op(move, float(r), f.at(name))
}

// trim clears the lanes beyond the end, before they enter a sum.
func (f neonFrame) trim(r string) {
	if f.masked {
		f.op("FMOVS", float(r), float(r))
	}
}

// words loads words and widens them, with their sign or without.
func (f neonFrame) words(signed bool, name string) string {
	r := f.tmp()
	load, code, op := "MOVHU", uint32(0x2F10A400), "uxtl"
	if signed {
		load, code, op = "MOVH", 0x0F10A400, "sxtl"
	}
	if f.masked {
		f.op(load, f.at(name), "R11")
		f.op("FMOVS", "R11", float(r))
		return r
	}
	f.op("FMOVD", f.at(name), float(r))
	f.use(turned(code, op, "4s", "4h", r, r))
	return r
}

// storeWords stores the lower half of each lane of r and overwrites r.
func (f neonFrame) storeWords(name, r string) {
	if f.masked {
		f.op("FMOVS", float(r), "R11")
		f.op("MOVH", "R11", f.at(name))
		return
	}
	f.use(turned(0x0E612800, "xtn", "4h", "4s", r, r))
	f.op("FMOVD", float(r), f.at(name))
}

// halved rounds r to four bfloat16 numbers in another register.
func (f neonFrame) halved(r string) string {
	if f.tag == bf16ARM.tag {
		h := f.tmp()
		f.use(turned(0x0EA16800, "bfcvtn", "4h", "4s", h, r))
		return h
	}
	h := rounded(f.body, r)
	f.use(word(0x0F108400|number(h)<<5|number(h), fmt.Sprintf("shrn v%d.4h, v%d.4s, #16", number(h), number(h))))
	return h
}

func (f neonFrame) storeRounded(name, r string) {
	free := f.free
	defer func() { f.free = free }()
	h := f.halved(r)
	if f.masked {
		f.op("FMOVS", float(h), "R11")
		f.op("MOVH", "R11", f.at(name))
		return
	}
	f.op("FMOVD", float(h), f.at(name))
}

func (f neonFrame) field(i int) string {
	if f.dry {
		f.fields[i] = f.v(0)
	}
	return f.fields[i]
}

// fold reduces the accumulators into the first one, and its lanes into lane 0.
func (f neonFrame) fold(op string) {
	type form struct {
		code, last  uint32
		name, shape string
	}
	add := map[string]form{"VADDPS": {0x4E20D400, 0x7E30D800, "fadd", "4s"},
		"VADDPD": {0x4E60D400, 0x7E70D800, "fadd", "2d"}, "VMAXPS": {0x4E20F400, 0, "fmax", "4s"}}[op]
	for n := f.kernel.accs * f.kernel.unroll; n > 1; n /= 2 {
		for i := range n / 2 {
			f.use(vvv(add.code, add.name, add.shape, f.v(i), f.v(i), f.v(i+n/2)))
		}
	}
	switch op {
	case "VMAXPS":
		f.use(word(0x6E30F800, "fmaxv s0, v0.4s"))
	case "VADDPD":
		f.use(word(add.last, "faddp d0, v0.2d"))
	default:
		f.use(vvv(0x6E20D400, "faddp", "4s", "V0", "V0", "V0"))
		f.use(word(add.last, "faddp s0, v0.2s"))
	}
}

// result stores the program's result, F0.
func (f neonFrame) result(at int) {
	f.op(map[string]string{"float32": "FMOVS", "float64": "FMOVD"}[f.kernel.result], "F0",
		fmt.Sprintf("ret+%d(FP)", at))
}

func (f neonFrame) leave() { f.op("RET") }

// fill sets every lane of a register to c; spread copies lane 0 to all lanes.
func fill(a *asm, c uint32, r string) {
	if c == 0 {
		a.op("VEOR", r+".B16", r+".B16", r+".B16")
		return
	}
	a.op("MOVD", fmt.Sprintf("$0x%X", c), "R11")
	a.op("VDUP", "R11", r+".S4")
}

func spread(a *asm, r string) { a.op("VDUP", r+".S[0]", r+".S4") }

// float is the scalar name of a vector register.
func float(r string) string { return "F" + r[1:] }

// widened converts four bfloat16 numbers to float32.
func widened(r string) macro {
	return word(0x2E613800|number(r)<<5|number(r), fmt.Sprintf("shll v%d.4s, v%d.4h, #16", number(r), number(r)))
}

// sumSquaresNEON squares both halves of a vector in float64.
func sumSquaresNEON(b *body) {
	x, hi := b.load("x"), b.tmp()
	b.use(turned(0x4E617800, "fcvtl2", "2d", "4s", hi, x))
	b.use(turned(0x0E617800, "fcvtl", "2d", "2s", x, x))
	b.use(vvv(0x4E60CC00, "fmla", "2d", b.v(b.acc), x, x))
	b.use(vvv(0x4E60CC00, "fmla", "2d", b.v(b.acc+1), hi, hi))
}
