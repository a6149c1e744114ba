package layer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/tensor"
)

// rig runs a layer on the float64 oracle: out = Forward(x), and for the scalar <r, out> compares what Backward gives
// with central differences, for the input and for every parameter.
type rig struct {
	t    *testing.T
	dev  device.Device
	ps   *ParamSet
	b, n int // sequences, tokens each
	rng  *rand.Rand
	pos  tensor.Tensor
	from tensor.Tensor // document starts
}

func newRig(t *testing.T, b, n int) *rig {
	r := &rig{t: t, dev: ref.New(), ps: NewParamSet(), b: b, n: n, rng: rand.New(rand.NewPCG(1, uint64(n)))}
	pos := make([]int32, b*n)
	for i := range pos {
		pos[i] = int32(i % n)
	}
	r.pos = device.Empty(r.dev, tensor.I32, 1, b*n)
	device.WriteI32(r.dev, r.pos, pos)
	return r
}

func (r *rig) pass() *Pass {
	return &Pass{Dev: r.dev, Arena: tensor.NewArena(r.dev), B: r.b, T: r.n, Pos: r.pos, Start: r.from}
}

// random fills a new tensor with normal numbers.
func (r *rig) random(rows, cols int) tensor.Tensor {
	t := device.Empty(r.dev, tensor.F64, rows, cols)
	x := tensor.Host[float64](t)
	for i := range x {
		x[i] = r.rng.NormFloat64()
	}
	return t
}

// start allocates the declared parameters and gives them all random values around their initial mean.
func (r *rig) start() {
	r.ps.Alloc(r.dev, Memory{Train: true})
	for _, p := range r.ps.List {
		for i := range p.W.Len() {
			*element(p.W, i) = p.Const + 0.4*r.rng.NormFloat64()
		}
	}
}

// check compares gradients. forward maps x to out; backward, called after it, returns dx for dout.
func (r *rig) check(x tensor.Tensor, forward func(p *Pass, x tensor.Tensor) tensor.Tensor,
	backward func(p *Pass, dout tensor.Tensor) tensor.Tensor) {
	r.t.Helper()
	out := forward(r.pass(), x)
	w := r.random(out.Rows, out.Cols)
	value := func() float64 {
		return dot(tensor.Host[float64](w), tensor.Host[float64](forward(r.pass(), x)))
	}
	p := r.pass()
	forward(p, x)
	dout := device.Empty(r.dev, tensor.F64, out.Rows, out.Cols)
	r.dev.Copy(dout, w)
	dx := backward(p, dout)
	if dx.Ok() {
		r.compare("x", x, dx, value)
	}
	for _, q := range r.ps.List {
		r.compare(q.Name, q.W, q.G, value)
	}
}

// element is number i of t, row after row.
func element(t tensor.Tensor, i int) *float64 {
	r := i / t.Cols
	return &tensor.Host[float64](t.RowRange(r, r+1))[i%t.Cols]
}

func dot(a, b []float64) (s float64) {
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

// compare checks every element of a small tensor and a random sample of a large one.
func (r *rig) compare(name string, x, g tensor.Tensor, value func() float64) {
	r.t.Helper()
	scale := 1e-3
	for i := range g.Len() {
		scale = max(scale, math.Abs(*element(g, i)))
	}
	for k := range min(x.Len(), 24) {
		i := k
		if x.Len() > 24 {
			i = r.rng.IntN(x.Len())
		}
		const h = 1e-5
		at := element(x, i)
		old := *at
		*at = old + h
		up := value()
		*at = old - h
		down := value()
		*at = old
		if got, want := *element(g, i), (up-down)/(2*h); !(math.Abs(got-want) <= 1e-6*scale) {
			r.t.Errorf("%s[%d]: gradient %.9g, difference %.9g (scale %.3g)", name, i, got, want, scale)
			return
		}
	}
}

func TestLinearGrad(t *testing.T) {
	r := newRig(t, 1, 5)
	l := NewLinear(r.ps, "l", 6, 7, 1, true)
	r.start()
	x := r.random(5, 6)
	r.check(x, l.Forward, func(p *Pass, dy tensor.Tensor) tensor.Tensor {
		dx := r.random(5, 6)
		l.Backward(p, dx, dy, x, false)
		return dx
	})
}

func TestNormGrad(t *testing.T) {
	r := newRig(t, 1, 5)
	l := NewNorm(r.ps, "n", 6, 1e-5)
	r.start()
	x, delta := r.random(5, 6), r.random(5, 6)
	r.check(x, func(p *Pass, x tensor.Tensor) tensor.Tensor { _, y := l.Forward(p, x, delta); return y },
		func(p *Pass, dy tensor.Tensor) tensor.Tensor {
			ds := device.Empty(r.dev, tensor.F64, 5, 6)
			l.Backward(p, ds, dy)
			return ds
		})
}

func TestMLPGrad(t *testing.T) {
	r := newRig(t, 1, 4)
	l := NewMLP(r.ps, 6, 10, 1)
	r.start()
	r.check(r.random(4, 6), l.Forward, func(p *Pass, dy tensor.Tensor) tensor.Tensor {
		dx := r.random(4, 6)
		l.Backward(p, dx, dy)
		return dx
	})
}

func TestEmbedGrad(t *testing.T) {
	r := newRig(t, 1, 6)
	l := NewEmbed(r.ps, 4, 3)
	r.start()
	ids := device.Empty(r.dev, tensor.I32, 1, 6)
	device.WriteI32(r.dev, ids, []int32{0, 3, 3, 1, 0, 3})
	r.check(tensor.Tensor{}, func(p *Pass, _ tensor.Tensor) tensor.Tensor { return l.Forward(p, ids) },
		func(p *Pass, dy tensor.Tensor) tensor.Tensor { l.Backward(p, dy); return tensor.Tensor{} })
}

func TestLossGrad(t *testing.T) {
	r := newRig(t, 1, 5)
	l := &Loss{W: r.ps.Add(Param{Name: "w", Rows: 7, Cols: 4})}
	r.start()
	targets := device.Empty(r.dev, tensor.I32, 1, 5)
	device.WriteI32(r.dev, targets, []int32{0, 6, -1, 3, 3})
	x, loss, one := r.random(5, 4), device.Empty(r.dev, tensor.F64, 1, 5), device.Empty(r.dev, tensor.F64, 1, 1)
	const scale = 0.3
	r.check(x, func(p *Pass, x tensor.Tensor) tensor.Tensor {
		l.Forward(p, loss, x, targets)
		sum := tensor.Host[float64](one)
		sum[0] = 0
		for _, v := range tensor.Host[float64](loss) {
			sum[0] += scale * v
		}
		return one
	}, func(p *Pass, dy tensor.Tensor) tensor.Tensor {
		dx := r.random(5, 4)
		l.Backward(p, dx, loss, x, targets, scale*tensor.Host[float64](dy)[0])
		return dx
	})
}

// The attention spine of every architecture, over grouped heads, head norms, rotary layouts, biases and documents.
func TestAttentionGrad(t *testing.T) {
	for _, a := range archs {
		for _, norm := range []HeadNormMode{HeadNormOff, HeadNormPlain, HeadNormAffine} {
			for _, groups := range []int{1, 2, 4} {
				for _, docs := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s/kv%d/docs=%v", a.Name, norm, groups, docs), func(t *testing.T) {
						testAttentionGrad(t, AttnConfig{Arch: a, Layer: 2, Dim: 10, Heads: 4, Groups: groups,
							HeadDim: 4, Bias: docs, HeadNorm: norm, HeadNormEps: 1e-5, LambdaInit: LambdaSchedule(2),
							LambdaStd: 0.1, OutGain: 1}, docs)
					})
				}
			}
		}
	}
}

// DIFF V2's ablations.
func TestDiff2VariantGrad(t *testing.T) {
	for _, form := range []LambdaForm{LambdaSigmoid, LambdaLinear, LambdaNone} {
		for _, pairing := range []Pairing{PairingGroup, PairingAcross} {
			for _, docs := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/docs=%v", form, pairing, docs), func(t *testing.T) {
					testAttentionGrad(t, AttnConfig{Arch: &diff2Arch, Layer: 2, Dim: 10, Heads: 4, Groups: 2,
						HeadDim: 4, HeadNorm: HeadNormOff, LambdaForm: form, Pairing: pairing, OutGain: 1}, docs)
				})
			}
		}
	}
}

func TestVariantsRefused(t *testing.T) {
	ok := AttnConfig{Arch: &diff2Arch, Dim: 8, Heads: 2, Groups: 1, HeadDim: 4, HeadNorm: HeadNormOff}
	for name, change := range map[string]func(c *AttnConfig){
		"form":           func(c *AttnConfig) { c.LambdaForm = "tanh" },
		"pairing":        func(c *AttnConfig) { c.Pairing = "halves" },
		"of diff":        func(c *AttnConfig) { c.Arch, c.LambdaForm = &diffArch, LambdaNone },
		"of transformer": func(c *AttnConfig) { c.Arch, c.Pairing = &plainArch, PairingAcross },
		"norm":           func(c *AttnConfig) { c.Pairing, c.HeadNorm = PairingAcross, HeadNormAffine },
	} {
		c := ok
		if change(&c); c.Check() == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := ok.Check(); err != nil {
		t.Error(err)
	}
}

func testAttentionGrad(t *testing.T, c AttnConfig, docs bool) {
	r := newRig(t, 2, 7)
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	c.Rope = NewRope(r.dev, Frequencies(c.HeadDim, 100), 7, 1, docs)
	l := NewAttention(r.ps, c)
	r.start()
	if docs {
		r.from = device.Empty(r.dev, tensor.I32, 1, 14)
		device.WriteI32(r.dev, r.from, []int32{0, 0, 0, 3, 3, 5, 5, 0, 1, 1, 1, 1, 1, 6})
	}
	x := r.random(14, c.Dim)
	r.check(x, func(p *Pass, x tensor.Tensor) tensor.Tensor { return l.Forward(p, x, nil) },
		func(p *Pass, dy tensor.Tensor) tensor.Tensor {
			dx := r.random(14, c.Dim)
			l.Backward(p, dx, dy)
			return dx
		})
}
