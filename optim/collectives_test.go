package optim_test

import (
	"errors"
	"fmt"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/dist"
	"antiphase/dist/disttest"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/model/modeltest"
	"antiphase/optim"
	"antiphase/tensor"
)

// failing is a Comm whose calls are made and fail, each with an error of its own, from the first one on that is to
// fail.
type failing struct {
	dist.Comm
	calls, first int
	errs         []error // of the calls that failed
}

func (f *failing) after(err error) error {
	if f.calls++; f.calls > f.first {
		f.errs = append(f.errs, fmt.Errorf("call %d", f.calls))
		return f.errs[len(f.errs)-1]
	}
	return err
}

func (f *failing) AllReduce(x tensor.Tensor) error { return f.after(f.Comm.AllReduce(x)) }
func (f *failing) ReduceScatter(out, x tensor.Tensor) error {
	return f.after(f.Comm.ReduceScatter(out, x))
}
func (f *failing) AllGather(out, x tensor.Tensor) error { return f.after(f.Comm.AllGather(out, x)) }

// Whichever collective of a step fails, the step fails with the first error; the next step begins without it.
func TestEveryCollectiveMayFail(t *testing.T) {
	c := model.Config{Arch: "diff", Vocab: 19, Context: 16, Layers: 1, Dim: 12, Heads: 2, HeadDim: 4, FFN: 20}
	for shard, least := range map[bool]int{false: 2, true: 4} {
		for first, more := 0, true; more; first++ {
			err := disttest.NewWorld(2, disttest.Options{}).Run(func(r dist.Comm) error {
				f := &failing{Comm: r, first: 1 << 30}
				if r.Rank() == 0 {
					f.first = first
				}
				d := ref.New()
				m := modeltest.New(t, d, c, optim.Memory(layer.Memory{Train: true}, f, shard), 3)
				o := optim.NewParallel(d, m, optim.Default(), optim.Team{Data: f, World: f}, shard)
				s := optim.NewStepper(m, o, 1)
				_, _, err := s.Step(rows(2, 8), 1, 1e-2)
				switch {
				case len(f.errs) == 0 && err != nil:
					t.Errorf("sharded %v, rank %d: %v", shard, r.Rank(), err)
				case len(f.errs) > 0 && !errors.Is(err, f.errs[0]):
					t.Errorf("sharded %v, calls after %d fail: %v", shard, first, err)
				}
				if r.Rank() == 0 {
					if more = len(f.errs) > 0; !more && f.calls < least {
						t.Errorf("sharded %v: %d calls in a step", shard, f.calls)
					}
				}
				f.first = 1 << 30
				if _, _, err := s.Step(rows(2, 8), 2, 1e-2); err != nil {
					t.Errorf("sharded %v, the next step: %v", shard, err)
				}
				s.Free()
				o.Free()
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// told is a device that keeps something made from weights, and is told where other ranks' updates were written.
type told struct {
	device.Device
	cols map[*tensor.Buffer]int
}

func (d *told) Wrote(x tensor.Tensor) { d.cols[x.Buf] += x.Cols }

// Weights that are gathered from other ranks were not written by an op of this device: it is told of all of them, once
// in every step. Whole moments leave nothing to gather.
func TestDeviceLearnsOfGatheredWeights(t *testing.T) {
	c := model.Config{Arch: "diff", Vocab: 19, Context: 16, Layers: 2, Dim: 12, Heads: 2, HeadDim: 4, FFN: 20}
	for _, shard := range []bool{false, true} {
		err := disttest.NewWorld(2, disttest.Options{}).Run(func(r dist.Comm) error {
			d := &told{Device: ref.New(), cols: map[*tensor.Buffer]int{}}
			m := modeltest.New(t, d, c, optim.Memory(layer.Memory{Train: true}, r, shard), 3)
			o := optim.NewParallel(d, m, optim.Default(), optim.Team{Data: r, World: r}, shard)
			s := optim.NewStepper(m, o, 1)
			for step := 1; step <= 2; step++ {
				clear(d.cols)
				if _, _, err := s.Step(rows(2, 8), step, 1e-2); err != nil {
					return err
				}
				for i, g := range m.Params.Groups {
					want := 0
					if shard {
						want = g.W.Cols
					}
					if got := d.cols[g.W.Buf]; got != want {
						t.Errorf("sharded %v, step %d, group %d: told of %d weights, want %d", shard,
							step, i, got, want)
					}
				}
			}
			s.Free()
			o.Free()
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
