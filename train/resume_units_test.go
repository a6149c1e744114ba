package train

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"antiphase/checkpoint"
	"antiphase/device"
	"antiphase/device/cpu"
)

// Going on elsewhere: refused where bits would differ, unless it was asked for; allowed before the first step, after
// the last, and for a state that does not say. What computes is noted once, with its first step.
func TestElsewhere(t *testing.T) {
	d := cpu.New(cpu.Options{Threads: 1, Precision: cpu.FP32})
	defer d.Close()
	same := Computed{Identity: device.IdentityOf(d), Numerics: numerics}
	other, older := same, same
	other.Identity.Device = "another"
	older.Numerics--
	for _, x := range []struct {
		was     []Computed
		step    int
		inexact bool
		refused bool
		notes   int // entries afterwards
	}{
		{nil, 0, false, false, 1}, {nil, 5, false, false, 1}, {[]Computed{same}, 5, false, false, 1},
		{[]Computed{other}, 5, false, true, 2}, {[]Computed{older}, 5, false, true, 2},
		{[]Computed{other}, 5, true, false, 2}, {[]Computed{other, same}, 5, false, false, 2},
		{[]Computed{same, other}, 5, false, true, 3}, {[]Computed{other}, 0, false, false, 1},
		{[]Computed{other}, 9, false, false, 1}, {[]Computed{other}, 10, false, false, 1},
		{[]Computed{other}, 8, false, true, 2},
	} {
		var said []string
		r := resumer{&run{recipe: nano(t, "diff", "train.steps=9"),
			opt: &Options{Device: d, Inexact: x.inexact,
				Say: func(f string, a ...any) { said = append(said, fmt.Sprintf(f, a...)) }}}}
		r.state = State{Step: x.step, Computed: x.was}
		err := r.elsewhere(&r.state)
		if (err != nil) != x.refused || err != nil &&
			(!errors.Is(err, ErrElsewhere) || !strings.Contains(err.Error(), "--inexact")) {
			t.Errorf("%+v: %v", x, err)
		}
		if changed := len(said) > 0; changed != x.inexact {
			t.Errorf("%+v: said %q", x, said)
		}
		r.noteComputed()
		list := r.state.Computed
		if len(list) != x.notes {
			t.Errorf("%+v: %d entries, want %d", x, len(list), x.notes)
		}
		if last := list[len(list)-1]; x.step < 9 && !last.same(same) || len(list) > len(x.was) && last.From != x.step {
			t.Errorf("%+v: the last entry is %+v", x, last)
		}
	}
	none := resumer{&run{recipe: nano(t, "diff", "train.steps=0"), opt: &Options{Device: d}}}
	if none.noteComputed(); len(none.state.Computed) != 1 { // it says what its weights were made for
		t.Errorf("a run of no steps has %d entries", len(none.state.Computed))
	}
	if older.String() == same.String() || !strings.Contains(older.String(), fmt.Sprint("numerics ", numerics-1)) {
		t.Errorf("%v and %v", older, same)
	}
}

// A mean over micro-batches is one over their tokens.
func TestMeanOfBatches(t *testing.T) {
	for _, x := range []struct {
		sums []float64
		want float64
	}{{[]float64{6, 2, 6, 4}, 2}, {[]float64{0, 0}, 0}, {nil, 0}, {[]float64{5, 1, 0, 0, 1, 2}, 2}} {
		if got := mean(x.sums); got != x.want {
			t.Errorf("%v: %g, want %g", x.sums, got, x.want)
		}
	}
}

// A peak that was measured is kept by machine and device, the highest of several; a file that is damaged or missing is
// none.
func TestPeaksAreKept(t *testing.T) {
	t.Setenv(homeEnv, t.TempDir())
	if all := readPeaks(); len(all) != 0 {
		t.Errorf("%v", all)
	}
	writePeaks(map[string]float64{"a": 1, "b": 2})
	if all := readPeaks(); all["a"] != 1 || all["b"] != 2 {
		t.Errorf("%v", all)
	}
}

// A checkpoint by age is due when the last is that old and fifty times as old as saving takes; never without an age.
func TestSaveIsDue(t *testing.T) {
	at := time.Unix(1.7e9, 0)
	for _, x := range []struct {
		since, after, took time.Duration
		want               bool
	}{
		{time.Hour, 0, 0, false}, {time.Minute, time.Minute, 0, true}, {time.Minute - 1, time.Minute, 0, false},
		{time.Minute, time.Second, 2 * time.Second, false},
		{100 * time.Second, time.Second, 2 * time.Second, true},
		{100*time.Second - 1, time.Second, 2 * time.Second, false},
	} {
		v := saver{last: at.Add(-x.since), took: x.took}
		if got := v.due(at, x.after); got != x.want {
			t.Errorf("%+v: %v", x, got)
		}
	}
}

// gpu is a device that does not compute on the host, by its name.
type gpu struct{ device.Device }

func (gpu) Identity() device.Identity { return device.Identity{Device: "gpu", Precision: "fp32"} }

// A checkpoint is written beside training where the device leaves the host free, and waited for elsewhere and where it
// is the last.
func TestSavesBeside(t *testing.T) {
	for _, x := range []struct{ gpu, beside, must, flies bool }{
		{false, false, false, false}, {false, true, false, true}, {true, false, false, true}, {true, true, false, true},
		{true, true, true, false}, {false, false, true, false},
	} {
		opt := options(t, t.TempDir())
		opt.beside, opt.Say = x.beside, func(string, ...any) {}
		if x.gpu {
			opt.Device = gpu{opt.Device}
		}
		run, err := newRun(t.Context(), nano(t, "diff", "train.steps=3"), &opt)
		if err != nil {
			t.Fatal(err)
		}
		run.clock.start(run.recipe)
		if err := errors.Join(run.step(), run.saver.save(x.must)); err != nil || (run.saver.done != nil) != x.flies {
			t.Errorf("%+v: in flight %v, %v", x, run.saver.done != nil, err)
		}
		if err := run.saver.finish(true); err != nil {
			t.Error(err)
		}
		run.close()
	}
}

// What becomes of the result of a save in flight: what is safe, or will be tried again, is said and forgotten; another
// error ends the run; one that is not done is left alone unless it is waited for.
func TestFinishedSaves(t *testing.T) {
	other := errors.New("other")
	for _, x := range []struct {
		err        error
		said, ends bool
	}{{nil, false, false}, {fmt.Errorf("x: %w", checkpoint.ErrCommitted), true, false},
		{fmt.Errorf("%w: full", errLater), true, false}, {other, false, true}} {
		for _, wait := range []bool{false, true} {
			said := 0
			v := saver{run: &run{opt: &Options{Say: func(string, ...any) { said++ }}}, done: make(chan error, 1)}
			if !wait {
				if err := v.finish(false); err != nil || v.done == nil {
					t.Errorf("a save in flight is finished: %v", err)
				}
			}
			v.done <- x.err
			err := v.finish(wait)
			if (err != nil) != x.ends || x.ends && !errors.Is(err, other) || (said > 0) != x.said || v.done != nil {
				t.Errorf("%v, waiting %v: %v, said %d", x.err, wait, err, said)
			}
			if err := v.finish(true); err != nil {
				t.Errorf("nothing is in flight: %v", err)
			}
		}
	}
}
