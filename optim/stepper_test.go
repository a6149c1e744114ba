package optim

import (
	"math"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/model/modeltest"
	"antiphase/tensor"
)

func stepper(t *testing.T, d device.Device) (*model.Model, *Stepper) {
	t.Helper()
	c := model.Config{Arch: "diff", Vocab: 19, Context: 16, Layers: 2, Dim: 12, Heads: 2, HeadDim: 4, FFN: 20}
	m := modeltest.New(t, d, c, layer.Memory{Train: true}, 3)
	return m, NewStepper(m, New(d, m.Params, Default()), 2)
}

func tokens(b, n int, ignored ...int) *model.Batch {
	x := &model.Batch{B: b, T: n, IDs: make([]int32, b*n), Targets: make([]int32, b*n)}
	for i := range x.IDs {
		x.IDs[i], x.Targets[i] = int32(i*7%19), int32(i*5%19)
	}
	for _, i := range ignored {
		x.Targets[i] = -1
	}
	return x
}

// A batch in which nothing is scored has no loss and no gradient.
func TestStepWithoutTargets(t *testing.T) {
	_, s := stepper(t, ref.New())
	if loss, norm, err := s.Step(tokens(2, 2, 0, 1, 2, 3), 1, 0.1); loss != 0 || norm != 0 || err != nil {
		t.Errorf("loss %g, norm %g, %v", loss, norm, err)
	}
}

// TestStepLossIsMean: the loss of a step is the mean over the tokens that are scored, and so is its gradient.
func TestStepLossIsMean(t *testing.T) {
	m, s := stepper(t, ref.New())
	b := tokens(2, 8, 1, 2, 3, 9, 10, 15) // a target of 0 is scored
	if err := m.Score(b); err != nil {
		t.Fatal(err)
	}
	each := make([]float32, len(b.IDs))
	m.Losses(each)
	want, n := 0.0, 0
	for i, id := range b.Targets {
		if id >= 0 {
			want += float64(each[i])
			n++
		}
	}
	want /= float64(n)
	got, norm, err := s.Step(b, 1, 0)
	if err != nil || !(math.Abs(got-want) <= 1e-6) {
		t.Errorf("loss %g (%v), the mean of %d scored tokens is %g", got, err, n, want)
	}
	if slope := uphill(t, m, b, norm); !(math.Abs(slope/norm-1) < 1e-3) {
		t.Errorf("the gradient's norm is %g, the loss rises by %g along it", norm, slope)
	}
	// The same tokens twice, once ignored: the mean and its gradient do not change.
	twice := tokens(4, 8, 1, 2, 3, 9, 10, 15)
	copy(twice.IDs[16:], twice.IDs[:16])
	for i := range 16 {
		twice.Targets[16+i] = -1
	}
	m2, s2 := stepper(t, ref.New())
	_ = m2
	got2, norm2, err := s2.Step(twice, 1, 0)
	if err != nil || !(math.Abs(got2-want) <= 1e-6) || !(math.Abs(norm2-norm) <= 1e-6*norm) {
		t.Errorf("with ignored rows: loss %g, norm %g (%v), want %g and %g", got2, norm2, err, want, norm)
	}
}

// uphill is the slope of the mean loss in the direction of the gradients that the last step left.
func uphill(t *testing.T, m *model.Model, b *model.Batch, norm float64) float64 {
	t.Helper()
	const h = 1e-3
	mean := func(by float64) (loss float64) {
		for _, g := range m.Params.Groups {
			for i, w := range tensor.Host[float64](g.W) {
				tensor.Host[float64](g.W)[i] = w + by/norm*tensor.Host[float64](g.G)[i]
			}
		}
		if err := m.Score(b); err != nil {
			t.Fatal(err)
		}
		each, n := make([]float32, len(b.IDs)), 0.0
		m.Losses(each)
		for i, id := range b.Targets {
			if id >= 0 {
				loss += float64(each[i])
				n++
			}
		}
		return loss / n
	}
	above := mean(h)
	return (above - mean(-2*h)) / (2 * h)
}

// recorder is a device that replays: what it recorded is stale once the model's memory has moved.
type recorder struct {
	device.Device
	records, launches int
	live              int // recordings that were not freed
}

type replay struct {
	r *recorder
	f func()
}

func (r *recorder) Record(f func()) (device.Replay, error) {
	r.records++
	r.live++
	return replay{r, f}, nil
}
func (p replay) Launch()     { p.r.launches++; p.f() }
func (p replay) Free() error { p.r.live--; return nil }

// TestStepForgetsMovedMemory: a pass in between that needs more memory moves the activations, and the step must be
// recorded again. Recordings are freed, the last with the stepper.
func TestStepForgetsMovedMemory(t *testing.T) {
	d := &recorder{Device: ref.New()}
	m, s := stepper(t, d)
	step := func() {
		t.Helper()
		if _, _, err := s.Step(tokens(2, 4), 1, 0); err != nil {
			t.Fatal(err)
		}
	}
	for range 6 {
		step()
	}
	if d.records == 0 || d.launches == 0 {
		t.Fatalf("%d recordings, %d launches in six equal steps", d.records, d.launches)
	}
	version := m.Version()
	if err := m.Score(tokens(256, 16)); err != nil {
		t.Fatal(err)
	}
	records, launches := d.records, d.launches
	step()
	if m.Version() == version {
		t.Fatal("the larger pass did not move anything")
	}
	if d.launches != launches || d.records != records {
		t.Errorf("the first step on other memory was a replay (%d launches more)", d.launches-launches)
	}
	step()
	if d.records != records+1 {
		t.Errorf("the second step on other memory was not recorded")
	}
	if s.Free(); d.live != 0 {
		t.Errorf("%d of %d recordings are left", d.live, d.records)
	}
}
