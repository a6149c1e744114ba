package main

// halfOps are the vector kernels between float32 and 16-bit halves of it.
var halfOps = []vecOp{
	{name: "widen", params: "dst,src:h", unroll: 4, body: func(b *body) { b.store("dst", b.load("src")) }},
	narrowOp,
	{name: "joinHalves", params: "dst,up:h,low:h", unroll: 2, body: func(b *body) {
		b.store("dst", joinHalves(b, "up", "low"))
	}},
	{name: "splitHalves", params: "up:h,low:h,src", unroll: 2, body: func(b *body) {
		splitHalves(b, "up", "low", b.load("src"))
	}},
}

// joinHalves is the numbers that were cut into halves. Where the lower one is negative as a number of 16 bits, the
// upper one was rounded up: their sum is what was cut.
func joinHalves(b *body, up, low string) string {
	x := b.load(up)
	b.addInt(b.words(true, low), x, x)
	return x
}

// splitHalves cuts x.
func splitHalves(b *body, up, low, x string) {
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
var narrowOp = vecOp{name: "narrow", params: "dst:h,src", unroll: 4,
	body: func(b *body) { b.store("dst", b.load("src")) }}

// bf16Ops are those kernels of vecOps that also exist on slices of bfloat16, with the processor's own conversion: what
// they read and write is half as much, and no float32 is put down in between. So does AdamW on parameters cut into
// halves.
func bf16Ops() (all []vecOp) {
	params := map[string]string{
		"add": "dst:h,a:h,b:h,ahead:i", "scaleMul": "dst:h,alpha:f,a:h,b", "mulAxpy": "y,alpha:f,a:h,b:h",
		"normGrad":    "dx:h,dy:h,w,x:h,p:f,q:f,ahead:i",
		"rotateHeads": "x:h,cos,sin,sign:f,ahead:i", "rotatePairs": "x:h,cos,sin,sign:f,ahead:i",
		"dot3": "a:h,b,c:h,ahead:i", "sumSquares": "x:h",
		"expSum":  "dst:h,src,scale:f,shift:f",
		"siluMul": "dst:h,g:h,u:h,ahead:i", "siluMulGrad": "dg:h,du:h,y:h,dy:h,g:h,u:h,ahead:i",
	}
	for _, o := range vecOps {
		if p, ok := params[o.name]; ok {
			o.params = p
			all = append(all, o)
		}
	}
	return append(all, vecOp{name: "adamwSplit", params: "up:h,low:h,m,v,g,s:p", unroll: 1, flush: true,
		body: func(b *body) {
			p := joinHalves(b, "up", "low")
			updateAdamW(b, p)
			splitHalves(b, "up", "low", p)
		}})
}
