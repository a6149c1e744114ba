package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"antiphase/checkpoint"
	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/model"
	"antiphase/tensor"
	"antiphase/tokenizer"
)

// weightsOf are a model's weights as it computes with them.
func weightsOf(t *testing.T, m *model.Model) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := m.Save(&b, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Finish sees the model that the last checkpoint gives, to the bit, once the run is trained, and again in a call that
// has nothing to train.
func TestFinish(t *testing.T) {
	for name, opt := range map[string]cpu.Options{"fp32": {Threads: 2}, "bf16": {Threads: 2, Precision: cpu.BF16}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d := cpu.New(opt)
			defer d.Close()
			var seen [][]byte
			o := Options{Dir: dir, Device: d, beside: true}
			o.Finish = func(_ context.Context, m *model.Model, tok *tokenizer.Tokenizer) error {
				seen = append(seen, weightsOf(t, m))
				return nil
			}
			r := nano(t, "diff", "train.steps=12")
			mustRun(t, r, o)
			mustRun(t, r, o)
			s, err := Open(dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			m, err := s.Model(d)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Free()
			want := weightsOf(t, m)
			if s.State.Step != 12 || len(seen) != 2 || !bytes.Equal(seen[0], want) || !bytes.Equal(seen[1], want) {
				t.Errorf("finished %d times; the checkpoint of step %d has other weights", len(seen), s.State.Step)
			}
		})
	}
}

// A model that nobody keeps is not written, unless what follows training fails or is interrupted: then the next call
// finds it trained.
func TestFinishDiscards(t *testing.T) {
	r := nano(t, "diff", "train.steps=12", "train.save_every=5")
	failure := errors.New("no verdict")
	for _, fails := range []bool{false, true} {
		dir := t.TempDir()
		o := options(t, dir)
		steps := 0
		o.Discard, o.Report = true, func(Row) { steps++ }
		o.Finish = func(context.Context, *model.Model, *tokenizer.Tokenizer) error {
			if fails {
				return failure
			}
			return nil
		}
		if _, err := Run(context.Background(), r, o); errors.Is(err, failure) != fails {
			t.Fatalf("fails %v: %v", fails, err)
		}
		_, c := newest(t, dir, checkpoint.Options{ReadOnly: true})
		if want := map[bool]int64{false: 10, true: 12}[fails]; c.Step != want {
			t.Errorf("fails %v: the newest checkpoint is of step %d, want %d", fails, c.Step, want)
		}
		if fails {
			fails, steps = false, 0
			if mustRun(t, r, o); steps != 0 {
				t.Errorf("%d steps were taken again", steps)
			}
		}
	}
}

// Losing a run of minutes costs more than its last checkpoint: that is written although nobody keeps it.
func TestFinishKeepsLongRuns(t *testing.T) {
	for after, kept := range map[time.Duration]bool{time.Nanosecond: true, time.Hour: false} {
		dir := t.TempDir()
		o := options(t, dir)
		o.Discard, o.SaveAfter = true, after
		o.Finish = func(context.Context, *model.Model, *tokenizer.Tokenizer) error { return nil }
		mustRun(t, nano(t, "diff", "train.steps=1", "train.save_every=0"), o)
		if found, _ := filepath.Glob(filepath.Join(dir, "checkpoints", "*", "state.json")); (len(found) == 1) != kept {
			t.Errorf("after %s: %q", after, found)
		}
	}
}

// The last step is written once: by the call that takes it, whatever follows, and not by one that finds it written.
func TestLastStepIsWrittenOnce(t *testing.T) {
	failure := errors.New("no verdict")
	for _, x := range []struct {
		steps                  int
		finish, discard, fails bool
		after                  time.Duration
		want                   []int
	}{
		{1, false, false, false, 0, []int{1}}, {1, true, false, false, 0, []int{1}},
		{1, true, false, true, 0, []int{1}}, {1, true, true, false, 0, nil},
		{1, true, true, true, 0, []int{1}}, {1, true, true, false, time.Nanosecond, []int{1}},
		{1, true, true, true, time.Nanosecond, []int{1}},
		{0, false, false, false, 0, []int{0}}, {0, true, false, true, 0, []int{0}}, // the weights to begin with
	} {
		var saved []int
		o := options(t, t.TempDir())
		o.fs, o.Discard, o.SaveAfter = committing(&saved), x.discard, x.after
		if x.finish {
			o.Finish = func(context.Context, *model.Model, *tokenizer.Tokenizer) error {
				if x.fails {
					return failure
				}
				return nil
			}
		}
		for call := range 2 {
			if call > 0 {
				x.want = nil
			}
			saved = nil
			_, err := Run(t.Context(), nano(t, "diff", fmt.Sprint("train.steps=", x.steps), "train.save_every=0",
				"train.eval_batches=0"), o)
			if errors.Is(err, failure) != x.fails || !slices.Equal(saved, x.want) {
				t.Errorf("%+v, call %d: wrote %v, want %v; %v", x, call+1, saved, x.want, err)
			}
		}
	}
}

// usedUp is a device that has no memory left once it is told so.
type usedUp struct {
	device.Device
	now *bool
}

func (d usedUp) Alloc(n int) *tensor.Buffer {
	if *d.now {
		panic(&tensor.NoMemory{Where: "device", Bytes: n, Free: 0})
	}
	return d.Device.Alloc(n)
}

// Where memory does not suffice for a second model beside the one in training, or for what Finish does with it, Run
// returns that as an error and the last step is saved.
func TestNoMemoryToFinish(t *testing.T) {
	for name, arm := range map[string]string{"copy": "step", "use": "finish"} {
		t.Run(name, func(t *testing.T) {
			o, now := options(t, t.TempDir()), false
			o.Device = usedUp{o.Device, &now}
			o.Discard, o.Report = true, func(r Row) { now = arm == "step" && r.Step == 12 }
			o.Finish = func(_ context.Context, m *model.Model, _ *tokenizer.Tokenizer) error {
				now = true
				o.Device.Alloc(1)
				return nil
			}
			_, err := Run(context.Background(), nano(t, "diff", "train.steps=12", "train.save_every=5"), o)
			if !errors.As(err, new(*tensor.NoMemory)) {
				t.Fatalf("%v, want no memory", err)
			}
			s, err := Open(o.Dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if s.State.Step != 12 {
				t.Errorf("the newest checkpoint is of step %d", s.State.Step)
			}
		})
	}
}
