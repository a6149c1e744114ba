package main

import (
	"fmt"
	"strconv"
	"strings"
)

// avxFrame runs programs on amd64. AX counts the elements done, CX those left; R10 points to parameters, R13 is a
// distance ahead. The rest after the last whole vector runs through the program again, under a mask.
type avxFrame struct{ *body }

var pointers = []string{"DI", "SI", "BX", "R8", "R9", "R11"}

// prologue loads pointers, length and scalars and sets the accumulators. The last register of AVX2 is the mask.
func (f avxFrame) prologue(ps []param) {
	for i := range f.kernel.accs * f.kernel.unroll {
		if f.kernel.start == 0 {
			f.op("VXORPS", f.v(i), f.v(i), f.v(i))
		} else {
			f.op("VMOVUPS", f.bits(f.kernel.start), f.v(i))
		}
	}
	f.free = f.kernel.accs * f.kernel.unroll
	ptr := 0
	for i, p := range ps {
		switch {
		case p.kind == "f":
			f.op("VBROADCASTSS", fmt.Sprintf("%s+%d(FP)", p.name, p.off), f.v(f.assign(p.name)))
		case p.kind == "i":
			f.ahead = true
			f.op("MOVQ", fmt.Sprintf("%s+%d(FP)", p.name, p.off), "R13")
		case p.kind != "" && p.kind != "h":
			f.op("MOVQ", fmt.Sprintf("%s+%d(FP)", p.name, p.off), "R10")
		default:
			if p.kind == "h" {
				f.half[p.name] = true
			}
			f.mem[p.name] = pointers[ptr]
			f.op("MOVQ", fmt.Sprintf("%s_base+%d(FP)", p.name, p.off), pointers[ptr])
			if i == 0 {
				f.op("MOVQ", fmt.Sprintf("%s_len+%d(FP)", p.name, p.off+8), "CX")
			}
			ptr++
		}
	}
	f.op("XORQ", "AX", "AX")
}

// stack is the room for the processor's mode, where it is changed.
func (f avxFrame) stack() int {
	if f.kernel.flush {
		return 8
	}
	return 0
}

// flush makes subnormal inputs and results zero, with all exceptions masked; unflush ends that.
func (f avxFrame) flush() {
	f.op("STMXCSR", "mode-8(SP)")
	f.op("LDMXCSR", f.asm.bits(0x9FC0))
}

func (f avxFrame) unflush() { f.op("LDMXCSR", "mode-8(SP)") }

// hold keeps the program's constants in registers that it leaves, of which AVX-512 has enough: read from memory they
// would take as long as the arithmetic, and twice as long where a vector of them crosses a line of the cache.
func (f avxFrame) hold() {
	if !f.wide() {
		return
	}
	trial := *f.body
	trial.asm, trial.frame = &asm{isa: f.isa}, avxFrame{&trial}
	f.kernel.body(&trial)
	for i, c := range trial.consts {
		if r := f.regs - 1 - i; r >= trial.most {
			f.op("VMOVUPS", f.bits(c), f.v(r))
			f.held[c] = f.v(r)
		}
	}
}

// loop runs the program while at least n vectors are left: AX counts elements done, CX those left.
func (f avxFrame) loop(stem string, n int, program func()) {
	top, end := f.fresh(stem), f.fresh("end")
	f.op("CMPQ", "CX", imm(n*f.lanes))
	f.op("JLT", end)
	f.mark(top)
	program()
	f.op("ADDQ", imm(n*f.lanes), "AX")
	f.op("SUBQ", imm(n*f.lanes), "CX")
	f.op("CMPQ", "CX", imm(n*f.lanes))
	f.op("JGE", top)
	f.mark(end)
}

// left runs the program for the CX elements that are left, under masks.
func (f avxFrame) left(masks, program func()) {
	if masks == nil {
		masks = f.rest
	}
	f.op("TESTQ", "CX", "CX")
	f.op("JZ", "done")
	masks()
	program()
	f.mark("done")
}

// rest prepares the vector of the CX elements that are left: with a mask of them in K1, or in the last register. AVX2
// has none for words: with slices of bfloat16, of which there is at least a vector, it does the last ones again.
func (f avxFrame) rest() {
	if len(f.half) > 0 && !f.wide() {
		f.op("LEAQ", fmt.Sprintf("-%d(AX)(CX*1)", f.lanes), "AX")
		return
	}
	f.masked = true
	if f.wide() {
		f.laneMask("K1")
		return
	}
	f.op("LEAQ", "mask"+f.tag+"<>+64(SB)", "DX")
	f.op("SHLQ", "$2", "CX")
	f.op("SUBQ", "CX", "DX")
	f.op("VMOVUPS", "(DX)", f.mask())
}

// laneMask sets a mask register for the first CX lanes.
func (f avxFrame) laneMask(k string) {
	f.op("MOVQ", "$1", "DX")
	f.op("SHLQ", "CX", "DX")
	f.op("DECQ", "DX")
	f.op("KMOVW", "DX", k)
}

func (f avxFrame) at(name string) string {
	if f.half[name] {
		return fmt.Sprintf("%d(%s)(AX*2)", f.step*f.bytes()/2, f.mem[name])
	}
	return fmt.Sprintf("%d(%s)(AX*4)", f.step*f.bytes(), f.mem[name])
}

// lookAhead sets R12 for fetch.
func (f avxFrame) lookAhead() {
	if f.ahead {
		f.op("LEAQ", "(AX)(R13*1)", "R12")
	}
}

// fetch asks for the line that a slice of halves has at R12, which is as far ahead of AX as the kernel was told, once
// for each line.
func (f avxFrame) fetch(name string) {
	if at := f.step * f.bytes() / 2; f.ahead && !f.masked && at%64 == 0 {
		f.op("PREFETCHT0", fmt.Sprintf("%d(%s)(R12*2)", at, f.mem[name]))
	}
}

// atPair is half a vector for each that x has there.
func (f avxFrame) atPair(name string) string {
	return fmt.Sprintf("%d(%s)(AX*2)", f.step*f.bytes()/2, f.mem[name])
}

// load reads the next vector of a slice, in float32; lanes beyond the end are 0.
func (f avxFrame) load(name string) string {
	if f.half[name] {
		f.fetch(name)
		x := f.words(false, name)
		f.op("VPSLLD", "$16", x, x)
		return x
	}
	r := f.tmp()
	switch {
	case !f.masked:
		f.op("VMOVUPS", f.at(name), r)
	case f.wide():
		f.op("VMOVUPS.Z", f.at(name), "K1", r)
	default:
		f.op("VMASKMOVPS", f.at(name), f.mask(), r)
	}
	return r
}

// storeFloats writes float32.
func (f avxFrame) storeFloats(name, r string) {
	switch {
	case !f.masked:
		f.op("VMOVUPS", r, f.at(name))
	case f.wide():
		f.op("VMOVUPS", r, "K1", f.at(name))
	default:
		f.op("VMASKMOVPS", r, f.mask(), f.at(name))
	}
}

// trim clears the lanes beyond the end, before they enter a sum.
func (f avxFrame) trim(r string) {
	if f.masked && f.wide() {
		f.op("VMOVAPS.Z", r, "K1", r)
	} else if f.masked {
		f.op("VANDPS", f.mask(), r, r)
	}
}

// field broadcasts element i of the pointed-to parameters.
func (f avxFrame) field(i int) string {
	r := f.tmp()
	f.op("VBROADCASTSS", fmt.Sprintf("%d(R10)", 4*i), r)
	return r
}

// fold adds the accumulators into the first, and that one's lanes into X0.
func (f avxFrame) fold(add string) {
	n := f.kernel.accs * f.kernel.unroll
	for ; n > 1; n /= 2 {
		for i := range n / 2 {
			f.op(add, f.v(i+n/2), f.v(i), f.v(i))
		}
	}
	if f.wide() {
		f.op("VEXTRACTF64X4", "$1", "Z0", "Y1")
		f.op(add, "Y1", "Y0", "Y0")
	}
	f.op("VEXTRACTF128", "$1", "Y0", "X1")
	f.op(add, "X1", "X0", "X0")
	f.op("VPERMILPD", "$1", "X0", "X1")
	f.op(add, "X1", "X0", "X0")
	if !strings.HasSuffix(add, "PD") {
		f.op("VPERMILPS", "$1", "X0", "X1")
		f.op(add, "X1", "X0", "X0")
	}
}

// storeRounded rounds r to bfloat16.
func (f avxFrame) storeRounded(name, r string) {
	free := f.free
	defer func() { f.free = free }()
	if f.tag != bf16.tag {
		x := rounded(f.body, r)
		f.shiftRight(16, x, x)
		f.storeWords(name, x)
		return
	}
	words := "Y" + f.tmp()[1:]
	from, err := strconv.Atoi(r[1:])
	if err != nil {
		panic(f.kernel.name + ": store of " + r)
	}
	f.use(narrowOne(f.free-1, from))
	if f.masked {
		f.op("VMOVDQU16", words, "K1", f.at(name))
	} else {
		f.op("VMOVDQU", words, f.at(name))
	}
}

// words loads a vector of 16-bit numbers and widens them, with their sign or without.
func (f avxFrame) words(signed bool, name string) string {
	op := "VPMOVZXWD"
	if signed {
		op = "VPMOVSXWD"
	}
	r := f.tmp()
	if f.masked {
		f.op(op+".Z", f.at(name), "K1", r)
	} else {
		f.op(op, f.at(name), r)
	}
	return r
}

// storeWords stores the lower halves of r, whose upper ones AVX2 wants to be 0, and leaves it to be overwritten.
func (f avxFrame) storeWords(name, r string) {
	switch {
	case f.masked:
		f.op("VPMOVDW", r, "K1", f.at(name))
	case f.wide():
		f.op("VPMOVDW", r, f.at(name))
	default:
		f.op("VPACKUSDW", r, r, r)
		f.op("VPERMQ", "$8", r, r)
		f.op("VMOVDQU", "X"+r[1:], f.at(name))
	}
}

// result stores the one of the program, in X0.
func (f avxFrame) result(at int) {
	move := "VMOVSS"
	if f.kernel.result == "float64" {
		move = "VMOVSD"
	}
	f.op(move, "X0", fmt.Sprintf("ret+%d(FP)", at))
}

func (f avxFrame) leave() { f.ret() }
