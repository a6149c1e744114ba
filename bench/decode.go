package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"antiphase/device"
	"antiphase/infer"
	"antiphase/layer"
	"antiphase/model"
)

// DecodeOptions describe generation: batch sequences, each after context tokens.
type DecodeOptions struct {
	Geometry
	Batch   []int
	Prompt  int  // tokens in the prompt
	Prompts int  // prompts computed together for the first row; 0 is 1
	Chunk   int  // prompt tokens per step; 0 is what the engine takes on the device
	Ops     bool // report the time of each op
}

// Decode measures generation as users see it, with scheduling and greedy sampling on the host: prompt tokens per second
// of one sequence, then tokens per second of every batch. A step must read all weights and every sequence's keys and
// values once; these bytes divided by the step's time are compared with the device's bandwidth.
func (c *Config) Decode(ctx context.Context, o DecodeOptions, emit func(Row)) error {
	c.defaults()
	if o.Chunk == 0 {
		o.Chunk = model.PromptRows(c.Device)
	}
	o.Prompts = max(o.Prompts, 1)
	largest := o.Prompts
	for _, n := range o.Batch {
		largest = max(largest, n)
	}
	// While the last prompts are computed the first sequences continue: one step for each chunk of each prompt.
	o.Context = o.Prompt + largest*((o.Prompt+o.Chunk-1)/o.Chunk+1) + c.Warmup + c.Reps*c.stretch().all() + 2
	r, err := o.config()
	if err != nil {
		return err
	}
	m, err := model.New(c.Device, r.Model, layer.Memory{})
	if err != nil {
		return err
	}
	defer m.Free()
	drawParams(c.Device, m.Params)
	if err := c.prefill(ctx, o, m, emit); err != nil {
		return err
	}
	top := c.bandwidth()
	defer top.free()
	for _, n := range o.Batch {
		if err := c.generate(ctx, o, m, n, top, emit); err != nil {
			return err
		}
	}
	return nil
}

// engine serves n sequences of m.
func (o *DecodeOptions) engine(m *model.Model, n int) (*infer.Engine, error) {
	return infer.New(m, nil, infer.Options{Slots: n, PrefillChunk: o.Chunk})
}

// requests are n random prompts with greedy continuation.
func (o *DecodeOptions) requests(m *model.Model, n, most int) []infer.Request {
	list := make([]infer.Request, n)
	ids := randomIDs(n*o.Prompt, m.Config.Vocab)
	for i := range list {
		list[i] = infer.Request{IDs: ids[i*o.Prompt : (i+1)*o.Prompt], Sampling: infer.Sampling{MaxTokens: most}}
	}
	return list
}

// prefill measures the time to the first tokens of Prompts prompts.
func (c *Config) prefill(ctx context.Context, o DecodeOptions, m *model.Model, emit func(Row)) error {
	top, err := c.product()
	if err != nil {
		return err
	}
	defer top.free()
	n := o.Prompts
	e, err := o.engine(m, n)
	if err != nil {
		return err
	}
	defer e.Close()
	row := o.row(m, "prefill", n)
	c.Say("decode %s", row.Name)
	short := *c
	short.Warmup, short.Reps = min(c.Warmup, 2), min(c.Reps, 5)
	got, err := short.measure(ctx, func() (float64, error) {
		begin := time.Now()
		err := e.Generate(ctx, o.requests(m, n, 1), func(int, infer.Event) bool { return true })
		return time.Since(begin).Seconds(), err
	}, top)
	if err != nil {
		return err
	}
	row.fill(got, &short, top, float64(n)*m.Config.PromptFLOPs(o.Prompt),
		func(sec float64) float64 { return float64(n*o.Prompt) / sec })
	if o.Ops {
		if row.Ops, err = c.byOps(o, m.Config, n, func(e *infer.Engine, m *model.Model, ops *Ops) (int, error) {
			var err error
			for i := 0; i < 2 && err == nil; i++ { // the first prompt may convert weights to another layout
				ops.Reset()
				err = e.Generate(ctx, o.requests(m, n, 1), func(int, infer.Event) bool { return true })
			}
			return 1, err
		}); err != nil {
			return err
		}
	}
	emit(row)
	return nil
}

func (o *DecodeOptions) row(m *model.Model, what string, batch int) Row {
	s := shapeOf(o.Geometry, m.Config)
	s["context"], s["batch"], s["pass"] = o.Prompt, batch, what
	return Row{Kind: "decode", Name: fmt.Sprintf("%s %s %s batch %d context %d", o.Size, o.Arch, what, batch, o.Prompt),
		Unit: "tokens/s", Shape: s}
}

// errEnough ends a generation that has been measured.
var errEnough = errors.New("bench: enough")

// generate measures steps of n sequences, starting when all have computed their prompts.
func (c *Config) generate(ctx context.Context, o DecodeOptions, m *model.Model, n int, top *Ceiling,
	emit func(Row)) error {
	e, err := o.engine(m, n)
	if err != nil {
		return err
	}
	defer e.Close()
	row := o.row(m, "decode", n)
	c.Say("decode %s", row.Name)
	w := &watch{c: c, top: top, stretch: c.stretch(), begin: func() {}, lengths: make([]int, n)}
	if err := w.run(ctx, e, o.requests(m, n, 0)); err != nil {
		return fmt.Errorf("%s: %w", row.Name, err)
	}
	cached := float64(n * o.Prompt)
	for _, k := range w.lengths {
		cached += float64(k) - float64(c.Reps*w.stretch.all())/2 // in the middle of the measured steps
	}
	row.Shape["mean_context"] = cached / float64(n)
	row.Shape["step_bytes"] = c.stepBytes(m.Config, cached)
	row.fill(w.got, c, top, c.stepBytes(m.Config, cached), func(sec float64) float64 { return float64(n) / sec })
	if o.Ops {
		if row.Ops, err = c.byOps(o, m.Config, n, func(e *infer.Engine, m *model.Model, ops *Ops) (int, error) {
			nothing := &Ceiling{Run: func() (float64, error) { return 1, nil }}
			w := &watch{c: &Config{Warmup: 2, Reps: min(c.Reps, 5)}, top: nothing, stretch: stretch{timed: 1},
				begin: ops.Reset, lengths: make([]int, n)}
			return w.c.Reps, w.run(ctx, e, o.requests(m, n, 0))
		}); err != nil {
			return err
		}
	}
	emit(row)
	return nil
}

// byOps lets f run n sequences on a model whose ops are timed one by one. f begins with Reset and returns the number of
// passes since.
func (c *Config) byOps(o DecodeOptions, cfg model.Config, n int,
	f func(*infer.Engine, *model.Model, *Ops) (int, error)) ([]OpTime, error) {
	ops := NewOps(c.Device)
	m, err := model.New(ops.chunked(), cfg, layer.Memory{})
	if err != nil {
		return nil, err
	}
	defer m.Free()
	drawParams(c.Device, m.Params)
	e, err := o.engine(m, n)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	passes, err := f(e, m, ops)
	return ops.Times(passes), err
}

// stretch is the number of steps per sample, and the number skipped before them.
type stretch struct{ skipped, timed int }

func (s stretch) all() int { return s.skipped + s.timed }

// stretch is a single step on a synchronous device. On a device that works ahead (device.Ahead), measuring the ceiling
// waits for the step in flight, and then its token takes no time: samples begin two tokens later, when the pace is
// steady again, and many steps share the rest of the disturbance.
func (c *Config) stretch() stretch {
	if _, ok := c.Device.(device.Ahead); ok {
		return stretch{2, 8}
	}
	return stretch{0, 1}
}

// watch measures the time between tokens of the first sequence: a stretch of whole steps. The ceiling is measured in
// between.
type watch struct {
	c       *Config
	top     *Ceiling
	stretch stretch
	begin   func() // called before the first measured step
	stop    context.CancelCauseFunc
	lengths []int // tokens generated by each sequence
	started int   // sequences that have generated a token
	steps   int   // since all have
	since   int   // since the ceiling was measured
	last    time.Time
	got     samples
	err     error
}

// run generates until enough steps were measured.
func (w *watch) run(ctx context.Context, e *infer.Engine, list []infer.Request) error {
	ctx, w.stop = context.WithCancelCause(ctx)
	defer w.stop(nil)
	if err := e.Generate(ctx, list, w.event); err != nil && !errors.Is(err, errEnough) {
		return err
	}
	if w.err == nil && len(w.got.seconds) < w.c.Reps {
		return fmt.Errorf("bench: %d of %d samples were taken", len(w.got.seconds), w.c.Reps)
	}
	return w.err
}

func (w *watch) event(i int, ev infer.Event) bool {
	if ev.ID < 0 {
		return true
	}
	if w.lengths[i] == 0 {
		w.started++
	}
	w.lengths[i]++
	if i != 0 || w.started < len(w.lengths) {
		return true
	}
	now := time.Now()
	w.steps++
	if w.steps <= w.c.Warmup+1 {
		if w.steps == w.c.Warmup+1 {
			w.begin()
		}
		w.last = time.Now()
		return true
	}
	switch w.since++; w.since {
	case w.stretch.skipped:
		w.last = now
	case w.stretch.all():
		w.sample(now)
	}
	return true
}

// sample records the stretch that ends now, and measures the ceiling.
func (w *watch) sample(now time.Time) {
	top, err := w.top.Run()
	w.got.seconds, w.got.ceiling = append(w.got.seconds, now.Sub(w.last).Seconds()/float64(w.stretch.timed)),
		append(w.got.ceiling, top)
	if w.err = err; err != nil || len(w.got.seconds) == w.c.Reps {
		w.stop(errEnough)
	}
	w.since, w.last = 0, time.Now()
}

// stepBytes are the bytes that a step must read with this many cached positions of all sequences together: the
// matrices, the embedding if it is also the classifier, keys and values.
func (c *Config) stepBytes(m model.Config, cached float64) float64 {
	matrices := 0
	for _, p := range model.Table(m).List {
		if p.Kind != layer.Embedding || m.TieEmbed {
			matrices += p.Rows * p.Cols
		}
	}
	a, err := layer.LookupArch(m.Arch)
	if err != nil {
		panic(err) // the model was made from it
	}
	t := c.Device.Types().Cache
	kv := m.Layers * (device.CacheCols(t, m.KVHeads*a.Keys, m.HeadDim) +
		device.CacheCols(t, m.KVHeads, a.Values*m.HeadDim)) * t.Size()
	return c.weightBytes()*float64(matrices) + float64(kv)*cached
}
