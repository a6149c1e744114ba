package optim

import (
	"errors"
	"runtime"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
)

// eager is an asynchronous device and ranks that note the order of calls.
type eager struct {
	deaf
	calls []string
	fails error
}

func (e *eager) Beside(f func() error) error {
	e.calls = append(e.calls, "beside")
	return f()
}

func (e *eager) Join() error {
	e.calls = append(e.calls, "join")
	return e.fails
}

func (e *eager) reduce(i int) error {
	e.calls = append(e.calls, "sum "+string(rune('0'+i)))
	return nil
}

// Sums on an asynchronous device run beside its stream until wait joins them, unless the caller wants them in order.
func TestBackgroundBesideStream(t *testing.T) {
	for _, x := range []struct {
		here bool
		want []string
	}{
		{false, []string{"beside", "sum 0", "beside", "sum 2", "join"}},
		{true, []string{"sum 0", "sum 2"}},
	} {
		e := &eager{deaf: deaf{Device: ref.New()}}
		b := newBackground(e, e, 3, e.reduce, x.here)
		b.start(0)
		b.start(2)
		if err := b.wait(); err != nil || !slices.Equal(e.calls, x.want) {
			t.Errorf("in order %v: %v, %v; want %v", x.here, e.calls, err, x.want)
		}
	}
	e := &eager{deaf: deaf{Device: ref.New()}, fails: errors.New("lost")}
	b := newBackground(e, e, 1, e.reduce, false)
	b.start(0)
	if err := b.wait(); !errors.Is(err, e.fails) {
		t.Errorf("a failed join: %v", err)
	}
	if err := b.wait(); !errors.Is(err, e.fails) {
		t.Errorf("the next step's join: %v", err)
	}
	var _ device.Recorder = e
}

// Collectives that run beside the device's threads have a place of their own to run, until they end.
func TestBackgroundHasItsOwnPlace(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	b := newBackground(ref.New(), nil, 1, func(int) error { return nil }, false)
	if n := runtime.GOMAXPROCS(0); n != before+1 {
		t.Errorf("%d goroutines at once, %d before", n, before)
	}
	b.start(0)
	if err := b.wait(); err != nil {
		t.Error(err)
	}
	b.close()
	if n := runtime.GOMAXPROCS(0); n != before {
		t.Errorf("%d goroutines at once afterwards, %d before", n, before)
	}
}

// Of several calls the first error is kept, whichever of them fails, in every way of running them; the next step begins
// without it.
func TestBackgroundKeepsTheFirstError(t *testing.T) {
	for name, open := range map[string]func(do func(int) error) *background{
		"beside": func(do func(int) error) *background {
			e := &eager{deaf: deaf{Device: ref.New()}}
			return newBackground(e, e, 4, do, false)
		},
		"in order": func(do func(int) error) *background { return newBackground(ref.New(), nil, 4, do, true) },
		"goroutine": func(do func(int) error) *background {
			return newBackground(ref.New(), nil, 4, do, false)
		},
	} {
		for first := range 4 {
			fails := map[int]error{}
			b := open(func(i int) error { return fails[i] })
			for i := first; i < 4; i += 2 { // with a success after each
				fails[i] = errors.New(name)
			}
			for i := range 4 {
				b.start(i)
			}
			if err := b.wait(); err != fails[first] {
				t.Errorf("%s: call %d failed, and the result was %v", name, first, err)
			}
			clear(fails)
			b.start(0)
			if err := b.wait(); err != nil {
				t.Errorf("%s: the next step has the error of the last: %v", name, err)
			}
			b.close()
		}
	}
}
