package optim_test

import (
	"errors"
	"math"
	"sync"
	"testing"

	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/device/ref"
	"antiphase/dist"
	"antiphase/dist/disttest"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/model/modeltest"
	"antiphase/optim"
	"antiphase/tensor"
)

// parts collects, by name of a parameter and kind of value, what ranks store, and counts each element.
type parts struct {
	mu    sync.Mutex
	x     map[string][3][]float64
	count map[string][3][]int
}

func (p *parts) add(o *optim.AdamW) {
	r := o.NewReader()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range o.Slices() {
		n := s.Param.Rows * s.Param.Cols
		x, c := p.x[s.Param.Name], p.count[s.Param.Name]
		for _, which := range []int{optim.First, optim.Second, optim.Value} {
			if x[which] == nil {
				x[which], c[which] = make([]float64, n), make([]int, n)
			}
			got := make([]float32, s.To-s.From)
			r.Read(&s, which, got)
			for i, v := range got {
				x[which][s.From+i] = float64(v)
				c[which][s.From+i]++
			}
		}
		p.x[s.Param.Name], p.count[s.Param.Name] = x, c
	}
}

func newParts() *parts { return &parts{x: map[string][3][]float64{}, count: map[string][3][]int{}} }

func rows(b, n int) *model.Batch {
	x := &model.Batch{B: b, T: n, IDs: make([]int32, b*n), Targets: make([]int32, b*n), Starts: make([]int32, b*n)}
	for i := range x.IDs {
		x.IDs[i], x.Targets[i] = int32(i*7%19), int32(i*5%19)
		if i%n >= 3 {
			x.Starts[i] = 3 // a second document
		}
	}
	x.Targets[1] = -1
	return x
}

// Every element is stored by exactly one rank, and after three steps with the values that one process has: weights,
// both moments, loss and norm; with whole and with sharded moments, in one bucket of gradients per group and in many.
func TestRanksAreOne(t *testing.T) {
	c := model.Config{Arch: "diff", Vocab: 19, Context: 16, Layers: 2, Dim: 12, Heads: 2, HeadDim: 4, FFN: 20}
	cfg := optim.Default()
	cfg.Clip = 0.5
	batch := rows(6, 8)
	run := func(s *optim.Stepper) ([][2]float64, error) { return train(s, batch, 3, 1e-2) }
	d := ref.New()
	m := modeltest.New(t, d, c, layer.Memory{Train: true}, 3)
	o := optim.New(d, m.Params, cfg)
	want, err := run(optim.NewStepper(m, o, 1))
	if err != nil {
		t.Fatal(err)
	}
	one := newParts()
	one.add(o)
	for _, x := range []struct{ size, smallest int }{{2, 1}, {3, 300}, {3, 1 << 18}} {
		size := x.size
		restore := optim.Buckets(x.smallest)
		for _, shard := range []bool{false, true} {
			all := newParts()
			err := disttest.NewWorld(size, disttest.Options{}).Run(func(r dist.Comm) error {
				d := ref.New()
				m := modeltest.New(t, d, c, optim.Memory(layer.Memory{Train: true}, r, shard), 3)
				o := optim.NewParallel(d, m, cfg, optim.Team{Data: r, World: r}, shard)
				s := optim.NewStepper(m, o, 1)
				got, err := run(s)
				for n, x := range got {
					for i := range x {
						within := 1e-6
						if n == 0 && i == 0 { // of the same weights, sent with all its digits
							within = 1e-12
						}
						if !(math.Abs(x[i]/want[n][i]-1) <= within) {
							t.Errorf("%d ranks, sharded %v: loss and norm of step %d %v, want %v", size, shard,
								n+1, x, want[n])
						}
					}
				}
				all.add(o)
				s.Free()
				o.Free()
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			compare(t, all, one, 2e-5)
		}
		restore()
	}
}

// train takes n steps on one batch and returns the loss and the norm of each.
func train(s *optim.Stepper, batch *model.Batch, n int, lr float64) (out [][2]float64, err error) {
	for step := range n {
		loss, norm, err := s.Step(batch, step+1, lr)
		if err != nil {
			return nil, err
		}
		out = append(out, [2]float64{loss, norm})
	}
	return out, nil
}

func compare(t *testing.T, got, want *parts, tolerance float64) {
	t.Helper()
	for name, x := range want.x {
		for which := range x {
			for i, w := range x[which] {
				if n := got.count[name]; n[which] == nil || n[which][i] != 1 {
					t.Fatalf("element %d of %s, kind %d, is not stored exactly once", i, name, which)
				}
				if g := got.x[name][which][i]; !(math.Abs(g-w) <= tolerance*(1e-3+math.Abs(w))) {
					t.Fatalf("element %d of %s, kind %d: %g, want %g", i, name, which, g, w)
				}
			}
		}
	}
}

// What SetMoment and the parameter table were given, ranks store again to the bit: in whole and in split moments, with
// masters in the optimiser (bf16 weights), in two halves (bf16 device) and without.
func TestRanksKeepWhatTheyAreGiven(t *testing.T) {
	defer optim.Buckets(1)()
	c := model.Config{Arch: "diff", Vocab: 19, Context: 16, Layers: 1, Dim: 12, Heads: 2, HeadDim: 4, FFN: 20}
	for name, open := range map[string]func() device.Device{
		"ref":  func() device.Device { return ref.New() },
		"bf16": func() device.Device { return cpu.New(cpu.Options{Threads: 1, Precision: cpu.BF16}) },
	} {
		for _, shard := range []bool{false, true} {
			for _, master := range []bool{false, true} {
				all, want := newParts(), newParts()
				err := disttest.NewWorld(2, disttest.Options{}).Run(func(r dist.Comm) error {
					d := open()
					m := modeltest.New(t, d, c, optim.Memory(layer.Memory{Train: true, Master: master}, r, shard), 1)
					o := optim.NewParallel(d, m, optim.Default(), optim.Team{Data: r, World: r}, shard)
					for k, p := range m.Params.List {
						var x [3][]float64
						for which := range x {
							flat := make([]float32, p.Rows*p.Cols)
							for i := range flat {
								flat[i] = float32(which+1) + float32(i+k)/1024
								x[which] = append(x[which], float64(flat[i]))
							}
							if which == optim.Value {
								m.Params.Set(d, p, flat)
							} else {
								o.SetMoment(p, which, flat)
							}
						}
						if r.Rank() == 0 {
							want.x[p.Name] = x
						}
					}
					all.add(o)
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				t.Run(name, func(t *testing.T) { compare(t, all, want, 0) })
			}
		}
	}
}

// counting is a device that counts the buffers it has given.
type counting struct {
	device.Device
	live int
}

func (d *counting) Alloc(n int) *tensor.Buffer { d.live++; return d.Device.Alloc(n) }

func (d *counting) Free(b *tensor.Buffer) {
	if b != nil {
		d.live--
	}
	d.Device.Free(b)
}

// Moments take two Stat elements for each of a group, divided among ranks that shard them; Free returns what was taken,
// by ranks and by a single process.
func TestMomentBytes(t *testing.T) {
	c := model.Config{Arch: "diff", Vocab: 19, Context: 16, Layers: 1, Dim: 12, Heads: 2, HeadDim: 4, FFN: 20}
	err := disttest.NewWorld(2, disttest.Options{}).Run(func(r dist.Comm) error {
		for _, shard := range []bool{false, true} {
			d := &counting{Device: ref.New()}
			mem := optim.Memory(layer.Memory{Train: true, Master: true}, r, shard)
			if want := (layer.Memory{Train: true, Master: true}); !shard && mem != want {
				t.Errorf("memory of whole moments %+v", mem)
			}
			m := modeltest.New(t, d, c, mem, 1)
			n := 0
			o := optim.NewParallel(d, m, optim.Default(), optim.Team{Data: r, World: r}, shard)
			s := optim.NewStepper(m, o, 1)
			if _, _, err := s.Step(rows(2, 8), 1, 0); err != nil {
				return err
			}
			for _, g := range m.Params.Groups {
				if n += 2 * 8 * g.G.Cols; shard && g.G.Cols%256 != 0 {
					t.Errorf("a group of %d elements for two ranks", g.G.Cols)
				}
			}
			if shard {
				n /= 2
			}
			if o.MomentBytes() != n {
				t.Errorf("sharded %v: %d bytes of moments, want %d", shard, o.MomentBytes(), n)
			}
			s.Free()
			o.Free()
			m.Free()
			if d.live != 0 {
				t.Errorf("sharded %v: %d buffers are left", shard, d.live)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	d := &counting{Device: ref.New()}
	m := modeltest.New(t, d, c, layer.Memory{Train: true}, 1)
	optim.New(d, m.Params, optim.Default()).Free()
	if m.Free(); d.live != 0 {
		t.Errorf("a single process: %d buffers are left", d.live)
	}
}

// One rank's wish to stop or to save is all ranks' after the step; to save only for that step. Without ranks there is
// nobody to agree with.
func TestVotes(t *testing.T) {
	c := model.Config{Arch: "diff", Vocab: 19, Context: 16, Layers: 1, Dim: 12, Heads: 2, HeadDim: 4, FFN: 20}
	err := disttest.NewWorld(3, disttest.Options{}).Run(func(r dist.Comm) error {
		d := ref.New()
		m := modeltest.New(t, d, c, layer.Memory{Train: true}, 1)
		s := optim.NewStepper(m, optim.NewParallel(d, m, optim.Default(), optim.Team{Data: r, World: r}, false), 1)
		for n, x := range []struct{ stop, save, stops, saves bool }{
			{false, false, false, false}, {false, true, false, true}, {false, false, false, false},
			{true, false, true, false},
		} {
			if s.Vote(false, false); r.Rank() == 1 {
				s.Vote(x.stop, x.save)
			}
			if _, _, err := s.Step(rows(3, 8), n+1, 0); err != nil {
				return err
			}
			if s.Stopping() != x.stops || s.Saving() != x.saves {
				t.Errorf("rank %d, step %d: stops %v, saves %v", r.Rank(), n+1, s.Stopping(), s.Saving())
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	d := ref.New()
	m := modeltest.New(t, d, c, layer.Memory{Train: true}, 1)
	s := optim.NewStepper(m, optim.New(d, m.Params, optim.Default()), 1)
	if s.Vote(true, true); s.Stopping() || s.Saving() {
		t.Error("a single process agreed with others")
	}
	if _, _, err := s.Step(&model.Batch{B: 1, T: 2, IDs: []int32{1, 99}, Targets: []int32{1, 1}}, 1, 0); err == nil {
		t.Error("an id outside the vocabulary passes")
	}
}

// A collective that fails ends the step with its error.
func TestLostRank(t *testing.T) {
	c := model.Config{Arch: "diff", Vocab: 19, Context: 16, Layers: 1, Dim: 12, Heads: 2, HeadDim: 4, FFN: 20}
	lost := errors.New("lost")
	for _, shard := range []bool{false, true} {
		w := disttest.NewWorld(2, disttest.Options{})
		_ = w.Run(func(r dist.Comm) error {
			if r.Rank() == 1 {
				r.Abort(lost)
				return nil
			}
			d := ref.New()
			m := modeltest.New(t, d, c, optim.Memory(layer.Memory{Train: true}, r, shard), 1)
			s := optim.NewStepper(m, optim.NewParallel(d, m, optim.Default(), optim.Team{Data: r, World: r}, shard), 1)
			if _, _, err := s.Step(rows(2, 8), 1, 0); !errors.Is(err, lost) {
				t.Errorf("sharded %v: %v", shard, err)
			}
			return nil
		})
	}
}
