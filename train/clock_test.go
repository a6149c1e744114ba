package train

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/metrics"
	"antiphase/model"
	"antiphase/tensor"
	"antiphase/tokenizer"
)

// slow is a device on which every forward pass takes ten milliseconds of a clock that a test owns, and a copy of many
// numbers to the host a second.
type slow struct {
	*cpu.Device
	time *time.Time
}

func (d slow) Embed(out, table, ids tensor.Tensor) {
	*d.time = d.time.Add(10 * time.Millisecond)
	d.Device.Embed(out, table, ids)
}

func (d slow) Read(dst []byte, src tensor.Tensor) {
	if src.Len() > 1000 {
		*d.time = d.time.Add(time.Second)
	}
	d.Device.Read(dst, src)
}

var _ device.Device = slow{}

// Steps that are followed by evaluation and saving have the same speed as their neighbours; what these took is in
// fields of its own, probes included, and is not in the estimate of the time left. Saving is the copy to the host:
// files are written while training continues.
func TestStepTimesAreOfTheStep(t *testing.T) {
	r := nano(t, "diff", "train.steps=40", "train.eval_every=10", "train.save_every=10", "data.held_out=0.2")
	opt := options(t, t.TempDir())
	opt.Say = func(string, ...any) {}
	at := time.Unix(1.7e9, 0)
	opt.Device = slow{opt.Device.(*cpu.Device), &at}
	opt.ProbeEvery, opt.Probe = 15, func(context.Context, int, *model.Model, *tokenizer.Tokenizer) error {
		at = at.Add(7 * time.Second)
		return nil
	}
	run, err := newRun(context.Background(), r, &opt)
	if err != nil {
		t.Fatal(err)
	}
	defer run.close()
	run.clock.now = func() time.Time { return at }
	if _, err := run.loop(context.Background()); err != nil {
		t.Fatal(err)
	}
	rows, err := metrics.Read(filepath.Join(opt.Dir, metrics.FileName), nil)
	if err != nil || len(rows) != 40 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, row := range rows {
		if row.StepMS != 10 || row.TokS != 3200 || !(math.Abs(row.ETA-0.01*float64(40-row.Step)) <= 1e-9) {
			t.Errorf("step %d: %g ms, %g tokens/s, %g s left", row.Step, row.StepMS, row.TokS, row.ETA)
		}
		want := math.NaN()
		switch {
		case row.Step%10 == 0:
			want = 0.08
		case row.Step == 16 || row.Step == 31: // the probe of the step before
			want = 7
		}
		if math.IsNaN(row.EvalS) != math.IsNaN(want) || !math.IsNaN(want) && row.EvalS != want {
			t.Errorf("step %d: evaluation took %g s, want %g", row.Step, row.EvalS, want)
		}
		if saved := row.Step%10 == 1 && row.Step > 1; saved != (row.SaveS >= 3) || saved == math.IsNaN(row.SaveS) {
			t.Errorf("step %d: saving took %g s", row.Step, row.SaveS)
		}
	}
	if last := rows[39]; last.Wall < 9 || last.Time != 1.7e9+last.Wall {
		t.Errorf("wall %g s, time %f", last.Wall, last.Time)
	}
}

// A peak is measured once and kept: a second call gives the same number, another precision its own, a damaged file is
// replaced.
func TestPeakIsKept(t *testing.T) {
	home := t.TempDir()
	t.Setenv(homeEnv, home)
	d := cpu.New(cpu.Options{Threads: 1, Precision: cpu.FP32})
	defer d.Close()
	first := MachinePeak(d)
	for range 3 {
		if again := MachinePeak(d); again != first || first <= 0 {
			t.Fatalf("%g, then %g", first, again)
		}
	}
	e := cpu.New(cpu.Options{Threads: 2, Precision: cpu.FP32})
	defer e.Close()
	MachinePeak(e)
	if all := readPeaks(); len(all) != 2 || all[peakKey(d)] != first {
		t.Errorf("kept %v", all)
	}
	if err := os.WriteFile(filepath.Join(home, "peak.json"), []byte(`{"a": 1`), 0o644); err != nil {
		t.Fatal(err)
	}
	if x := MachinePeak(d); x <= 0 || readPeaks()[peakKey(d)] != x {
		t.Errorf("after damage: %g, kept %v", x, readPeaks())
	}
}

// SaveAfter renews a checkpoint by its age, and less often where saving takes long: here 10 ms a step and seconds a
// save.
func TestSaveAfter(t *testing.T) {
	for _, c := range []struct {
		after time.Duration
		saves []int // steps whose row tells of a save before it
	}{{0, nil}, {100 * time.Millisecond, []int{11}}, {300 * time.Millisecond, []int{31}}} {
		opt := options(t, t.TempDir())
		opt.SaveAfter, opt.Say = c.after, func(string, ...any) {}
		at := time.Unix(1.7e9, 0)
		opt.Device = slow{opt.Device.(*cpu.Device), &at}
		run, err := newRun(context.Background(), nano(t, "diff", "train.steps=40", "train.save_every=0"), &opt)
		if err != nil {
			t.Fatal(err)
		}
		run.clock.now = func() time.Time { return at }
		_, err = run.loop(context.Background())
		run.close()
		rows, failed := metrics.Read(filepath.Join(opt.Dir, metrics.FileName), nil)
		if err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		var saves []int
		for _, row := range rows {
			if !math.IsNaN(row.SaveS) {
				saves = append(saves, row.Step)
			}
		}
		if !slices.Equal(saves, c.saves) {
			t.Errorf("after %s: saved before steps %v, want %v", c.after, saves, c.saves)
		}
	}
}
