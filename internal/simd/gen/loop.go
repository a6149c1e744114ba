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

func (b *body) at(name string) string {
	if b.half[name] {
		return fmt.Sprintf("%d(%s)(AX*2)", b.step*b.bytes()/2, b.mem[name])
	}
	return fmt.Sprintf("%d(%s)(AX*4)", b.step*b.bytes(), b.mem[name])
}

// lookAhead sets R12 for fetch.
func (b *body) lookAhead() {
	if b.ahead && !b.arm() {
		b.op("LEAQ", "(AX)(R13*1)", "R12")
	}
}

// fetch asks for the line that a slice of halves has at R12, which is as far ahead of AX as the kernel was told, once for each line.
func (b *body) fetch(name string) {
	if at := b.step * b.bytes() / 2; b.ahead && !b.masked && at%64 == 0 {
		b.op("PREFETCHT0", fmt.Sprintf("%d(%s)(R12*2)", at, b.mem[name]))
	}
}

// atPair is half a vector for each that x has there.
func (b *body) atPair(name string) string {
	return fmt.Sprintf("%d(%s)(AX*2)", b.step*b.bytes()/2, b.mem[name])
}

// load reads the next vector of a slice, in float32; lanes beyond the end are 0.
func (b *body) load(name string) string {
	if b.arm() {
		return b.loadNEON(name)
	}
	if b.half[name] {
		b.fetch(name)
		x := b.words("VPMOVZXWD", name)
		b.op("VPSLLD", "$16", x, x)
		return x
	}
	r := b.tmp()
	switch {
	case !b.masked:
		b.op("VMOVUPS", b.at(name), r)
	case b.wide():
		b.op("VMOVUPS.Z", b.at(name), "K1", r)
	default:
		b.op("VMASKMOVPS", b.at(name), b.mask(), r)
	}
	return r
}

// store writes the next vector of a slice, rounded where that is one of bfloat16; AVX2 leaves r to be overwritten then.
func (b *body) store(name, r string) {
	if b.half[name] {
		b.storeRounded(name, r)
		return
	}
	switch {
	case b.arm():
		b.storeNEON(name, r)
	case !b.masked:
		b.op("VMOVUPS", r, b.at(name))
	case b.wide():
		b.op("VMOVUPS", r, "K1", b.at(name))
	default:
		b.op("VMASKMOVPS", r, b.mask(), b.at(name))
	}
}

// trim clears the lanes beyond the end, before they enter a sum.
func (b *body) trim(r string) {
	if b.masked && b.arm() {
		b.op("FMOVS", float(r), float(r))
	} else if b.masked && b.wide() {
		b.op("VMOVAPS.Z", r, "K1", r)
	} else if b.masked {
		b.op("VANDPS", b.mask(), r, r)
	}
}

// s is the register of a scalar parameter.
func (b *body) s(name string) string { return b.v(b.scalar[name]) }

// field broadcasts element i of the pointed-to parameters.
func (b *body) field(i int) string {
	if b.arm() {
		return b.fieldNEON(i)
	}
	r := b.tmp()
	b.op("VBROADCASTSS", fmt.Sprintf("%d(R10)", 4*i), r)
	return r
}

// fold adds the accumulators into the first, and that one's lanes into X0.
func (b *body) fold(add string) {
	if b.arm() {
		b.foldNEON(add)
		return
	}
	n := b.kernel.accs * b.kernel.unroll
	for ; n > 1; n /= 2 {
		for i := range n / 2 {
			b.op(add, b.v(i+n/2), b.v(i), b.v(i))
		}
	}
	if b.wide() {
		b.op("VEXTRACTF64X4", "$1", "Z0", "Y1")
		b.op(add, "Y1", "Y0", "Y0")
	}
	b.op("VEXTRACTF128", "$1", "Y0", "X1")
	b.op(add, "X1", "X0", "X0")
	b.op("VPERMILPD", "$1", "X0", "X1")
	b.op(add, "X1", "X0", "X0")
	if !strings.HasSuffix(add, "PD") {
		b.op("VPERMILPS", "$1", "X0", "X1")
		b.op(add, "X1", "X0", "X0")
	}
}
