package bench

import (
	"context"
	"fmt"
	"math"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/optim"
	"antiphase/recipe"
)

// Geometry is a named size with overrides: zero fields keep the recipe's.
type Geometry struct {
	Size, Arch string
	Head       int // width of a query or key head
	Vocab      int
	Layers     int
	Context    int
}

// flagValue is the value of a flag.
type flagValue struct {
	name string
	v    int
}

// most is far above what can be measured; products of such numbers with widths stay within their types.
const most = 1 << 24

// bounded rejects the first value that is negative or too large, naming the flag.
func bounded(list ...flagValue) error {
	for _, f := range list {
		if f.v < 0 || f.v > most {
			return fmt.Errorf("%s: is %d, must be between 0 and %d", f.name, f.v, most)
		}
	}
	return nil
}

// config is the recipe's model with the changes.
func (g Geometry) config() (recipe.Recipe, error) {
	if err := bounded(flagValue{"head", g.Head}, flagValue{"vocab", g.Vocab},
		flagValue{"layers", g.Layers}); err != nil {
		return recipe.Recipe{}, err
	}
	a, err := layer.LookupArch(g.Arch)
	if err != nil {
		return recipe.Recipe{}, err
	}
	r, err := recipe.Named(g.Size, g.Arch)
	if err != nil {
		return r, err
	}
	m := &r.Model
	if g.Head > 0 {
		m.HeadDim, m.Heads = g.Head, m.Dim/(g.Head*a.Values)
		m.KVHeads = m.Heads
		if m.Heads*g.Head*a.Values != m.Dim {
			return r, fmt.Errorf("head: heads of %d (values of %d) do not divide the width of %s, %d", g.Head,
				g.Head*a.Values, g.Size, m.Dim)
		}
	}
	for _, f := range []struct {
		p *int
		v int
	}{{&m.Vocab, g.Vocab}, {&m.Layers, g.Layers}, {&m.Context, g.Context}} {
		if f.v > 0 {
			*f.p = f.v
		}
	}
	r.Tokenizer.Vocab = min(r.Tokenizer.Vocab, m.Vocab)
	return r, nil
}

// Check reports what is wrong with a geometry, naming the flag.
func (g Geometry) Check() error {
	_, err := g.config()
	return err
}

// shapeOf is the model's shape for programs.
func shapeOf(g Geometry, m model.Config) map[string]any {
	return map[string]any{"size": g.Size, "arch": m.Arch, "layers": m.Layers, "dim": m.Dim, "heads": m.Heads,
		"head_dim": m.HeadDim, "ffn": m.FFN, "vocab": m.Vocab, "params": model.Table(m).Count()}
}

// TrainOptions describe a training step.
type TrainOptions struct {
	Geometry
	Seq, Batch, Micro int             // sequence length, sequences in a step and at a time; 0: the recipe's micro-batch
	Recompute         layer.Recompute // empty keeps the recipe's
	Forward           bool            // only the forward pass with losses
	Ops               bool            // report the time of each op
}

// Check reports what is wrong with the options.
func (t TrainOptions) Check() error {
	_, err := t.recipe()
	return err
}

func (t TrainOptions) recipe() (recipe.Recipe, error) {
	if err := bounded(flagValue{"seq", t.Seq}, flagValue{"batch", t.Batch}, flagValue{"micro", t.Micro}); err != nil {
		return recipe.Recipe{}, err
	}
	t.Context = max(t.Context, t.Seq)
	r, err := t.config()
	if err != nil {
		return r, err
	}
	if t.Seq > 0 {
		r.Train.SeqLen = t.Seq
	}
	r.Train.Batch = r.Train.MicroBatch
	if t.Batch > 0 {
		r.Train.Batch, r.Train.MicroBatch = t.Batch, t.Batch
	}
	if t.Micro > 0 {
		r.Train.MicroBatch = t.Micro
	}
	if t.Recompute != "" {
		r.Train.Recompute = t.Recompute
	}
	return r.Complete()
}

// stepper is a model that takes training's own steps on random tokens.
type stepper struct {
	recipe     recipe.Recipe
	model      *model.Model
	optim      *optim.AdamW
	steps      *optim.Stepper
	batch      model.Batch
	taken      int
	loss, norm float64 // of the last step
}

func newStepper(d device.Device, r recipe.Recipe) (*stepper, error) {
	m, err := model.New(d, r.Model,
		layer.Memory{Train: true, Master: r.Optim.RoundBF16, DecayEmbeddings: r.Optim.DecayEmb})
	if err != nil {
		return nil, err
	}
	m.Recompute(r.Train.Recompute)
	drawParams(d, m.Params)
	n := r.Train.Batch * r.Train.SeqLen
	ids := randomIDs(n+1, r.Model.Vocab)
	s := &stepper{recipe: r, model: m, optim: optim.New(d, m.Params, r.Optim),
		batch: model.Batch{B: r.Train.Batch, T: r.Train.SeqLen, IDs: ids[:n], Targets: ids[1:]}}
	s.steps = optim.NewStepper(m, s.optim, r.Train.MicroBatch)
	return s, nil
}

func (s *stepper) free() {
	s.steps.Free()
	s.optim.Free()
	s.model.Free()
}

func (s *stepper) step() (err error) {
	s.taken++
	s.loss, s.norm, err = s.steps.Step(&s.batch, s.taken, s.recipe.Optim.Rate(s.taken, s.recipe.Train.Steps))
	return err
}

// Train measures training steps: tokens per second, the FLOPs of the formulas (model.Config.FLOPs) relative to the
// device's large product, and memory. With Ops, a few more steps run op by op.
func (c *Config) Train(ctx context.Context, t TrainOptions) (Row, error) {
	c.defaults()
	r, err := t.recipe()
	if err != nil {
		return Row{}, err
	}
	tr := r.Train
	row := Row{Kind: "train", Name: fmt.Sprintf("%s %s T=%d batch %d", t.Size, t.Arch, tr.SeqLen, tr.Batch),
		Unit: "tokens/s", Shape: shapeOf(t.Geometry, r.Model)}
	row.Shape["seq"], row.Shape["batch"], row.Shape["micro_batch"] = tr.SeqLen, tr.Batch, tr.MicroBatch
	if tr.Recompute != layer.RecomputeOff {
		row.Name += ", recompute " + string(tr.Recompute)
		row.Shape["recompute"] = tr.Recompute
	}
	c.Say("train %s", row.Name)
	ceiling, err := c.product()
	if err != nil {
		return row, err
	}
	defer ceiling.free()
	if t.Forward {
		err = c.trainForward(ctx, &row, r, ceiling)
		return row, err
	}
	if err := c.trainFree(ctx, &row, r, ceiling); err != nil || !t.Ops {
		return row, err
	}
	row.Ops, err = c.trainOps(ctx, r)
	return row, err
}

// trainFree measures undisturbed steps, as in training.
func (c *Config) trainFree(ctx context.Context, row *Row, r recipe.Recipe, ceiling *Ceiling) error {
	dev := count(c.Device)
	s, err := newStepper(dev, r)
	if err != nil {
		return err
	}
	defer s.free()
	got, err := c.measure(ctx, func() (float64, error) { return wall(dev, s.step) }, ceiling)
	if err != nil {
		return err
	}
	tokens := float64(r.Train.Batch * r.Train.SeqLen)
	_, flops := r.Model.FLOPs(r.Train.SeqLen)
	row.fill(got, c, ceiling, flops*tokens, func(sec float64) float64 { return tokens / sec })
	row.Memory, row.Loss = dev.memory(), s.loss
	var why error
	if row.Shape["recorded"], why = s.steps.Recorded(); why != nil {
		c.Say("the step is not one call: %v", why)
	}
	if math.IsNaN(s.loss) || math.IsInf(s.norm, 0) || math.IsNaN(s.norm) {
		return fmt.Errorf("bench: %s: after %d steps the loss is %g and the gradient's norm %g", row.Name, s.taken,
			s.loss, s.norm)
	}
	return nil
}

// trainForward measures forward passes over a micro-batch, with the losses.
func (c *Config) trainForward(ctx context.Context, row *Row, r recipe.Recipe, ceiling *Ceiling) error {
	r.Train.Batch = r.Train.MicroBatch
	s, err := newStepper(c.Device, r)
	if err != nil {
		return err
	}
	defer s.free()
	got, err := c.measure(ctx, func() (float64, error) {
		return wall(c.Device, func() error { return s.model.Score(&s.batch) })
	}, ceiling)
	if err != nil {
		return err
	}
	row.Name += ", forward"
	tokens := float64(r.Train.Batch * r.Train.SeqLen)
	flops, _ := r.Model.FLOPs(r.Train.SeqLen)
	row.fill(got, c, ceiling, flops*tokens, func(sec float64) float64 { return tokens / sec })
	return nil
}

// trainOps runs steps op by op.
func (c *Config) trainOps(ctx context.Context, r recipe.Recipe) ([]OpTime, error) {
	ops := NewOps(c.Device)
	s, err := newStepper(ops, r)
	if err != nil {
		return nil, err
	}
	defer s.free()
	const warmup = 2
	steps := min(c.Reps, 5)
	for i := range warmup + steps {
		if i == warmup {
			ops.Reset()
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := s.step(); err != nil {
			return nil, err
		}
	}
	return ops.Times(steps), nil
}
