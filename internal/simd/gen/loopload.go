package main

import (
	"fmt"
	"strings"
)

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
