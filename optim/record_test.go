package optim

import (
	"errors"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/model/modeltest"
	"antiphase/tensor"
)

// deaf is a device that cannot record collectives, and two ranks that are one: sums and parts of a rank that is alone
// in them.
type deaf struct {
	device.Device
	recording bool
	refused   int
}

func (d *deaf) Record(f func()) (device.Replay, error) {
	d.recording = true
	defer func() { d.recording = false }()
	f()
	return nil, errors.New("no recording here")
}

func (d *deaf) Rank() int { return 0 }
func (d *deaf) Size() int { return 2 }
func (d *deaf) AllReduce(tensor.Tensor) error {
	if d.recording {
		d.refused++
		return errors.New("a collective while recording")
	}
	return nil
}
func (d *deaf) ReduceScatter(_, _ tensor.Tensor) error    { return nil }
func (d *deaf) AllGather(_, _ tensor.Tensor) error        { return nil }
func (d *deaf) Broadcast(_ tensor.Tensor, root int) error { return nil }

// A step whose recording fails runs as it is: what collectives said while it was recorded does not count, and later
// ones are made.
func TestFailedRecordingIsNoFault(t *testing.T) {
	d := &deaf{Device: ref.New()}
	c := model.Config{Arch: "diff", Vocab: 20, Context: 16, Layers: 1, Dim: 16, Heads: 2, HeadDim: 4, FFN: 20}
	m := modeltest.New(t, d, c, layer.Memory{Train: true, Split: layer.NewSplit(d)}, 3)
	s := NewStepper(m, NewParallel(d, m, Default(), Team{Data: d, World: d}, false), 2)
	for n := range 4 {
		if _, _, err := s.Step(tokens(4, 4), n+1, 0); err != nil {
			t.Fatalf("step %d: %v", n+1, err)
		}
	}
	if _, why := s.Recorded(); why == nil || d.refused == 0 {
		t.Errorf("recorded: %v; %d collectives were refused", why, d.refused)
	}
}
