package optim_test

import (
	"slices"
	"testing"
	"time"

	"antiphase/device/cpu"
	"antiphase/dist"
	"antiphase/dist/disttest"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/optim"
	"antiphase/recipe"
	"antiphase/tensor"
)

// stopwatch is a Comm that notes when the sums of a step ended: those that the backward pass could hide, and the last.
type stopwatch struct {
	dist.Comm
	calls, early       int // of this step; that come before the end of the backward pass
	earlyEnded, allEnd time.Time
}

func (s *stopwatch) AllReduce(x tensor.Tensor) error {
	err := s.Comm.AllReduce(x)
	s.allEnd = time.Now()
	if s.calls++; s.calls == s.early {
		s.earlyEnded = s.allEnd
	}
	return err
}

// How much of the time on a wire of 1 GB/s the backward pass hides, of what can be hidden: the sums of gradients
// that are complete before its end. What the last ones take is exposed in any case. %hidden counts the time until the
// last sum has ended, and so what ranks wait for each other and for a core; ms-early is how long the sums that could be
// hidden continued after the backward pass.
func BenchmarkOverlap(b *testing.B) {
	const bandwidth = 1e9
	r, err := recipe.Tiny("diff")
	if err != nil {
		b.Fatal(err)
	}
	r.Model.Layers, r.Model.Dim = 8, 768
	if r, err = r.Complete(); err != nil {
		b.Fatal(err)
	}
	wire := func(elements int) float64 { return float64(4*elements) / bandwidth } // a ring of two sends every byte once
	var early, late float64
	// of each rank's backward pass; of the last sum
	ends, summed, sooner := make([][2]time.Time, b.N+2), make([]time.Time, b.N+2), make([]time.Time, b.N+2)
	err = disttest.NewWorld(2, disttest.Options{Bandwidth: bandwidth}).Run(func(c dist.Comm) error {
		d := cpu.New(cpu.Options{Threads: 1})
		defer d.Close()
		m, err := model.New(d, r.Model, layer.Memory{Train: true})
		if err != nil {
			return err
		}
		defer m.Free()
		m.Init(1)
		w := &stopwatch{Comm: c}
		o := optim.NewParallel(d, m, r.Optim, optim.Team{Data: w, World: w}, false)
		defer o.Free()
		w.early = o.EarlyCalls()
		at := 0
		o.AtEnd(func() { ends[at][c.Rank()] = time.Now() })
		s := optim.NewStepper(m, o, 2)
		defer s.Free()
		batch := model.Batch{B: 4, T: 128, IDs: make([]int32, 512), Targets: make([]int32, 512)}
		for ; at < b.N+2; at++ {
			w.calls = 0
			if _, _, err := s.Step(&batch, at+1, 1e-4); err != nil {
				return err
			}
			if c.Rank() == 0 {
				summed[at], sooner[at] = w.allEnd, w.earlyEnded
			}
		}
		if c.Rank() == 0 {
			all := 0
			for _, g := range m.Params.Groups {
				all += g.G.Cols
			}
			early, late = wire(o.Early()), wire(all-o.Early())
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	reportOverlap(b, ends[2:], summed[2:], sooner[2:], early, late) // the first steps allocate
}

// reportOverlap reports what the steps waited for: ends are those of each rank's backward pass, summed those of the
// last sum, sooner those of the last early one; early and late are seconds on the wire.
func reportOverlap(b *testing.B, ends [][2]time.Time, summed, sooner []time.Time, early, late float64) {
	var exposed, left []float64 // of every step
	for i, end := range ends {
		last := end[0] // the slower rank's
		if end[1].After(last) {
			last = end[1]
		}
		exposed = append(exposed, summed[i].Sub(last).Seconds())
		left = append(left, max(0, sooner[i].Sub(last).Seconds()))
	}
	b.ReportMetric(1e3*early, "ms-hidable")
	b.ReportMetric(1e3*late, "ms-last")
	b.ReportMetric(1e3*median(exposed), "ms-exposed")
	b.ReportMetric(1e3*median(left), "ms-early")
	b.ReportMetric(100*(1-(median(exposed)-late)/early), "%hidden")
	b.ReportMetric(100*(1-(mean(exposed)-late)/early), "%hidden-mean")
}

func median(x []float64) float64 { slices.Sort(x); return x[len(x)/2] }

func mean(x []float64) (m float64) {
	for _, v := range x {
		m += v / float64(len(x))
	}
	return m
}
