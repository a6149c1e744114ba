package main

import "strconv"

// halfOps are the vector kernels between float32 and 16-bit halves of it.
var halfOps = []vecOp{
	{name: "widen", params: "dst,src:h", unroll: 4, body: func(b *body) { b.store("dst", b.load("src")) }},
	narrowOp,
	{name: "joinHalves", params: "dst,up:h,low:h", unroll: 2, body: func(b *body) {
		b.store("dst", b.join("up", "low"))
	}},
	{name: "splitHalves", params: "up:h,low:h,src", unroll: 2, body: func(b *body) {
		b.split("up", "low", b.load("src"))
	}},
}

// join is the numbers that were cut into halves. Where the lower one is negative as a number of 16 bits, the upper one was rounded up: their sum is
// what was cut.
func (b *body) join(up, low string) string {
	x := b.load(up)
	b.addInt(b.words("VPMOVSXWD", low), x, x)
	return x
}

// split cuts x.
func (b *body) split(up, low, x string) {
	t := b.tmp()
	b.addInt(b.bits(0x8000), x, t)
	b.shiftRight(16, t, t)
	b.storeWords(up, t)
	if !b.wide() && !b.arm() {
		b.and(b.bits(0xFFFF), x, x)
	}
	b.storeWords(low, x)
}

// narrowOp exists in a third form: the processor's own conversion, which takes subnormal numbers for 0.
var narrowOp = vecOp{name: "narrow", params: "dst:h,src", unroll: 4, body: func(b *body) { b.store("dst", b.load("src")) }}

// bf16Ops are those kernels of vecOps that also exist on slices of bfloat16, with the processor's own conversion: what they read and write
// is half as much, and no float32 is put down in between. So does AdamW on parameters cut into halves.
func bf16Ops() (all []vecOp) {
	params := map[string]string{
		"add": "dst:h,a:h,b:h,ahead:i", "scaleMul": "dst:h,alpha:f,a:h,b", "mulAxpy": "y,alpha:f,a:h,b:h", "normGrad": "dx:h,dy:h,w,x:h,p:f,q:f,ahead:i",
		"rotateHeads": "x:h,cos,sin,sign:f,ahead:i", "rotatePairs": "x:h,cos,sin,sign:f,ahead:i", "dot3": "a:h,b,c:h,ahead:i", "sumSquares": "x:h",
		"expSum":  "dst:h,src,scale:f,shift:f",
		"siluMul": "dst:h,g:h,u:h,ahead:i", "siluMulGrad": "dg:h,du:h,y:h,dy:h,g:h,u:h,ahead:i",
	}
	for _, o := range vecOps {
		if p, ok := params[o.name]; ok {
			o.params = p
			all = append(all, o)
		}
	}
	return append(all, vecOp{name: "adamwSplit", params: "up:h,low:h,m,v,g,s:p", unroll: 1, flush: true, body: func(b *body) {
		p := b.join("up", "low")
		b.adamw(p)
		b.split("up", "low", p)
	}})
}

// storeRounded rounds r to bfloat16.
func (b *body) storeRounded(name, r string) {
	if b.arm() {
		b.storeRoundedNEON(name, r)
		return
	}
	free := b.free
	defer func() { b.free = free }()
	if b.tag != bf16.tag {
		x := b.rounded(r)
		b.shiftRight(16, x, x)
		b.storeWords(name, x)
		return
	}
	words := "Y" + b.tmp()[1:]
	from, err := strconv.Atoi(r[1:])
	if err != nil {
		panic(b.kernel.name + ": store of " + r)
	}
	b.use(narrowOne(b.free-1, from))
	if b.masked {
		b.op("VMOVDQU16", words, "K1", b.at(name))
	} else {
		b.op("VMOVDQU", words, b.at(name))
	}
}

// words loads a vector of 16-bit numbers and widens them by op.
func (b *body) words(op, name string) string {
	if b.arm() {
		return b.wordsNEON(op == "VPMOVSXWD", name)
	}
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
	case b.arm():
		b.storeWordsNEON(name, r)
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
