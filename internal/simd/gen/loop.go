package main

import (
	"fmt"
	"math"
	"strings"
)

// vecOp is one vector kernel: its Go signature and the program for one vector of elements.
type vecOp struct {
	name   string
	params string // "dst,a,b" are slices; "h:h" one of bfloat16; "alpha:f" a float32; "ahead:i" a distance; "s:p" a pointer to a struct of float32
	result string // "", "float32" or "float64"
	unroll int
	accs   int    // accumulators per unrolled step
	start  uint32 // what they begin with
	flush  bool   // subnormal numbers are 0 while it runs
	body   func(b *body)
	end    func(b *body) // leaves the result in X0
	loops  func(b *body) // instead of all that: its own loops
}

// body is what a program writes to. Registers are handed out from 0; accumulators and scalars come first.
type body struct {
	*asm
	kernel *vecOp
	mem    map[string]string // slice → pointer register
	half   map[string]bool   // slices of 16-bit halves
	scalar map[string]int    // scalar → register holding it in every lane
	acc    int               // first accumulator of this step
	ahead  bool              // slices of halves are fetched ahead
	held   map[uint32]string // constant → register holding it in every lane
	fields map[int]string    // element of the pointed-to parameters → such a register, in NEON
	pair   map[string]bool   // slices with two elements for each that is counted, in NEON
	free   int               // next register for a temporary
	most   int               // registers that were taken at once
	step   int               // which of the unrolled steps
	masked bool
}

var pointers = []string{"DI", "SI", "BX", "R8", "R9", "R11"}

type param struct {
	name, kind string
	off        int
}

// layout gives each parameter's place on the stack, and the result's.
func (o *vecOp) layout() (ps []param, ret, size int) {
	for _, f := range strings.Split(o.params, ",") {
		name, kind, _ := strings.Cut(f, ":")
		p := param{name: name, kind: kind, off: size}
		switch kind {
		case "f":
			size += 4
		case "", "h":
			p.off = (size + 7) &^ 7
			size = p.off + 24
		default:
			p.off = (size + 7) &^ 7
			size = p.off + 8
		}
		ps = append(ps, p)
	}
	ret = (size + 7) &^ 7
	switch o.result {
	case "float32":
		return ps, ret, ret + 4
	case "float64":
		return ps, ret, ret + 8
	}
	return ps, ret, size
}

// emit writes the kernel.
func (o *vecOp) emit(a *asm) {
	if a.arm() {
		o.emitNEON(a)
		return
	}
	ps, ret, size := o.layout()
	a.text(o.name, o.frame(), size)
	b := newBody(a, o)
	b.prologue(ps)
	if o.flush {
		a.op("STMXCSR", "mode-8(SP)")
		a.op("LDMXCSR", a.bits(0x9FC0)) // all exceptions masked, subnormal inputs and results zero
	}
	if base := b.free; o.loops != nil {
		o.loops(b)
	} else {
		b.hold()
		b.loops(base)
	}
	if o.end != nil {
		o.end(b)
		if o.result == "float64" {
			a.op("VMOVSD", "X0", fmt.Sprintf("ret+%d(FP)", ret))
		} else {
			a.op("VMOVSS", "X0", fmt.Sprintf("ret+%d(FP)", ret))
		}
	}
	if o.flush {
		a.op("LDMXCSR", "mode-8(SP)")
	}
	a.op("VZEROUPPER")
	a.op("RET")
}

func newBody(a *asm, o *vecOp) *body {
	return &body{asm: a, kernel: o, mem: map[string]string{}, half: map[string]bool{}, scalar: map[string]int{}, held: map[uint32]string{},
		fields: map[int]string{}, pair: map[string]bool{}}
}

// loops runs the program over whole groups of vectors, single ones and the masked rest, with temporaries from register base on.
func (b *body) loops(base int) {
	o := b.kernel
	if o.unroll > 1 {
		b.loop("many", o.unroll, func() {
			b.lookAhead()
			for b.step = range o.unroll {
				b.acc, b.free = b.step*o.accs, base
				o.body(b)
			}
		})
	}
	b.step, b.acc = 0, 0
	b.loop("one", 1, func() {
		b.lookAhead()
		b.free = base
		o.body(b)
	})
	last := func() {
		b.free = base
		o.body(b)
	}
	if b.arm() {
		b.eachLeft(last)
	} else {
		b.op("TESTQ", "CX", "CX")
		b.op("JZ", "done")
		b.rest()
		last()
		b.mark("done")
	}
	b.free = base
}

// frame is the room on the stack: the processor's mode, where it is changed.
func (o *vecOp) frame() int {
	if o.flush {
		return 8
	}
	return 0
}

// loop runs f while at least n vectors are left: AX counts elements done, CX those left.
func (b *body) loop(stem string, n int, f func()) {
	if b.arm() {
		b.loopNEON(stem, n, f)
		return
	}
	top, end := b.fresh(stem), b.fresh("end")
	b.op("CMPQ", "CX", fmt.Sprintf("$%d", n*b.lanes))
	b.op("JLT", end)
	b.mark(top)
	f()
	b.op("ADDQ", fmt.Sprintf("$%d", n*b.lanes), "AX")
	b.op("SUBQ", fmt.Sprintf("$%d", n*b.lanes), "CX")
	b.op("CMPQ", "CX", fmt.Sprintf("$%d", n*b.lanes))
	b.op("JGE", top)
	b.mark(end)
}

// prologue loads pointers, length and scalars and sets the accumulators. The last register of AVX2 is the mask.
func (b *body) prologue(ps []param) {
	for i := range b.kernel.accs * b.kernel.unroll {
		if b.kernel.start == 0 {
			b.op("VXORPS", b.v(i), b.v(i), b.v(i))
		} else {
			b.op("VMOVUPS", b.bits(b.kernel.start), b.v(i))
		}
	}
	b.free = b.kernel.accs * b.kernel.unroll
	ptr := 0
	for i, p := range ps {
		switch {
		case p.kind == "f":
			b.scalar[p.name] = b.free
			b.op("VBROADCASTSS", fmt.Sprintf("%s+%d(FP)", p.name, p.off), b.v(b.free))
			b.free++
		case p.kind == "i":
			b.ahead = true
			b.op("MOVQ", fmt.Sprintf("%s+%d(FP)", p.name, p.off), "R13")
		case p.kind != "" && p.kind != "h":
			b.op("MOVQ", fmt.Sprintf("%s+%d(FP)", p.name, p.off), "R10")
		default:
			if p.kind == "h" {
				b.half[p.name] = true
			}
			b.mem[p.name] = pointers[ptr]
			b.op("MOVQ", fmt.Sprintf("%s_base+%d(FP)", p.name, p.off), pointers[ptr])
			if i == 0 {
				b.op("MOVQ", fmt.Sprintf("%s_len+%d(FP)", p.name, p.off+8), "CX")
			}
			ptr++
		}
	}
	b.op("XORQ", "AX", "AX")
}

// hold keeps the program's constants in registers that it leaves, of which AVX-512 has enough: read from memory they would take as long as the
// arithmetic, and twice as long where a vector of them crosses a line of the cache.
func (b *body) hold() {
	if !b.wide() {
		return
	}
	trial := *b
	trial.asm = &asm{isa: b.isa}
	b.kernel.body(&trial)
	for i, c := range trial.consts {
		if r := b.regs - 1 - i; r >= trial.most {
			b.op("VMOVUPS", b.bits(c), b.v(r))
			b.held[c] = b.v(r)
		}
	}
}

// bits is the operand of a vector full of c, constant that of one full of x.
func (b *body) bits(c uint32) string {
	if r, ok := b.held[c]; ok {
		return r
	}
	at := b.asm.bits(c)
	if b.arm() { // of a trial: programs hold their constants
		if !b.dry {
			panic(b.kernel.name + b.tag + ": constant not held")
		}
		return b.v(0)
	}
	return at
}

func (b *body) constant(x float64) string { return b.bits(math.Float32bits(float32(x))) }

// rest prepares the vector of the CX elements that are left: with a mask of them in K1, or in the last register. AVX2 has none for words: with
// slices of bfloat16, of which there is at least a vector, it does the last ones again.
func (b *body) rest() {
	if len(b.half) > 0 && !b.wide() {
		b.op("LEAQ", fmt.Sprintf("-%d(AX)(CX*1)", b.lanes), "AX")
		return
	}
	b.masked = true
	if b.wide() {
		b.laneMask("K1")
		return
	}
	b.op("LEAQ", "mask"+b.tag+"<>+64(SB)", "DX")
	b.op("SHLQ", "$2", "CX")
	b.op("SUBQ", "CX", "DX")
	b.op("VMOVUPS", "(DX)", b.mask())
}

// laneMask sets a mask register for the first CX lanes.
func (b *body) laneMask(k string) {
	b.op("MOVQ", "$1", "DX")
	b.op("SHLQ", "CX", "DX")
	b.op("DECQ", "DX")
	b.op("KMOVW", "DX", k)
}

func (b *body) mask() string { return b.v(b.regs - 1) }

// tmp is a register for the rest of this step.
func (b *body) tmp() string {
	r := b.v(b.free)
	b.free++
	b.most = max(b.most, b.free)
	limit := b.regs
	if !b.wide() { // AVX2's mask, NEON's spare
		limit--
	}
	if b.free > limit {
		panic(b.kernel.name + b.tag + ": out of registers")
	}
	return r
}
