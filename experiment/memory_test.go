package experiment

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// full is a device that has no memory left once it is told so; spare is what it reports.
type full struct {
	device.Device
	now   *bool
	spare int64
}

func (d full) Spare() int64 { return d.spare }

func (d full) Alloc(n int) *tensor.Buffer {
	if *d.now {
		panic(&tensor.NoMemory{Where: "device", Bytes: n, Free: 0})
	}
	return d.Device.Alloc(n)
}

// A run that does not fit the device fails with what would fit, and nothing is said about judging it.
func TestNoMemoryToTrain(t *testing.T) {
	now := false
	opt := options(t.TempDir(), full{oneThread(t), &now, 1 << 10})
	opt.Say = func(format string, _ ...any) {
		if strings.Contains(format, "evaluate the model") {
			t.Errorf("said %q", format)
		}
	}
	_, err := Work(context.Background(), nanoSpec(12), opt)
	if !errors.As(err, new(*tensor.NoMemory)) || !strings.Contains(err.Error(), "no micro-batch fits") {
		t.Errorf("%v, want what would fit", err)
	}
}

// Where memory suffices for training but not for a second model beside it, models are read back once training has
// freed its own, and give the same rows.
func TestNoMemoryToJudge(t *testing.T) {
	s := nanoSpec(12)
	s.LRs, s.Probes, s.Every, s.Set = s.LRs[:1], nil, 0, nil
	want, err := Work(context.Background(), s, options(t.TempDir(), oneThread(t)))
	if err != nil {
		t.Fatal(err)
	}
	now, read := false, 0
	opt := options(t.TempDir(), full{oneThread(t), &now, 1 << 40})
	opt.Progress = func(p Progress) { now = p.Row != nil && p.Row.Step == 12 }
	opt.Say = func(format string, _ ...any) {
		if strings.Contains(format, "it is read from") {
			now, read = false, read+1
		}
	}
	got, err := Work(context.Background(), s, opt)
	if err != nil {
		t.Fatal(err)
	}
	if read != 4 || !bytes.Equal(withoutTimings(t, got), withoutTimings(t, want)) {
		t.Errorf("%d of 4 models were read back; %d rows, %d of models judged in memory, or others", read,
			len(got), len(want))
	}
}
