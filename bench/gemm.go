package bench

import (
	"context"
	"fmt"
	"strings"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/tensor"
)

// GemmOptions choose the products of a size: those of one layer and of the classifier.
type GemmOptions struct {
	Geometry
	Tokens int   // rows of a training step's products; 0 takes the recipe's micro-batch
	Rows   []int // rows of decoding's products
}

// Check reports what is wrong with the options, naming the flag.
func (o GemmOptions) Check() error {
	for _, n := range o.Rows {
		if n < 1 || n > most {
			return fmt.Errorf("rows: has %d, each must be between 1 and %d", n, most)
		}
	}
	return bounded(flagValue{"tokens", o.Tokens})
}

// Shape is a product y [Rows,Out] = x [Rows,In]·Wᵀ.
type Shape struct{ Rows, Out, In int }

// Products measures the products of a linear layer in training, for any shapes.
func (c *Config) Products(ctx context.Context, shapes []Shape, emit func(Row)) error {
	c.defaults()
	g := &gemm{Config: c, ctx: ctx, opt: GemmOptions{Geometry: Geometry{Size: "shape"}}, emit: emit}
	var err error
	if g.product, err = c.product(); err != nil {
		return err
	}
	defer g.product.free()
	for _, s := range shapes {
		g.opt.Tokens = s.Rows
		if err := g.training(weight{"W", s.Out, s.In}); err != nil {
			return err
		}
	}
	return nil
}

// weight is a matrix of the model: y [N,out] = x [N,in]·Wᵀ.
type weight struct {
	name    string
	out, in int
}

// weights are the matrices of the first layer, and the classifier last.
func weights(c model.Config) (list []weight, classifier weight) {
	for _, p := range model.Table(c).List {
		name, first := strings.CutPrefix(p.Name, "layers.0.")
		if first && p.Kind == layer.Matrix {
			list = append(list, weight{strings.TrimSuffix(name, ".weight"), p.Rows, p.Cols})
		}
	}
	return list, weight{"classifier", c.Vocab, c.Dim}
}

// Gemm measures every product of a size separately: those of each matrix in training, the classifier with its loss
// and gradients, and the products of few rows of decoding.
func (c *Config) Gemm(ctx context.Context, o GemmOptions, emit func(Row)) error {
	c.defaults()
	r, err := o.config()
	if err != nil {
		return err
	}
	if o.Tokens == 0 {
		o.Tokens = r.Train.MicroBatch * r.Train.SeqLen
	}
	g := &gemm{Config: c, ctx: ctx, opt: o, emit: emit}
	if g.product, err = c.product(); err != nil {
		return err
	}
	defer g.product.free()
	list, classifier := weights(r.Model)
	for _, w := range list {
		if err := g.training(w); err != nil {
			return err
		}
	}
	if err := g.classifier(classifier); err != nil {
		return err
	}
	g.bytes = c.bandwidth()
	defer g.bytes.free()
	for _, w := range append(list, classifier) {
		for _, n := range o.Rows {
			if err := g.decoding(w, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// gemm is a run of Gemm.
type gemm struct {
	*Config
	ctx            context.Context
	opt            GemmOptions
	emit           func(Row)
	product, bytes *Ceiling
}

// training measures y = x·Wᵀ, dx = dy·W, dW = dyᵀ·x, which a step's first micro-batch computes, and dW += dyᵀ·x of the
// others, for all tokens.
func (g *gemm) training(w weight) error {
	d, n := g.Device, g.opt.Tokens
	x, dx, y := noisyAct(d, n, w.in), device.EmptyAct(d, n, w.in), device.EmptyAct(d, n, w.out)
	m, dm := noisy(d, d.Types().Act, w.out, w.in), device.Empty(d, d.Types().Stat, w.out, w.in)
	defer release(d, x, dx, y, m, dm)
	flops := 2 * float64(n) * float64(w.out) * float64(w.in)
	for _, p := range []struct {
		c, a, b tensor.Tensor
		op      device.MatMul
	}{
		{y, x, m, device.MatMul{TransB: true}},
		{dx, y, m, device.MatMul{}}, // y, which the previous product filled, serves as dy
		{dm, y, x, device.MatMul{TransA: true}},
		{dm, y, x, device.MatMul{TransA: true, Accumulate: true}},
	} {
		name := strings.TrimPrefix(productName(p.op), "MatMul ")
		if err := g.row(w, name, n, flops, g.product, func(int) { d.MatMul(p.c, p.a, p.b, p.op) }); err != nil {
			return err
		}
	}
	return nil
}

// classifier measures the output projection with its loss and both gradients: three products.
func (g *gemm) classifier(w weight) error {
	d, n := g.Device, g.opt.Tokens
	act, stat := d.Types().Act, d.Types().Stat
	c := &device.Classifier{X: noisyAct(d, n, w.in), W: noisy(d, act, w.out, w.in),
		Targets: device.Empty(d, tensor.I32, 1, n), Loss: device.Empty(d, stat, 1, n), DX: device.EmptyAct(d, n, w.in),
		DW: device.Empty(d, stat, w.out, w.in), Scale: 1 / float64(n)}
	defer release(d, c.X, c.W, c.Targets, c.Loss, c.DX, c.DW)
	device.WriteI32(d, c.Targets, randomIDs(n, w.out))
	flops := 6 * float64(n) * float64(w.out) * float64(w.in)
	return g.row(w, "loss+dx+dW", n, flops, g.product, func(int) { d.Classify(c) })
}

// decoding measures y = x·Wᵀ of few rows, bound by reading W. It cycles through copies of W that together exceed the
// caches.
func (g *gemm) decoding(w weight, n int) error {
	d := g.Device
	act, out := d.Types().Act, d.Types().Act
	if w.name == "classifier" {
		out = d.Types().Stat // logits
	}
	const room, most = 1 << 29, 1024 // bytes of all copies, and their number
	copies := min(max(1, room/tensor.Bytes(act, w.out, w.in)), most)
	pool := device.Empty(d, act, copies*w.out, w.in)
	x, y := noisy(d, act, n, w.in), device.Empty(d, out, n, w.out)
	defer release(d, pool, x, y)
	at := func(i int) tensor.Tensor { i %= copies; return pool.RowRange(i*w.out, (i+1)*w.out) }
	draw(d, at(0), 0, 0.1)
	for i := 1; i < copies; i++ {
		d.Copy(at(i), at(0))
	}
	for i := range copies { // a device may keep weights in another layout, made once
		d.MatMul(y, x, at(i), device.MatMul{TransB: true})
	}
	bytes := g.weightBytes()*float64(w.out*w.in) + float64(tensor.Bytes(act, n, w.in)+tensor.Bytes(out, n, w.out))
	return g.row(w, "y=x·Wᵀ", n, bytes, g.bytes, func(i int) { d.MatMul(y, x, at(i), device.MatMul{TransB: true}) })
}

// row measures f, which gets the index of its call: enough calls at a time for the clock's resolution.
func (g *gemm) row(w weight, what string, n int, work float64, ceiling *Ceiling, f func(i int)) error {
	d := g.Device
	row := Row{Kind: "gemm", Name: fmt.Sprintf("%s %s %s %d×%d×%d", g.opt.Size, w.name, what, n, w.out, w.in),
		Unit: "ms", Shape: map[string]any{"size": g.opt.Size, "weight": w.name, "product": what, "rows": n,
			"out": w.out, "in": w.in}}
	g.Say("gemm %s", row.Name)
	i := 0
	calls := func(n int) (float64, error) {
		sec, err := elapsed(d, func() {
			for range n {
				f(i)
				i++
			}
		})
		return sec / float64(n), err
	}
	const shortest, atLeast = 2e-3, 1e-6 // seconds of a sample, and of a call: a coarse clock may say 0
	times := 1
	for range 2 { // the first call may build kernels
		sec, err := calls(times)
		if err != nil {
			return err
		}
		times = min(1000, 1+int(shortest/max(sec, atLeast)))
	}
	got, err := g.measure(g.ctx, func() (float64, error) { return calls(times) }, ceiling)
	if err != nil {
		return err
	}
	row.fill(got, g.Config, ceiling, work, milliseconds)
	g.emit(row)
	return nil
}

func milliseconds(sec float64) float64 { return 1e3 * sec }

// weightBytes is the size of a weight as decoding reads it.
func (c *Config) weightBytes() float64 {
	if c.WeightBytes > 0 {
		return c.WeightBytes
	}
	return float64(c.Device.Types().Act.Size())
}
