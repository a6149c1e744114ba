package infer

import (
	"errors"
	"testing"

	"antiphase/device/ref"
	"antiphase/tensor"
)

// counting counts a device's work; its Sync number fails (from 1) reports an error.
type counting struct {
	allocating
	syncs, fails int
	zeroed       int // bytes
}

var errLost = errors.New("the device is lost")

func (d *counting) Sync() error {
	if d.syncs++; d.syncs == d.fails {
		return errLost
	}
	return d.Device.Sync()
}

func (d *counting) Zero(x tensor.Tensor) {
	d.zeroed += x.Rows * x.Cols * x.Type.Size()
	d.Device.Zero(x)
}

// Commit touches every page and computes the largest step twice, in caches of any size, and what it did is not counted.
func TestCommitTakesTwoSteps(t *testing.T) {
	for _, c := range []struct {
		opt   Options
		steps int
	}{
		{Options{Slots: 2, PrefillChunk: 32}, 1}, {Options{Slots: 1, PrefillChunk: 100}, 1},
		{Options{Slots: 4, PrefillChunk: 1}, 1},
		{Options{Slots: 1, PageSize: 4, CacheTokens: 20, PrefillChunk: 100}, 1}, // a prompt of 19 and its token fill it
		{Options{Slots: 1, PageSize: 1, CacheTokens: 2, PrefillChunk: 100}, 1},
	} {
		d := &counting{allocating: allocating{Device: ref.New()}}
		m := tiny(t, d, "diff")
		c.opt.Commit = true
		d.syncs, d.zeroed = 0, 0
		e := engine(t, m, nil, c.opt)
		if want := e.store.pool.tokens() * m.CacheBytes(); d.syncs != 1+2*c.steps || d.zeroed < want {
			t.Errorf("%+v: the device was waited for %d times, and %d of %d bytes were touched", c.opt, d.syncs,
				d.zeroed, want)
		}
		if s := e.Stats(); s.Steps+s.Rows+s.Hits+s.Preempted != 0 {
			t.Errorf("%+v: %+v", c.opt, s)
		}
		drained(t, e)
	}
}

// Whichever wait for the device fails, New says so and leaves no memory but the model's own.
func TestCommitFails(t *testing.T) {
	d := &counting{allocating: allocating{Device: ref.New()}}
	m := tiny(t, d, "diff")
	opt := Options{Slots: 2, Commit: true}
	held := 0
	for _, fails := range []int{0, 1, 2, 3} {
		d.syncs, d.fails = 0, fails
		e, err := New(m, nil, opt)
		if fails == 0 {
			e.Close()
			held = d.held
		}
		if (fails > 0) != errors.Is(err, errLost) || (err == nil) != (e != nil) || d.held != held {
			t.Errorf("wait %d fails: %v, %d pieces of memory are held, want %d", fails, err, d.held, held)
		}
	}
}
