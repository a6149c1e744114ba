// Package optim updates a model's parameters: AdamW over the parameter table's flat groups, global-norm clipping
// without a host round trip, and learning-rate schedules. A Stepper combines the model's backward pass and the update
// into steps; each is one call if the device can record work.
package optim

import (
	"fmt"
	"math"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/tensor"
)

// Config holds AdamW's settings.
type Config struct {
	LR        float64 `json:"lr" doc:"peak learning rate"`
	Beta1     float64 `json:"beta1" doc:"decay of the first moment"`
	Beta2     float64 `json:"beta2" doc:"decay of the second moment"`
	Eps       float64 `json:"eps" doc:"added to the root of the second moment"`
	Decay     float64 `json:"weight_decay" doc:"decoupled decay of matrices; norms, lambda and biases never decay"`
	DecayEmb  bool    `json:"decay_embeddings" doc:"decay embeddings too"`
	Clip      float64 `json:"clip" doc:"largest global gradient norm; 0 does not clip"`
	Schedule  string  `json:"schedule" doc:"cosine, linear or constant after the warm-up"`
	Warmup    int     `json:"warmup" doc:"steps of linear warm-up"`
	FinalLR   float64 `json:"final_lr" doc:"learning rate at the last step, as a fraction of lr"`
	RoundBF16 bool    `json:"bf16_weights" doc:"round weights to bfloat16 values after each step, keeping float32 masters"`
}

// Default is the optimiser of the paper's scaling runs, with our own epsilon and clip.
func Default() Config {
	return Config{LR: 1e-3, Beta1: 0.9, Beta2: 0.98, Eps: 1e-8, Decay: 0.05, Clip: 1, Schedule: "cosine",
		Warmup: 100, FinalLR: 0.1}
}

// Check returns an error that names the wrong field and the values it allows.
func (c Config) Check() error {
	in := func(name string, v, lo, hi float64) error {
		if !(v >= lo && v < hi) {
			return fmt.Errorf("%s: is %g, must be in [%g, %g)", name, v, lo, hi)
		}
		return nil
	}
	for _, err := range []error{
		in("lr", c.LR, 0, 1e3), in("beta1", c.Beta1, 0, 1), in("beta2", c.Beta2, 0, 1), in("eps", c.Eps, 1e-30, 1),
		in("weight_decay", c.Decay, 0, 1e3), in("clip", c.Clip, 0, math.Inf(1)), in("final_lr", c.FinalLR, 0, 1.0001),
		in("warmup", float64(c.Warmup), 0, math.Inf(1)),
	} {
		if err != nil {
			return err
		}
	}
	if _, ok := schedules[c.Schedule]; !ok {
		return fmt.Errorf("schedule: is %q, must be cosine, linear or constant", c.Schedule)
	}
	return nil
}

// AdamW holds the moments of one parameter table.
type AdamW struct {
	cfg    Config
	dev    device.Device
	groups []*layer.Group
	m, v   []tensor.Tensor // flat, one per group
	rate   tensor.Tensor   // Stat [1,3]
	sq     tensor.Tensor   // Stat [1,1]: Σ g²
	host   [3]float32
	arg    device.AdamW
	pieces []piece // pieces that this process updates

	// Of several ranks, see NewParallel.
	ranks   Ranks // ranks with the same part of the model; nil for a single process
	world   Ranks
	split   *layer.Split
	counted []tensor.Tensor // gradients whose squares this rank adds to the norm
	shard   bool
	buckets []bucket
	reduced *background
	ready   func(part int)  // called when gradients of a part of the model are complete
	err     error           // error of a collective
	masters []tensor.Tensor // this rank's part, by group, of masters that groups leave to the optimiser
}

// New allocates zero moments for ps, which must have gradients.
func New(d device.Device, ps *layer.ParamSet, c Config) *AdamW {
	o := allocate(d, ps, c, 1)
	o.whole()
	return o
}

// allocate makes the moments of one of several equal parts of every group.
func allocate(d device.Device, ps *layer.ParamSet, c Config, parts int) *AdamW {
	o := &AdamW{cfg: c, dev: d, groups: ps.Groups}
	stat := d.Types().Stat
	for _, g := range ps.Groups {
		o.m = append(o.m, device.Empty(d, stat, 1, g.G.Cols/parts))
		o.v = append(o.v, device.Empty(d, stat, 1, g.G.Cols/parts))
	}
	o.rate, o.sq = device.Empty(d, stat, 1, 3), device.Empty(d, stat, 1, 1)
	return o
}

// whole makes each group one piece.
func (o *AdamW) whole() {
	for i, g := range o.groups {
		o.pieces = append(o.pieces, o.cut(i, 0, g.G.Cols, 0))
	}
	o.count()
}

// Free releases the moments' memory.
func (o *AdamW) Free() {
	o.reduced.close()
	for i := range o.m {
		o.dev.Free(o.m[i].Buf)
		o.dev.Free(o.v[i].Buf)
	}
	for _, t := range o.masters {
		if t.Ok() {
			o.dev.Free(t.Buf)
		}
	}
	o.dev.Free(o.rate.Buf)
	o.dev.Free(o.sq.Buf)
}

// SetRate writes the learning rate and the bias corrections of step t ≥ 1, which Step reads on the device.
func (o *AdamW) SetRate(t int, lr float64) {
	c := &o.cfg
	o.host = [3]float32{float32(lr), float32(-math.Expm1(float64(t) * math.Log(c.Beta1))),
		float32(-math.Expm1(float64(t) * math.Log(c.Beta2)))}
	device.WriteFloats(o.dev, o.rate, o.host[:])
}

// Step computes the global gradient norm and updates all parameters, clipping by it, without a host round trip, so it
// can be recorded. If the norm is not finite, nothing changes.
func (o *AdamW) Step() {
	c := &o.cfg
	o.dev.Zero(o.sq)
	for _, g := range o.counted {
		o.dev.SumSquares(o.sq, g)
	}
	if o.shard {
		o.fail(o.ranks.AllReduce(o.sq))
	}
	if o.split != nil {
		o.split.Sum(o.sq)
	}
	for i := range o.pieces {
		p := &o.pieces[i]
		o.arg = device.AdamW{W: p.w, Master: p.extra, M: p.m, V: p.v, G: p.g, Rate: o.rate, GradSq: o.sq,
			Beta1: c.Beta1, Beta2: c.Beta2, Eps: c.Eps, MaxNorm: c.Clip, RoundBF16: c.RoundBF16 && p.extra.Ok()}
		if p.group.Decay {
			o.arg.Decay = c.Decay
		}
		o.dev.AdamW(&o.arg)
	}
	if o.shard {
		o.gather()
	}
}

// Norm reads the global gradient norm of the last Step.
func (o *AdamW) Norm() float64 {
	device.ReadFloats(o.dev, o.host[:1], o.sq)
	return math.Sqrt(float64(o.host[0]))
}
