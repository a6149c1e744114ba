package main

import "fmt"

// vecOps are the vector kernels, as package simd documents them.
var vecOps = []vecOp{
	{name: "add", params: "dst,a,b", unroll: 2, body: func(b *body) {
		x := b.load("a")
		b.op("VADDPS", b.load("b"), x, x)
		b.store("dst", x)
	}},
	{name: "scale", params: "y,alpha:f", unroll: 2, body: func(b *body) {
		y := b.load("y")
		b.op("VMULPS", b.s("alpha"), y, y)
		b.store("y", y)
	}},
	{name: "axpy", params: "y,alpha:f,x", unroll: 2, body: func(b *body) {
		y := b.load("y")
		b.op("VFMADD231PS", b.load("x"), b.s("alpha"), y)
		b.store("y", y)
	}},
	{name: "scaleMul", params: "dst,alpha:f,a,b", unroll: 2, body: func(b *body) {
		x := b.load("a")
		b.op("VMULPS", b.s("alpha"), x, x)
		b.op("VMULPS", b.load("b"), x, x)
		b.store("dst", x)
	}},
	{name: "mulAxpy", params: "y,alpha:f,a,b", unroll: 2, body: func(b *body) {
		x, y := b.load("a"), b.load("y")
		b.op("VMULPS", b.s("alpha"), x, x)
		b.op("VFMADD231PS", b.load("b"), x, y)
		b.store("y", y)
	}},
	{name: "normGrad", params: "dx,dy,w,x,p:f,q:f", unroll: 1, body: func(b *body) {
		dx, dy := b.load("dx"), b.load("dy")
		b.op("VMULPS", b.s("p"), dy, dy)
		b.op("VFMADD231PS", b.load("w"), dy, dx)
		b.op("VFMADD231PS", b.load("x"), b.s("q"), dx)
		b.store("dx", dx)
	}},
	{name: "rotateHeads", params: "x,cos,sin,sign:f", loops: rotateHeads},
	{name: "rotatePairs", params: "x,cos,sin,sign:f", loops: rotatePairs},
	{name: "roundBF16", params: "dst,src", unroll: 1, body: roundBF16},
	{name: "dot", params: "a,b", result: "float32", unroll: 4, accs: 1, body: func(b *body) {
		b.op("VFMADD231PS", b.load("a"), b.load("b"), b.v(b.acc))
	}, end: func(b *body) { b.fold("VADDPS") }},
	{name: "dot3", params: "a,b,c", result: "float32", unroll: 4, accs: 1, body: func(b *body) {
		x := b.load("a")
		b.op("VMULPS", b.load("b"), x, x)
		b.op("VFMADD231PS", b.load("c"), x, b.v(b.acc))
	}, end: func(b *body) { b.fold("VADDPS") }},
	{name: "sumSquares", params: "x", result: "float64", unroll: 2, accs: 2, body: sumSquares,
		end: func(b *body) { b.fold("VADDPD") }},
	{name: "max", params: "x", result: "float32", unroll: 4, accs: 1, start: negInf, body: maximum,
		end: func(b *body) { b.fold("VMAXPS") }},
	{name: "expSum", params: "dst,src,scale:f,shift:f", result: "float32", unroll: 1, accs: 1, body: func(b *body) {
		x := b.load("src")
		b.op("VFMSUB213PS", b.s("shift"), b.s("scale"), x)
		e := b.exp(x)
		b.store("dst", e)
		b.trim(e)
		b.op("VADDPS", e, b.v(b.acc), b.v(b.acc))
	}, end: func(b *body) { b.fold("VADDPS") }},
	{name: "softmaxBack", params: "p,dp,s:g", unroll: 1, body: softmaxBack},
	{name: "softmaxBack2", params: "p1,p2,mix,dp,s:g", unroll: 1, body: softmaxBack2},
	{name: "sigmoid", params: "dst,src", unroll: 1, body: func(b *body) { b.store("dst", b.sigmoid(b.load("src"))) }},
	{name: "sigmoidGrad", params: "dst,dy,y", unroll: 2, body: func(b *body) {
		dy, y := b.load("dy"), b.load("y")
		b.op("VMULPS", y, dy, dy)
		b.op("VFNMADD231PS", y, dy, dy) // dy·y − dy·y·y
		b.store("dst", dy)
	}},
	{name: "siluMul", params: "dst,g,u", unroll: 2, body: func(b *body) {
		g := b.load("g")
		s := b.sigmoid(g)
		b.op("VMULPS", g, s, s)
		b.op("VMULPS", b.load("u"), s, s)
		b.store("dst", s)
	}},
	{name: "siluMulGrad", params: "dg,du,y,dy,g,u", unroll: 2, body: siluMulGrad},
	{name: "adamw", params: "p,m,v,g,s:p", unroll: 1, flush: true, body: func(b *body) {
		p := b.load("p")
		b.adamw(p)
		b.store("p", p)
	}},
}

const (
	one    = 0x3F800000
	negInf = 0xFF800000
)

func roundBF16(b *body) {
	t := b.rounded(b.load("src"))
	b.op("VANDPS", b.bits(0xFFFF0000), t, t)
	b.store("dst", t)
}

// rounded adds 0x7FFF and the lowest kept bit, to be cut then; a NaN gets its quiet bit instead.
func (b *body) rounded(x string) string {
	t := b.tmp()
	nan := b.tmp()
	b.op("VORPS", b.bits(0x400000), x, nan)
	b.op("VPSRLD", "$16", x, t)
	b.op("VANDPS", b.bits(1), t, t)
	b.op("VPADDD", b.bits(0x7FFF), t, t)
	b.op("VPADDD", x, t, t)
	if b.wide() {
		b.op("VCMPPS", "$3", x, x, "K2")
		b.op("VMOVAPS", nan, "K2", t)
	} else {
		b.op("VCMPPS", "$3", x, x, x)
		b.op("VBLENDVPS", x, nan, t, t)
	}
	return t
}

// sumSquares widens both halves of a vector and squares them in float64.
func sumSquares(b *body) {
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
	case !b.masked:
		b.op("VMAXPS", x, acc, acc)
	case b.wide():
		b.op("VMAXPS", x, acc, "K1", acc)
	default:
		b.op("VBLENDVPS", b.mask(), x, acc, x)
		b.op("VMAXPS", x, acc, acc)
	}
}

// Fields of simd.SoftmaxBack.
const backScale, backLSE, backDelta, backAlpha, backLam = 0, 1, 3, 5, 7

// softmax is exp(Scale·x − LSE_m); the registers from here on are free again behind it.
func (b *body) softmax(slice string, m int) string {
	x, base := b.load(slice), b.free
	scale := b.field(backScale)
	b.op("VFMSUB213PS", b.field(backLSE+m), scale, x)
	b.free = base
	e := b.exp(x)
	b.op("VMOVAPS", e, x)
	b.free = base
	return x
}

// timesGrad: (Alpha_m·p)·(dp − Delta_m), in p.
func (b *body) timesGrad(p, dp string, m int) {
	base := b.free
	t := b.tmp()
	b.op("VSUBPS", b.field(backDelta+m), dp, t)
	b.op("VMULPS", b.field(backAlpha+m), p, p)
	b.op("VMULPS", t, p, p)
	b.free = base
}

func softmaxBack(b *body) {
	p := b.softmax("p", 0)
	b.store("p", p)
	dp := b.load("dp")
	b.timesGrad(p, dp, 0)
	b.store("dp", p)
}

func softmaxBack2(b *body) {
	p1 := b.softmax("p1", 0)
	p2 := b.softmax("p2", 1)
	mix := b.tmp()
	b.op("VMOVAPS", p1, mix)
	b.op("VFMADD231PS", p2, b.field(backLam), mix)
	b.store("mix", mix)
	dp := b.load("dp")
	b.timesGrad(p1, dp, 0)
	b.timesGrad(p2, dp, 1)
	b.store("p1", p1)
	b.store("p2", p2)
}

// siluMulGrad: with s = g·σ, y = s·u as siluMul forms it, du = dy·s and dg = dy·u·(σ + s·(1−σ)).
func siluMulGrad(b *body) {
	g := b.load("g")
	s := b.sigmoid(g)
	dy, u, r := b.load("dy"), b.load("u"), b.tmp()
	b.op("VMULPS", g, s, g)
	b.op("VMULPS", u, g, r)
	b.op("VMULPS", dy, u, u)
	b.op("VMULPS", dy, g, dy)
	b.op("VFNMADD231PS", g, s, g)
	b.op("VADDPS", s, g, g)
	b.op("VMULPS", u, g, g)
	b.store("y", r)
	b.store("du", dy)
	b.store("dg", g)
}

// adamw updates p, m and v as simd.AdamW says; its fields in order: Clip Beta1 Beta1c Beta2 Beta2c Keep Step C2 Eps.
func (b *body) adamw(p string) {
	m, v, g := b.load("m"), b.load("v"), b.load("g")
	base := b.free
	field := func(i int) string { b.free = base; return b.field(i) }
	b.op("VMULPS", field(0), g, g)
	b.op("VMULPS", field(1), m, m)
	b.op("VFMADD231PS", field(2), g, m)
	b.store("m", m)
	b.op("VMULPS", field(3), v, v)
	b.op("VMULPS", g, g, g)
	b.op("VFMADD231PS", field(4), g, v)
	b.store("v", v)
	b.op("VMULPS", field(7), v, v)
	b.op("VSQRTPS", v, v)
	b.op("VADDPS", field(8), v, v)
	b.op("VMULPS", field(6), m, m)
	b.op("VDIVPS", v, m, m)
	b.op("VMULPS", field(5), p, p)
	b.op("VSUBPS", m, p, p)
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
