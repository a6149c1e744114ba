package train

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/device/cpu"
)

// Going on elsewhere: refused where bits would differ, unless it was asked for; allowed before the first step, after the
// last, and for a state that does not say. What computes is noted once, with its first step.
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
		{nil, 0, false, false, 1}, {nil, 5, false, false, 1}, {[]Computed{same}, 5, false, false, 1}, {[]Computed{other}, 5, false, true, 2}, {[]Computed{older}, 5, false, true, 2},
		{[]Computed{other}, 5, true, false, 2}, {[]Computed{other, same}, 5, false, false, 2}, {[]Computed{same, other}, 5, false, true, 3}, {[]Computed{other}, 0, false, false, 1},
		{[]Computed{other}, 9, false, false, 1}, {[]Computed{other}, 10, false, false, 1}, {[]Computed{other}, 8, false, true, 2},
	} {
		var said []string
		r := resumer{&run{recipe: nano(t, "diff", "train.steps=9"), opt: &Options{Device: d, Inexact: x.inexact, Say: func(f string, a ...any) { said = append(said, fmt.Sprintf(f, a...)) }}}}
		r.state = State{Step: x.step, Computed: x.was}
		err := r.elsewhere(&r.state)
		if (err != nil) != x.refused || err != nil && (!errors.Is(err, ErrElsewhere) || !strings.Contains(err.Error(), "--inexact")) {
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
