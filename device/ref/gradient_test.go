package ref

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// bench holds what a gradient test needs: an oracle and a source of random tensors.
type bench struct {
	*Device
	rng *rand.Rand
}

func newBench(seed uint64) *bench { return &bench{New(), rand.New(rand.NewPCG(seed, 7))} }

func (b *bench) zeros(rows, cols int) tensor.Tensor {
	return device.Empty(b, tensor.F64, rows, cols)
}

func (b *bench) normal(rows, cols int) tensor.Tensor {
	t := b.zeros(rows, cols)
	for i := range tensor.Host[float64](t) {
		tensor.Host[float64](t)[i] = b.rng.NormFloat64()
	}
	return t
}

func (b *bench) ints(v ...int32) tensor.Tensor {
	t := device.Empty(b, tensor.I32, 1, len(v))
	device.WriteI32(b, t, v)
	return t
}

// param is an input and the gradient that the backward op claims for it.
type param struct {
	name    string
	x, grad tensor.Tensor
}

// check checks each claimed gradient of loss = Σ out∘weight against central differences, at up to 60 elements of each
// input.
func (b *bench) check(t *testing.T, forward func(), out, weight tensor.Tensor, params ...param) {
	t.Helper()
	loss := func() float64 {
		forward()
		return dot(load(out).v, load(weight).v)
	}
	for _, p := range params {
		x, grad := tensor.Host[float64](p.x), tensor.Host[float64](p.grad)
		scale := 0.0
		for _, g := range grad {
			scale = max(scale, math.Abs(g))
		}
		for range min(60, len(x)) {
			i := b.rng.IntN(len(x))
			const h = 1e-5
			was := x[i]
			x[i] = was + h
			up := loss()
			x[i] = was - h
			down := loss()
			x[i] = was
			num := (up - down) / (2 * h)
			if err := math.Abs(num - grad[i]); !(err <= 1e-6*max(scale, 1e-2)) {
				t.Fatalf("%s[%d]: backward says %.12g, differences say %.12g (scale %.3g)", p.name, i,
					grad[i], num, scale)
			}
		}
	}
}

func TestLinearGradients(t *testing.T) {
	b := newBench(1)
	for _, op := range []device.MatMul{{}, {TransA: true}, {TransB: true}, {TransA: true, TransB: true}} {
		a, w := b.normal(4, 5), b.normal(5, 3)
		if op.TransA {
			a = b.normal(5, 4)
		}
		if op.TransB {
			w = b.normal(3, 5)
		}
		y, dy := b.zeros(4, 3), b.normal(4, 3)
		da, dw := b.zeros(a.Rows, a.Cols), b.zeros(w.Rows, w.Cols)
		if op.TransA {
			b.MatMul(da, w, dy, device.MatMul{TransA: op.TransB, TransB: true})
		} else {
			b.MatMul(da, dy, w, device.MatMul{TransB: !op.TransB})
		}
		if op.TransB {
			b.MatMul(dw, dy, a, device.MatMul{TransA: true, TransB: op.TransA})
		} else {
			b.MatMul(dw, a, dy, device.MatMul{TransA: !op.TransA})
		}
		b.check(t, func() { b.MatMul(y, a, w, op) }, y, dy, param{"a", a, da}, param{"b", w, dw})
	}
}

func TestBiasAndEmbedGradients(t *testing.T) {
	b := newBench(2)
	y, bias, dy, db := b.zeros(4, 5), b.normal(1, 5), b.normal(4, 5), b.zeros(1, 5)
	b.BiasBackward(db, dy)
	b.check(t, func() { b.Zero(y); b.AddBias(y, bias) }, y, dy, param{"bias", bias, db})

	ids, table, dtable := b.ints(2, 0, 2, 1), b.normal(3, 5), b.zeros(3, 5)
	b.EmbedBackward(dtable, dy, ids)
	b.check(t, func() { b.Embed(y, table, ids) }, y, dy, param{"table", table, dtable})
}

func TestRMSNormGradient(t *testing.T) {
	b := newBench(3)
	n, c := 3, 7
	x, delta, w, dy := b.normal(n, c), b.normal(n, c), b.normal(1, c), b.normal(n, c)
	y, sum, rstd, dx, dw := b.zeros(n, c), b.zeros(n, c), b.zeros(1, n), b.zeros(n, c), b.zeros(1, c)
	forward := func() { b.RMSNorm(y, rstd, sum, x, delta, w, 1e-2) }
	forward()
	b.RMSNormBackward(dx, dw, dy, sum, w, rstd)
	b.check(t, forward, y, dy, param{"x", x, dx}, param{"delta", delta, dx}, param{"w", w, dw})
}

func TestRopeGradient(t *testing.T) {
	b := newBench(4)
	for _, inter := range []bool{false, true} {
		r := device.Rope{Heads: 2, Dim: 6, Interleaved: inter}
		x, table, dy := b.normal(3, 12), b.normal(5, 6), b.normal(3, 12)
		pos, y, dx := b.ints(4, 0, 2), b.zeros(3, 12), b.zeros(3, 12)
		b.Copy(dx, dy)
		inverse := r
		inverse.Inverse = true
		b.Rope(dx, table, pos, inverse)
		b.check(t, func() { b.Copy(y, x); b.Rope(y, table, pos, r) }, y, dy, param{"x", x, dx})
	}
}

func TestActivationGradients(t *testing.T) {
	b := newBench(5)
	gu, dy, y, dgu := b.normal(3, 10), b.normal(3, 5), b.zeros(3, 5), b.zeros(3, 10)
	b.SwiGLUBackward(dgu, y, dy, gu)
	b.check(t, func() { b.SwiGLU(y, gu) }, y, dy, param{"gu", gu, dgu})

	x, dx := b.normal(3, 5), b.zeros(3, 5)
	b.Sigmoid(y, x)
	b.SigmoidBackward(dx, dy, y)
	b.check(t, func() { b.Sigmoid(y, x) }, y, dy, param{"x", x, dx})
}

// With one λ for all, its gradient is the sum of the shares.
func TestSubtractHeadsGradient(t *testing.T) {
	b := newBench(5)
	a, dout, out, da := b.normal(3, 12), b.normal(3, 6), b.zeros(3, 6), b.zeros(3, 12)
	lam, one, dlam, sum := b.normal(3, 2), b.normal(1, 1), b.zeros(3, 2), b.zeros(1, 1)
	b.SubtractHeadsBackward(da, dlam, dout, a, lam, 2)
	b.check(t, func() { b.SubtractHeads(out, a, lam, 2) }, out, dout, param{"a", a, da}, param{"lam", lam, dlam})
	b.SubtractHeadsBackward(da, dlam, dout, a, one, 2)
	for _, e := range load(dlam).v {
		tensor.Host[float64](sum)[0] += e
	}
	b.check(t, func() { b.SubtractHeads(out, a, one, 2) }, out, dout, param{"a", a, da}, param{"lam", one, sum})
}

func TestLambdaGradient(t *testing.T) {
	b := newBench(6)
	vecs := func(make func(r, c int) tensor.Tensor) device.LambdaVecs {
		return device.LambdaVecs{Q1: make(1, 4), K1: make(1, 4), Q2: make(1, 4), K2: make(1, 4)}
	}
	v, g, lam, dlam, sum := vecs(b.normal), vecs(b.zeros), b.zeros(1, 1), b.normal(5, 3), b.zeros(1, 1)
	for _, e := range load(dlam).v {
		tensor.Host[float64](sum)[0] += e
	}
	b.LambdaBackward(g, dlam, v)
	b.check(t, func() { b.Lambda(lam, v, 0.8) }, lam, sum,
		param{"q1", v.Q1, g.Q1}, param{"k1", v.K1, g.K1}, param{"q2", v.Q2, g.Q2}, param{"k2", v.K2, g.K2})
}

func TestClassifyGradient(t *testing.T) {
	b := newBench(7)
	n, c, v := 5, 4, 6
	cl := &device.Classifier{X: b.normal(n, c), W: b.normal(v, c), Targets: b.ints(3, -1, 0, 5, 3), Loss: b.zeros(1, n),
		DX: b.zeros(n, c), DW: b.zeros(v, c), Scale: 0.3}
	b.Classify(cl)
	up := b.zeros(1, n)
	for i := range n {
		tensor.Host[float64](up)[i] = cl.Scale
	}
	plain := *cl
	plain.DX, plain.DW = tensor.Tensor{}, tensor.Tensor{}
	b.check(t, func() { b.Classify(&plain) }, cl.Loss, up, param{"X", cl.X, cl.DX}, param{"W", cl.W, cl.DW})
}

// norms are the three head norms: off, plain and affine.
func norms(b *bench, dv int) map[string]device.HeadNorm {
	return map[string]device.HeadNorm{
		"off":    {},
		"plain":  {On: true, Eps: 1e-2, Scale: 0.2},
		"affine": {On: true, Eps: 1e-2, Scale: 0.7, Weight: b.normal(1, dv)},
	}
}

// starts are no documents, and documents that begin at row 0 and 3 of the first sequence and at 0, 1 and 4 of the
// second.
func starts(b *bench) map[string]tensor.Tensor {
	return map[string]tensor.Tensor{"whole": {}, "documents": b.ints(0, 0, 0, 3, 3, 0, 1, 1, 1, 4)}
}

func TestAttentionGradient(t *testing.T) {
	b := newBench(8)
	for _, sh := range []device.AttnShape{{B: 2, T: 5, Heads: 2, Groups: 2, D: 3, DV: 4},
		{B: 2, T: 5, Heads: 4, Groups: 2, D: 2, DV: 3}} {
		sh.Scale = 1 / math.Sqrt(float64(sh.D))
		for norm, hn := range norms(b, sh.DV) {
			for start, st := range starts(b) {
				t.Run(fmt.Sprintf("heads%d/%s/%s", sh.Heads, norm, start), func(t *testing.T) {
					a, g := b.attn(sh, hn, st)
					b.Attention(a)
					b.AttentionBackward(a, g)
					ps := []param{{"q", a.Q, g.DQ}, {"k", a.K, g.DK}, {"v", a.V, g.DV}}
					if hn.Weight.Ok() {
						ps = append(ps, param{"norm", hn.Weight, g.DNorm})
					}
					b.check(t, func() { b.Attention(a) }, a.Out, g.DOut, ps...)
				})
			}
		}
	}
}

// attn is an attention with random inputs and room for everything else.
func (b *bench) attn(sh device.AttnShape, norm device.HeadNorm, start tensor.Tensor) (*device.Attn, *device.AttnGrad) {
	n, h, w := sh.B*sh.T, sh.Heads, sh.Heads*sh.DV
	a := &device.Attn{AttnShape: sh, Norm: norm, Start: start, Q: b.normal(n, h*sh.D), K: b.normal(n, sh.Groups*sh.D),
		V: b.normal(n, sh.Groups*sh.DV), Out: b.zeros(n, w), LSE: b.zeros(n, h)}
	g := &device.AttnGrad{DOut: b.normal(n, w), DQ: b.zeros(n, a.Q.Cols), DK: b.zeros(n, a.K.Cols),
		DV: b.zeros(n, a.V.Cols)}
	if norm.On {
		a.Raw, a.Rstd = b.zeros(n, w), b.zeros(n, h)
	}
	if norm.Weight.Ok() {
		g.DNorm = b.zeros(1, sh.DV)
	}
	return a, g
}

func TestDiffAttentionGradient(t *testing.T) {
	b := newBench(9)
	for _, sh := range []device.AttnShape{{B: 2, T: 5, Heads: 2, Groups: 2, D: 3, DV: 6},
		{B: 2, T: 5, Heads: 4, Groups: 2, D: 2, DV: 4}} {
		sh.Scale = 1 / math.Sqrt(float64(sh.D))
		for _, keys := range []int{1, 2} {
			for _, scalar := range []bool{true, false} {
				for norm, hn := range norms(b, sh.DV) {
					for start, st := range starts(b) {
						t.Run(fmt.Sprintf("heads%d/keys%d/scalar=%v/%s/%s", sh.Heads, keys, scalar, norm, start),
							func(t *testing.T) {
								b.diffGradient(t, sh, keys, scalar, hn, st)
							})
					}
				}
			}
		}
	}
}

func (b *bench) diffGradient(t *testing.T, sh device.AttnShape, keys int, scalar bool, norm device.HeadNorm,
	start tensor.Tensor) {
	a, g := b.diffAttn(sh, keys, norm, start)
	if scalar {
		a.Lam = b.normal(1, 1)
	}
	b.DiffAttention(a)
	b.DiffAttentionBackward(a, g)
	dlam := g.DLam
	if scalar { // one λ gets the sum of all shares
		dlam = b.zeros(1, 1)
		for _, e := range load(g.DLam).v {
			tensor.Host[float64](dlam)[0] += e
		}
	}
	ps := []param{{"q", a.Q, g.DQ}, {"k", a.K, g.DK}, {"v", a.V, g.DV}, {"λ", a.Lam, dlam}}
	if norm.Weight.Ok() {
		ps = append(ps, param{"norm", norm.Weight, g.DNorm})
	}
	b.check(t, func() { b.DiffAttention(a) }, a.Out, g.DOut, ps...)
}

// diffAttn is a differential attention with random inputs, λ per row, and room for everything else.
func (b *bench) diffAttn(sh device.AttnShape, keys int, norm device.HeadNorm, start tensor.Tensor) (*device.DiffAttn,
	*device.DiffAttnGrad) {
	n, h, w := sh.B*sh.T, sh.Heads, sh.Heads*sh.DV
	a := &device.DiffAttn{AttnShape: sh, Keys: keys, Norm: norm, Start: start, Q: b.normal(n, 2*h*sh.D),
		K: b.normal(n, sh.Groups*keys*sh.D), V: b.normal(n, sh.Groups*sh.DV), Lam: b.normal(n, h), Out: b.zeros(n, w),
		Out2: b.zeros(n, w), LSE: b.zeros(n, 2*h)}
	g := &device.DiffAttnGrad{DOut: b.normal(n, w), DQ: b.zeros(n, a.Q.Cols), DK: b.zeros(n, a.K.Cols),
		DV: b.zeros(n, a.V.Cols), DLam: b.zeros(n, h)}
	if norm.On {
		a.Raw, a.Rstd = b.zeros(n, w), b.zeros(n, h)
	}
	if norm.Weight.Ok() {
		g.DNorm = b.zeros(1, sh.DV)
	}
	return a, g
}
