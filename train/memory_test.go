package train

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/optim"
	"antiphase/tensor"
)

// cramped is a device with little memory left.
type cramped struct {
	device.Device
	spare int64
}

func (c cramped) Spare() int64 { return c.spare }

// A step that the device has no room for is refused before any text is read, with the setting that would fit.
func TestNoRoomForAStep(t *testing.T) {
	opt := options(t, filepath.Join(t.TempDir(), "run"))
	r := nano(t, "diff", "train.batch=8", "train.micro_batch=8")
	at := func(micro int, c layer.Recompute) int64 {
		x := r
		x.Train.MicroBatch, x.Train.Recompute = micro, c
		return MemoryOf(x, opt.Device.Types(), Layout{}).Sum()
	}
	for _, c := range []struct {
		spare int64
		want  string
	}{
		{at(8, layer.RecomputeOff) - 1, "train.micro_batch=4 would fit"},
		{at(2, layer.RecomputeOff), "train.micro_batch=2 would fit"},
		{at(1, layer.RecomputeBlocks), "train.micro_batch=1 with train.recompute=blocks would fit"},
		{1 << 10, "no micro-batch fits"},
	} {
		o := opt
		o.Device = cramped{opt.Device, c.spare}
		_, err := Run(context.Background(), r, o)
		if !errors.As(err, new(*tensor.NoMemory)) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d bytes: %v, want %s", c.spare, err, c.want)
		}
		if _, err := os.Stat(filepath.Join(o.Dir, "data")); err == nil {
			t.Error("data was prepared for a run that cannot begin")
		}
	}
	opt.Device = cramped{opt.Device, at(8, layer.RecomputeOff)}
	r.Train.Steps = 1
	mustRun(t, r, opt)
}

// tally counts what is allocated.
type tally struct {
	device.Device
	bytes int64
}

func (d *tally) Alloc(n int) *tensor.Buffer {
	d.bytes += int64(n)
	return d.Device.Alloc(n)
}

// What MemoryOf counts as state is what weights, gradients and moments take.
func TestStateBytes(t *testing.T) {
	for _, set := range []string{"optim.bf16_weights=false", "optim.bf16_weights=true"} {
		r := nano(t, "diff2", set)
		d := &tally{Device: options(t, "").Device}
		m, err := model.New(d, r.Model, layer.Memory{Train: true, Master: r.Optim.RoundBF16})
		if err != nil {
			t.Fatal(err)
		}
		o := optim.New(d, m.Params, r.Optim)
		if got, want := d.bytes, MemoryOf(r, d.Types(), Layout{}).State; got < want ||
			float64(got) > 1.1*float64(want) {
			t.Errorf("%s: %d bytes were taken, %d were counted", set, got, want)
		}
		o.Free()
		m.Free()
	}
}
