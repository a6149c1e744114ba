package bench

import (
	"context"
	"fmt"
	"strings"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/tensor"
)

// AttentionOptions are the shape of an attention layer of a Transformer of the same width.
type AttentionOptions struct {
	Arch   string
	Dim    int // model width
	Head   int // width of a query or key head
	Seq    int // tokens in a sequence
	Tokens int // in all sequences
}

// Check reports what is wrong with the shape, naming the flag.
func (o AttentionOptions) Check() error {
	_, err := o.config()
	return err
}

// config is the layer, with as many heads as fill the width with values.
func (o AttentionOptions) config() (layer.AttnConfig, error) {
	a, err := layer.LookupArch(o.Arch)
	if err != nil {
		return layer.AttnConfig{}, err
	}
	if err := bounded(flagValue{"dim", o.Dim}, flagValue{"head", o.Head}, flagValue{"tokens", o.Tokens}); err != nil {
		return layer.AttnConfig{}, err
	}
	if o.Head <= 0 || o.Dim <= 0 || o.Dim%(o.Head*a.Values) != 0 {
		return layer.AttnConfig{}, fmt.Errorf("head: values of %d × %d do not divide dim = %d", a.Values, o.Head, o.Dim)
	}
	if o.Seq <= 0 || o.Tokens < o.Seq {
		return layer.AttnConfig{}, fmt.Errorf("seq: is %d, must be positive and at most tokens = %d", o.Seq, o.Tokens)
	}
	heads := o.Dim / (o.Head * a.Values)
	c := layer.AttnConfig{Arch: a, Dim: o.Dim, Heads: heads, Groups: heads, HeadDim: o.Head, HeadNorm: a.HeadNorm,
		HeadNormEps: 1e-5, LambdaInit: layer.LambdaSchedule(0), LambdaStd: 0.1, OutGain: 1}
	return c, c.Check()
}

// Attention measures the attention op of an architecture, forward and backward, with the arguments of a real attention
// layer: its inputs are the columns of a real QKV product. The rest of the layer runs once, before.
func (c *Config) Attention(ctx context.Context, o AttentionOptions, emit func(Row)) error {
	c.defaults()
	cfg, err := o.config()
	if err != nil {
		return err
	}
	top, err := c.product()
	if err != nil {
		return err
	}
	defer top.free()
	l := newAttnLayer(c.Device, cfg, o)
	defer l.free()
	c.Say("attention %s", l.name)
	var parts [3][]float64 // forward, backward, both
	got, err := c.measure(ctx, func() (float64, error) {
		f, b, err := l.run()
		for i, sec := range []float64{f, b, f + b} {
			parts[i] = append(parts[i], sec)
		}
		return f + b, err
	}, top)
	if err != nil {
		return err
	}
	for i, what := range []string{"forward", "backward", "forward+backward"} {
		row := Row{Kind: "attention", Name: l.name + " " + what, Unit: "ms",
			Shape: map[string]any{"arch": o.Arch, "dim": o.Dim, "head_dim": o.Head, "heads": cfg.Heads, "seq": o.Seq,
				"batch": l.pass.B, "pass": what}}
		work := []float64{l.flops[0], l.flops[1], l.flops[0] + l.flops[1]}[i]
		row.fill(samples{parts[i][c.Warmup:], got.ceiling}, c, top, work, milliseconds)
		emit(row)
	}
	return nil
}

// attnLayer is one attention layer with its input and its gradients.
type attnLayer struct {
	name  string
	ops   *Ops
	asked *attnAsked
	ps    *layer.ParamSet
	rope  *layer.Rope
	attn  *layer.Attention
	pass  layer.Pass
	arena *tensor.Arena
	x, dx tensor.Tensor
	flops [2]float64 // forward, backward
}

func newAttnLayer(d device.Device, cfg layer.AttnConfig, o AttentionOptions) *attnLayer {
	l := &attnLayer{name: fmt.Sprintf("%s %d/%d T=%d", o.Arch, o.Dim, o.Head, o.Seq), ops: NewOps(d),
		ps: layer.NewParamSet(), arena: tensor.NewArena(d)}
	l.asked = &attnAsked{Device: l.ops}
	l.rope = layer.NewRope(d, layer.Frequencies(o.Head, 10000), o.Seq, 1, true)
	cfg.Rope = l.rope
	l.attn = layer.NewAttention(l.ps, cfg)
	l.ps.Alloc(d, layer.Memory{Train: true})
	drawParams(d, l.ps)
	b := o.Tokens / o.Seq
	n := b * o.Seq
	l.pass = layer.Pass{Dev: l.asked, Arena: l.arena, B: b, T: o.Seq, Pos: device.Empty(d, tensor.I32, 1, n)}
	l.x, l.dx = device.EmptyAct(d, n, o.Dim), device.EmptyAct(d, n, o.Dim)
	draw(d, l.x, 0, 1)
	pos := make([]int32, n)
	for i := range pos {
		pos[i] = int32(i % o.Seq)
	}
	device.WriteI32(d, l.pass.Pos, pos)
	y := l.attn.Forward(&l.pass, l.x, nil)
	l.attn.Backward(&l.pass, l.dx, y)
	return l
}

// attnAsked records the attention ops that are called, to run them again.
type attnAsked struct {
	device.Device
	forward, backward func()
}

// Attention is recorded.
func (k *attnAsked) Attention(a *device.Attn) {
	b := *a
	k.forward = func() { k.Device.Attention(&b) }
	k.forward()
}

// AttentionBackward is recorded.
func (k *attnAsked) AttentionBackward(a *device.Attn, g *device.AttnGrad) {
	b, h := *a, *g
	k.backward = func() { k.Device.AttentionBackward(&b, &h) }
	k.backward()
}

// DiffAttention is recorded.
func (k *attnAsked) DiffAttention(a *device.DiffAttn) {
	b := *a
	k.forward = func() { k.Device.DiffAttention(&b) }
	k.forward()
}

// DiffAttentionBackward is recorded.
func (k *attnAsked) DiffAttentionBackward(a *device.DiffAttn, g *device.DiffAttnGrad) {
	b, h := *a, *g
	k.backward = func() { k.Device.DiffAttentionBackward(&b, &h) }
	k.backward()
}

func (l *attnLayer) free() {
	d := l.ops.Device
	l.arena.Free()
	l.ps.Free(d)
	l.rope.Free(d)
	l.attn.Free(d)
	release(d, l.x, l.dx, l.pass.Pos)
}

// run runs the attention ops forward and backward and returns their seconds.
func (l *attnLayer) run() (forward, backward float64, err error) {
	l.ops.Reset()
	l.asked.forward()
	l.asked.backward()
	for _, t := range l.ops.Times(1) {
		switch {
		case strings.HasSuffix(t.Op, "AttentionBackward"):
			backward, l.flops[1] = t.Seconds, t.FLOPs
		case strings.HasSuffix(t.Op, "Attention"):
			forward, l.flops[0] = t.Seconds, t.FLOPs
		}
	}
	return forward, backward, l.ops.Sync()
}
