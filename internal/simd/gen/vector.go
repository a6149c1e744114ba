package main

import "fmt"

// vecOps are the vector kernels, as package simd documents them.
var vecOps = []vecOp{
	{name: "add", params: "dst,a,b", unroll: 2, body: func(b *body) {
		x := b.load("a")
		b.add(b.load("b"), x, x)
		b.store("dst", x)
	}},
	{name: "scale", params: "y,alpha:f", unroll: 2, body: func(b *body) {
		y := b.load("y")
		b.mul(b.s("alpha"), y, y)
		b.store("y", y)
	}},
	{name: "axpy", params: "y,alpha:f,x", unroll: 2, body: func(b *body) {
		y := b.load("y")
		b.fma(b.load("x"), b.s("alpha"), y)
		b.store("y", y)
	}},
	{name: "scaleMul", params: "dst,alpha:f,a,b", unroll: 2, body: func(b *body) {
		x := b.load("a")
		b.mul(b.s("alpha"), x, x)
		b.mul(b.load("b"), x, x)
		b.store("dst", x)
	}},
	{name: "mulAxpy", params: "y,alpha:f,a,b", unroll: 2, body: func(b *body) {
		x, y := b.load("a"), b.load("y")
		b.mul(b.s("alpha"), x, x)
		b.fma(b.load("b"), x, y)
		b.store("y", y)
	}},
	{name: "normGrad", params: "dx,dy,w,x,p:f,q:f", unroll: 1, body: func(b *body) {
		dx, dy := b.load("dx"), b.load("dy")
		b.mul(b.s("p"), dy, dy)
		b.fma(b.load("w"), dy, dx)
		b.fma(b.load("x"), b.s("q"), dx)
		b.store("dx", dx)
	}},
	{name: "rotateHeads", params: "x,cos,sin,sign:f", loops: rotateHeads},
	{name: "rotatePairs", params: "x,cos,sin,sign:f", loops: rotatePairs},
	{name: "roundBF16", params: "dst,src", unroll: 1, body: roundBF16},
	{name: "dot", params: "a,b", result: "float32", unroll: 4, accs: 1, body: func(b *body) {
		b.fma(b.load("a"), b.load("b"), b.v(b.acc))
	}, end: func(b *body) { b.fold("VADDPS") }},
	{name: "dot3", params: "a,b,c", result: "float32", unroll: 4, accs: 1, body: func(b *body) {
		x := b.load("a")
		b.mul(b.load("b"), x, x)
		b.fma(b.load("c"), x, b.v(b.acc))
	}, end: func(b *body) { b.fold("VADDPS") }},
	{name: "sumSquares", params: "x", result: "float64", unroll: 2, accs: 2, body: sumSquares,
		end: func(b *body) { b.fold("VADDPD") }},
	{name: "max", params: "x", result: "float32", unroll: 4, accs: 1, start: negInf, body: maximum,
		end: func(b *body) { b.fold("VMAXPS") }},
	{name: "expSum", params: "dst,src,scale:f,shift:f", result: "float32", unroll: 1, accs: 1, body: func(b *body) {
		x := b.load("src")
		b.mulSub(b.s("shift"), b.s("scale"), x)
		e := exp(b, x)
		b.store("dst", e)
		b.trim(e)
		b.add(e, b.v(b.acc), b.v(b.acc))
	}, end: func(b *body) { b.fold("VADDPS") }},
	{name: "softmaxBack", params: "p,dp,s:g", unroll: 1, body: softmaxBack},
	{name: "softmaxBack2", params: "p1,p2,mix,dp,s:g", unroll: 1, body: softmaxBack2},
	{name: "sigmoid", params: "dst,src", unroll: 1, body: func(b *body) { b.store("dst", sigmoid(b, b.load("src"))) }},
	{name: "sigmoidGrad", params: "dst,dy,y", unroll: 2, body: func(b *body) {
		dy, y := b.load("dy"), b.load("y")
		b.mul(y, dy, dy)
		b.fnma(y, dy, dy) // dy·y − dy·y·y
		b.store("dst", dy)
	}},
	{name: "siluMul", params: "dst,g,u", unroll: 2, body: func(b *body) {
		g := b.load("g")
		s := sigmoid(b, g)
		b.mul(g, s, s)
		b.mul(b.load("u"), s, s)
		b.store("dst", s)
	}},
	{name: "siluMulGrad", params: "dg,du,y,dy,g,u", unroll: 2, body: siluMulGrad},
	{name: "adamw", params: "p,m,v,g,s:p", unroll: 1, flush: true, body: func(b *body) {
		p := b.load("p")
		updateAdamW(b, p)
		b.store("p", p)
	}},
}

const (
	one    = 0x3F800000
	negInf = 0xFF800000
)

func roundBF16(b *body) {
	t := rounded(b, b.load("src"))
	b.and(b.bits(0xFFFF0000), t, t)
	b.store("dst", t)
}

// rounded adds 0x7FFF and the lowest kept bit, to be cut then; a NaN gets its quiet bit instead.
func rounded(b *body, x string) string {
	t := b.tmp()
	nan := b.tmp()
	b.or(b.bits(0x400000), x, nan)
	b.shiftRight(16, x, t)
	b.and(b.bits(1), t, t)
	b.addInt(b.bits(0x7FFF), t, t)
	b.addInt(x, t, t)
	switch {
	case b.arm():
		b.use(vvv(0x4E20E400, "fcmeq", "4s", b.spare(), x, x))
		b.use(vvv(0x6EE01C00, "bif", "16b", t, nan, b.spare()))
	case b.wide():
		b.op("VCMPPS", "$3", x, x, "K2")
		b.op("VMOVAPS", nan, "K2", t)
	default:
		b.op("VCMPPS", "$3", x, x, x)
		b.op("VBLENDVPS", x, nan, t, t)
	}
	return t
}

// sumSquares widens both halves of a vector and squares them in float64.
func sumSquares(b *body) {
	if b.arm() {
		sumSquaresNEON(b)
		return
	}
	x, hi := b.free, b.free+1
	b.load("x")
	b.tmp()
	low, high, extract := fmt.Sprintf("Y%d", x), fmt.Sprintf("Y%d", hi), "VEXTRACTF64X4"
	if !b.wide() {
		low, high, extract = fmt.Sprintf("X%d", x), fmt.Sprintf("X%d", hi), "VEXTRACTF128"
	}
	b.op(extract, "$1", b.v(x), high)
	b.op("VCVTPS2PD", low, b.v(x))
	b.op("VCVTPS2PD", high, b.v(hi))
	b.op("VFMADD231PD", b.v(x), b.v(x), b.v(b.acc))
	b.op("VFMADD231PD", b.v(hi), b.v(hi), b.v(b.acc+1))
}

// maximum keeps lanes beyond the end, which load as 0, out of the comparison.
func maximum(b *body) {
	x, acc := b.load("x"), b.v(b.acc)
	switch {
	case b.arm():
		if b.masked {
			spread(b.asm, x)
		}
		b.max(x, acc, acc)
	case !b.masked:
		b.max(x, acc, acc)
	case b.wide():
		b.op("VMAXPS", x, acc, "K1", acc)
	default:
		b.op("VBLENDVPS", b.mask(), x, acc, x)
		b.max(x, acc, acc)
	}
}

// Fields of simd.SoftmaxBack.
const backScale, backLSE, backDelta, backAlpha, backLam = 0, 1, 3, 5, 7

// softmax is exp(Scale·x − LSE_m); registers allocated after this point are free again afterwards.
func softmax(b *body, slice string, m int) string {
	x, base := b.load(slice), b.free
	scale := b.field(backScale)
	b.mulSub(b.field(backLSE+m), scale, x)
	b.free = base
	e := exp(b, x)
	b.move(e, x)
	b.free = base
	return x
}

// timesGrad: (Alpha_m·p)·(dp − Delta_m), in p.
func timesGrad(b *body, p, dp string, m int) {
	base := b.free
	t := b.tmp()
	b.sub(b.field(backDelta+m), dp, t)
	b.mul(b.field(backAlpha+m), p, p)
	b.mul(t, p, p)
	b.free = base
}

func softmaxBack(b *body) {
	p := softmax(b, "p", 0)
	b.store("p", p)
	dp := b.load("dp")
	timesGrad(b, p, dp, 0)
	b.store("dp", p)
}

func softmaxBack2(b *body) {
	p1 := softmax(b, "p1", 0)
	p2 := softmax(b, "p2", 1)
	mix := b.tmp()
	b.move(p1, mix)
	b.fma(p2, b.field(backLam), mix)
	b.store("mix", mix)
	dp := b.load("dp")
	timesGrad(b, p1, dp, 0)
	timesGrad(b, p2, dp, 1)
	b.store("p1", p1)
	b.store("p2", p2)
}

// siluMulGrad: with s = g·σ, y = s·u as siluMul forms it, du = dy·s and dg = dy·u·(σ + s·(1−σ)).
func siluMulGrad(b *body) {
	g := b.load("g")
	s := sigmoid(b, g)
	dy, u, r := b.load("dy"), b.load("u"), b.tmp()
	b.mul(g, s, g)
	b.mul(u, g, r)
	b.mul(dy, u, u)
	b.mul(dy, g, dy)
	b.fnma(g, s, g)
	b.add(s, g, g)
	b.mul(u, g, g)
	b.store("y", r)
	b.store("du", dy)
	b.store("dg", g)
}

// updateAdamW updates p, m and v as simd.AdamW says; its fields in order: Clip Beta1 Beta1c Beta2 Beta2c Keep Step C2
// Eps.
func updateAdamW(b *body, p string) {
	m, v, g := b.load("m"), b.load("v"), b.load("g")
	base := b.free
	field := func(i int) string { b.free = base; return b.field(i) }
	b.mul(field(0), g, g)
	b.mul(field(1), m, m)
	b.fma(field(2), g, m)
	b.store("m", m)
	b.mul(field(3), v, v)
	b.mul(g, g, g)
	b.fma(field(4), g, v)
	b.store("v", v)
	b.mul(field(7), v, v)
	b.sqrt(v, v)
	b.add(field(8), v, v)
	b.mul(field(6), m, m)
	b.div(v, m, m)
	b.mul(field(5), p, p)
	b.sub(m, p, p)
}

func vectorFile(i isa) []byte {
	a := newAsm(i)
	for n := range vecOps {
		vecOps[n].emit(a)
	}
	for n := range halfOps {
		halfOps[n].emit(a)
	}
	return a.finish()
}
