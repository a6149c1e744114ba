package main

import (
	"math"
	"strings"
)

// vecOp is one vector kernel: its Go signature and the program for one vector of elements.
type vecOp struct {
	name   string
	params string // "dst,a,b": slices; "h:h": of bfloat16; "x:f": float32; "n:i": a distance; "s:p": *struct of float32
	result string // "", "float32" or "float64"
	unroll int
	accs   int    // accumulators per unrolled step
	start  uint32 // what they begin with
	flush  bool   // subnormal numbers are 0 while it runs
	body   func(b *body)
	end    func(b *body) // leaves the result in X0
	loops  func(b *body) // instead of all that: its own loops
}

// frame runs a program over slices. It is what differs between amd64 and NEON.
type frame interface {
	stack() int          // bytes of the stack frame
	prologue(ps []param) // loads pointers, length and scalars, and sets the accumulators
	flush()              // treats subnormal numbers as 0 until unflush
	unflush()
	hold() // keeps the program's constants in registers
	loop(stem string, n int, program func())
	left(masks, program func()) // runs the program for elements after the last whole vector; nil: the frame's masks
	lookAhead()                 // computes the address to prefetch from

	load(name string) string
	words(signed bool, name string) string // loads 16-bit numbers
	storeFloats(name, r string)
	storeRounded(name, r string)
	storeWords(name, r string)
	trim(r string)      // clears lanes beyond the end
	field(i int) string // element i of the pointed-to parameters in every lane

	fold(add string) // reduces the accumulators to one number
	result(at int)   // returns it
	leave()
}

// body is what a program writes to. Registers are handed out from 0; accumulators and scalars come first.
type body struct {
	arith
	frame
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

// assign gives a scalar the next register and returns its number.
func (b *body) assign(scalar string) int {
	b.scalar[scalar] = b.free
	b.free++
	return b.free - 1
}

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
	ps, ret, size := o.layout()
	b := newBody(a, o)
	a.text(o.name, b.stack(), size)
	b.prologue(ps)
	if o.flush {
		b.flush()
	}
	if base := b.free; o.loops != nil {
		o.loops(b)
	} else {
		b.hold()
		b.loops(base)
	}
	if o.end != nil {
		o.end(b)
		b.result(ret)
	}
	if o.flush {
		b.unflush()
	}
	b.leave()
}

func newBody(a *asm, o *vecOp) *body {
	b := &body{arith: arith{a}, kernel: o, mem: map[string]string{}, half: map[string]bool{}, scalar: map[string]int{},
		held: map[uint32]string{}, fields: map[int]string{}, pair: map[string]bool{}}
	if a.arm() {
		b.frame = neonFrame{b}
	} else {
		b.frame = avxFrame{b}
	}
	return b
}

// loops runs the program over whole groups of vectors, single ones and the masked rest, with temporaries from register
// base on.
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
	b.left(nil, last)
	b.free = base
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

// s is the register of a scalar parameter.
func (b *body) s(name string) string { return b.v(b.scalar[name]) }

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

// store writes the next vector of a slice, rounded where that is one of bfloat16; AVX2 leaves r to be overwritten then.
func (b *body) store(name, r string) {
	if b.half[name] {
		b.storeRounded(name, r)
	} else {
		b.storeFloats(name, r)
	}
}
