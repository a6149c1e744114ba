package optim_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/dist"
	"antiphase/dist/disttest"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/model/modeltest"
	"antiphase/optim"
)

// Ranks that split the model, and pairs of them that also divide the rows, report the loss and the norm of one process
// in every step, and clip by it: what all ranks of a model hold is counted once, rows that several see too. Together
// they store every element of the model once.
func TestSplitRanksAreOne(t *testing.T) {
	c := model.Config{Arch: "diff2", Vocab: 20, Context: 16, Layers: 2, Dim: 16, Heads: 4, KVHeads: 2, HeadDim: 4,
		FFN: 24, HeadNorm: layer.HeadNormAffine}
	cfg := optim.Default()
	cfg.Clip = 0.3
	batch := rows(4, 8)
	run := func(s *optim.Stepper) ([][2]float64, error) { return train(s, batch, 4, 2e-2) }
	d := ref.New()
	m := modeltest.New(t, d, c, layer.Memory{Train: true}, 3)
	want, err := run(optim.NewStepper(m, optim.New(d, m.Params, cfg), 1))
	if err != nil || want[0][1] < 2*cfg.Clip {
		t.Fatalf("%v, %v", want, err)
	}
	for _, size := range []int{2, 4} { // tp = 2, and dp = 1 or 2
		restore := optim.Buckets(1 << (20 - 5*size))
		for _, shard := range []bool{false, true} {
			stored := make([]map[string]int, size) // by rank
			err := disttest.NewWorld(size, disttest.Options{}).Run(func(r dist.Comm) error {
				team, err := r.Split(r.Rank() / 2)
				if err != nil {
					return err
				}
				data, err := r.Split(r.Rank() % 2)
				if err != nil {
					return err
				}
				d := ref.New()
				memory := layer.Memory{Train: true, Split: layer.NewSplit(team)}
				m := modeltest.New(t, d, c, optim.Memory(memory, data, shard), 3)
				o := optim.NewParallel(d, m, cfg, optim.Team{Data: data, World: r}, shard)
				s := optim.NewStepper(m, o, 1)
				got, err := run(s)
				for n := range got {
					for i, x := range got[n] {
						if !(math.Abs(x/want[n][i]-1) <= 1e-5) {
							t.Errorf("%d ranks, sharded %v: loss and norm of step %d %v, want %v", size, shard, n+1,
								got[n], want[n])
						}
					}
				}
				stored[r.Rank()] = map[string]int{}
				for _, x := range o.Slices() {
					stored[r.Rank()][x.Param.Name] += x.To - x.From
				}
				s.Free()
				o.Free()
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			storedOnce(t, m.Params.List, stored)
		}
		restore()
	}
}

// storedOnce checks how many elements of each parameter all ranks store together.
func storedOnce(t *testing.T, list []*layer.Param, byRank []map[string]int) {
	t.Helper()
	for _, p := range list {
		n := 0
		for _, stored := range byRank {
			n += stored[p.Name]
		}
		if n != p.Rows*p.Cols {
			t.Errorf("%d ranks: %d elements of %s are stored, it has %d", len(byRank), n, p.Name, p.Rows*p.Cols)
		}
	}
}

// Both sides of every bound of the settings; the error names the field.
func TestConfigBounds(t *testing.T) {
	for field, c := range map[string]struct {
		set       func(c *optim.Config, x float64)
		good, bad []float64
	}{
		"lr": {func(c *optim.Config, x float64) { c.LR = x }, []float64{0, 999},
			[]float64{-1e-9, 1000, math.NaN()}},
		"beta1":        {func(c *optim.Config, x float64) { c.Beta1 = x }, []float64{0, 0.999}, []float64{-0.1, 1}},
		"beta2":        {func(c *optim.Config, x float64) { c.Beta2 = x }, []float64{0, 0.999}, []float64{-0.1, 1}},
		"eps":          {func(c *optim.Config, x float64) { c.Eps = x }, []float64{1e-30, 0.9}, []float64{0, 1}},
		"weight_decay": {func(c *optim.Config, x float64) { c.Decay = x }, []float64{0, 999}, []float64{-0.1, 1000}},
		"clip": {func(c *optim.Config, x float64) { c.Clip = x }, []float64{0, 1e300},
			[]float64{-0.1, math.Inf(1)}},
		"final_lr": {func(c *optim.Config, x float64) { c.FinalLR = x }, []float64{0, 1}, []float64{-0.1, 1.01}},
		"warmup":   {func(c *optim.Config, x float64) { c.Warmup = int(x) }, []float64{0, 1e9}, []float64{-1}},
	} {
		for _, list := range [][]float64{c.good, c.bad} {
			for _, x := range list {
				cfg := optim.Default()
				c.set(&cfg, x)
				bad := fmt.Sprint(list) == fmt.Sprint(c.bad)
				if err := cfg.Check(); (err != nil) != bad || err != nil &&
					!strings.HasPrefix(err.Error(), field+": ") {
					t.Errorf("%s = %g: %v", field, x, err)
				}
			}
		}
	}
	for schedule, good := range map[string]bool{"cosine": true, "linear": true, "constant": true, "": false,
		"step": false} {
		cfg := optim.Default()
		cfg.Schedule = schedule
		if err := cfg.Check(); (err == nil) != good {
			t.Errorf("%q: %v", schedule, err)
		}
	}
	// The paper's scaling runs (its Table 9): β 0.9 and 0.98, decay 0.05.
	if c := optim.Default(); c.Beta1 != 0.9 || c.Beta2 != 0.98 || c.Decay != 0.05 || c.DecayEmb || c.RoundBF16 ||
		c.Eps != 1e-8 || c.Clip != 1 {
		t.Errorf("%+v", c)
	}
}

// A model whose pass needs the host is stepped without recording, on a device that could record, as on one that cannot;
// both learn.
func TestStepByHost(t *testing.T) {
	c := model.Config{Arch: "diff", Vocab: 20, Context: 16, Layers: 1, Dim: 16, Heads: 2, HeadDim: 4, FFN: 24}
	half := 0.5
	steps := func(d device.Device, list ...layer.Intervention) (out [3]float64) {
		m := modeltest.New(t, d, c, layer.Memory{Train: true}, 3)
		if err := m.Intervene(list...); err != nil || m.ByHost() != (len(list) > 0) {
			t.Fatalf("by the host %v, %v", m.ByHost(), err)
		}
		s := optim.NewStepper(m, optim.New(d, m.Params, optim.Default()), 1)
		for n := range out {
			loss, _, err := s.Step(rows(2, 8), n+1, 1e-2)
			if err != nil {
				t.Fatal(err)
			}
			out[n] = loss
		}
		return out
	}
	for _, list := range [][]layer.Intervention{nil, {{Lambda: &half}}} {
		d := &recording{Device: ref.New()}
		if got, want := steps(d, list...), steps(ref.New(), list...); got != want {
			t.Errorf("%v: losses %v, want %v", list, got, want)
		} else if !(got[0] > got[1] && got[1] > got[2] && got[2] > 0) {
			t.Errorf("%v: losses %v", list, got)
		}
		if (d.records == 0) != (len(list) > 0) {
			t.Errorf("%v: %d recordings", list, d.records)
		}
	}
}

// recording is a device that can record work.
type recording struct {
	device.Device
	records int
}

type again struct{ f func() }

func (r *recording) Record(f func()) (device.Replay, error) { r.records++; return again{f}, nil }
func (a again) Launch()                                     { a.f() }
func (again) Free() error                                   { return nil }
