package main

import "fmt"

// halfOps are the vector kernels between float32 and 16-bit halves of it.
var halfOps = []vecOp{
	{name: "widen", params: "dst,src:h", unroll: 4, body: func(b *body) {
		x := b.words("VPMOVZXWD", "src")
		b.op("VPSLLD", "$16", x, x)
		b.store("dst", x)
	}},
	narrowOp,
	{name: "joinHalves", params: "dst,up:h,low:h", unroll: 2, body: func(b *body) {
		// Where the lower half is negative as a number of 16 bits, the upper one was rounded up: their sum is what was cut.
		x := b.words("VPMOVZXWD", "up")
		b.op("VPSLLD", "$16", x, x)
		b.op("VPADDD", b.words("VPMOVSXWD", "low"), x, x)
		b.store("dst", x)
	}},
	{name: "splitHalves", params: "up:h,low:h,src", unroll: 2, body: func(b *body) {
		x, up := b.load("src"), b.tmp()
		b.op("VPADDD", b.bits(0x8000), x, up)
		b.op("VPSRLD", "$16", up, up)
		b.storeWords("up", up)
		if !b.wide() {
			b.op("VANDPS", b.bits(0xFFFF), x, x)
		}
		b.storeWords("low", x)
	}},
}

// narrowOp exists in a third form: the processor's own conversion, which takes subnormal numbers for 0.
var narrowOp = vecOp{name: "narrow", params: "dst:h,src", unroll: 4, body: func(b *body) {
	x := b.load("src")
	if b.tag != bf16.tag {
		x = b.rounded(x)
		b.op("VPSRLD", "$16", x, x)
		b.storeWords("dst", x)
		return
	}
	b.narrowOne(b.free-1, b.free-1)
	words := fmt.Sprintf("Y%d", b.free-1)
	if b.masked {
		b.op("VMOVDQU16", words, "K1", b.at("dst"))
	} else {
		b.op("VMOVDQU", words, b.at("dst"))
	}
}}

// words loads a vector of 16-bit numbers and widens them by op.
func (b *body) words(op, name string) string {
	r := b.tmp()
	if b.masked {
		b.op(op+".Z", b.at(name), "K1", r)
	} else {
		b.op(op, b.at(name), r)
	}
	return r
}

// storeWords stores the lower halves of r, whose upper ones AVX2 wants to be 0, and leaves it to be overwritten.
func (b *body) storeWords(name, r string) {
	switch {
	case b.masked:
		b.op("VPMOVDW", r, "K1", b.at(name))
	case b.wide():
		b.op("VPMOVDW", r, b.at(name))
	default:
		b.op("VPACKUSDW", r, r, r)
		b.op("VPERMQ", "$8", r, r)
		b.op("VMOVDQU", "X"+r[1:], b.at(name))
	}
}
