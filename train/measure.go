package train

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/optim"
	"antiphase/recipe"
)

// slowStep is what the tokens of a trial step may take before Measure extrapolates instead of trying a larger one.
const slowStep = time.Second / 2

// Measurable reports whether Measure tries steps of r on d: its weights, gradients and moments take at most half of the
// free memory.
func Measurable(d device.Device, r recipe.Recipe) bool {
	return MemoryOf(r, d.Types(), Layout{}).State <= device.SpareOf(d)/2
}

// Expected is the time of one step of r on d by its operations: whole steps reach roughly half of the rate of a bare
// matrix product.
func Expected(d device.Device, r recipe.Recipe) time.Duration {
	const share = 0.5
	_, perToken := r.Model.FLOPs(r.Train.SeqLen)
	s := perToken * float64(r.Train.Batch) * float64(r.Train.SeqLen) / (MachinePeak(d) * share)
	return time.Duration(min(s*float64(time.Second), math.MaxInt64/2))
}

// Measure is the time of one step of r on d, the shortest of a few on random tokens. Plans use it before there is any
// data. A step that takes long, such as one of a large model on a CPU, is extrapolated from one of fewer tokens; the
// optimiser's share, which does not depend on tokens, is about what the smallest trial takes. The time of a model that
// is not Measurable is Expected.
func Measure(ctx context.Context, d device.Device, r recipe.Recipe) (time.Duration, error) {
	if !Measurable(d, r) {
		return Expected(d, r), nil
	}
	return measure(ctx, d, r, time.Now)
}

func measure(ctx context.Context, d device.Device, r recipe.Recipe, now func() time.Time) (time.Duration, error) {
	m, err := model.New(d, r.Model, layer.Memory{Train: true, Master: r.Optim.RoundBF16})
	if err != nil {
		return 0, err
	}
	defer m.Free()
	m.Init(r.Train.Seed)
	o := optim.New(d, m.Params, r.Optim)
	defer o.Free()
	full := trial{r.Train.Batch, r.Train.SeqLen, r.Train.MicroBatch}
	fixed := time.Duration(0)
	for t := full.first(); ; t = t.larger(full) {
		took, err := t.time(ctx, m, o, &r, t == full, now)
		switch {
		case err != nil:
			return 0, err
		case t == full:
			return took, nil
		case t == full.first():
			fixed = took
		case took-fixed > slowStep:
			return fixed + time.Duration(float64(took-fixed)*full.flops(r.Model)/t.flops(r.Model)), nil
		}
	}
}

// trial is the shape of a measured step, and the step's micro-batch.
type trial struct{ rows, tokens, micro int }

// first is the smallest trial: a row of at most 32 tokens.
func (t trial) first() trial { return trial{1, min(t.tokens, 32), t.micro} }

// larger has about four times as many tokens, in longer rows and then in more of them, but at most full's. More rows
// than a micro-batch are whole micro-batches.
func (t trial) larger(full trial) trial {
	if t.tokens < full.tokens {
		return trial{t.rows, min(4*t.tokens, full.tokens), t.micro}
	}
	rows := min(4*t.rows, full.rows)
	if rows > t.micro {
		rows -= rows % t.micro
	}
	return trial{rows, t.tokens, t.micro}
}

func (t trial) flops(c model.Config) float64 {
	_, perToken := c.FLOPs(t.tokens)
	return perToken * float64(t.rows*t.tokens)
}

// time is the shortest of two steps, or of six of the last trial, whose time is not extrapolated.
func (t trial) time(ctx context.Context, m *model.Model, o *optim.AdamW, r *recipe.Recipe, last bool,
	now func() time.Time) (best time.Duration, err error) {
	step := optim.NewStepper(m, o, min(t.micro, t.rows))
	defer step.Free()
	n := t.rows * t.tokens
	b := model.Batch{B: t.rows, T: t.tokens, IDs: make([]int32, n), Targets: make([]int32, n)}
	g := rand.New(rand.NewPCG(r.Train.Seed, 1))
	for i := range b.IDs {
		b.IDs[i], b.Targets[i] = int32(g.IntN(r.Model.Vocab)), int32(g.IntN(r.Model.Vocab))
	}
	times := 2
	if last {
		times = 6
	}
	for i := range times {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		begin := now()
		if _, _, err := step.Step(&b, i+1, 0); err != nil {
			return 0, err
		}
		if took := now().Sub(begin); best == 0 || took < best {
			best = took
		}
	}
	return best, nil
}
