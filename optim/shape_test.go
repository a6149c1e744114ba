package optim

import (
	"math"
	"testing"

	"antiphase/device/ref"
	"antiphase/model"
)

// A recorded step is repeated for batches of its shape only: other rows, lengths, isolation of documents or numbers of
// scored tokens are recorded anew, and every step has the loss and the norm of a stepper that never recorded.
func TestStepOfAnotherShape(t *testing.T) {
	apart := tokens(2, 4)
	apart.Starts = []int32{0, 0, 2, 2, 0, 1, 1, 1}
	d := &recorder{Device: ref.New()}
	_, s := stepper(t, d)
	for name, b := range map[string]*model.Batch{"rows": tokens(4, 4), "length": tokens(2, 8),
		"length for rows": tokens(4, 2), "documents": apart, "scored tokens": tokens(2, 4, 3, 5)} {
		for range 4 {
			if _, _, err := s.Step(tokens(2, 4), 1, 0); err != nil {
				t.Fatal(err)
			}
		}
		if ready, _ := s.Recorded(); !ready {
			t.Fatalf("%s: four equal steps are not recorded", name)
		}
		records, launches := d.records, d.launches
		loss, norm, err := s.Step(b, 1, 0)
		if err != nil || d.launches != launches || d.records != records {
			t.Errorf("other %s: replayed %d times, recorded %d times, %v", name, d.launches-launches,
				d.records-records, err)
		}
		_, fresh := stepper(t, ref.New())
		wantLoss, wantNorm, err := fresh.Step(b, 1, 0)
		if err != nil || !(math.Abs(loss-wantLoss) <= 1e-9) || !(math.Abs(norm-wantNorm) <= 1e-9*wantNorm) {
			t.Errorf("other %s: loss %g, norm %g, want %g and %g; %v", name, loss, norm, wantLoss, wantNorm, err)
		}
	}
}

// Every setting of the update is the configuration's: with another value one step from the same state gives other
// weights.
func TestEverySettingOfTheUpdate(t *testing.T) {
	base := Config{Beta1: 0.9, Beta2: 0.98, Eps: 1e-3, Decay: 0.1, Clip: 0.5}
	end := func(c Config, lr float64) (sum float64) {
		m, _ := stepper(t, ref.New())
		o := New(m.Device(), m.Params, c)
		s := NewStepper(m, o, 2)
		for n := range 3 {
			if _, _, err := s.Step(tokens(2, 4), n+1, lr); err != nil {
				t.Fatal(err)
			}
		}
		r := o.NewReader()
		for _, x := range o.Slices() {
			v := make([]float32, x.To-x.From)
			r.Read(&x, Value, v)
			for i, w := range v {
				sum += float64(w) * math.Sin(float64(i+1))
			}
		}
		return sum
	}
	want := end(base, 0.01)
	if again := end(base, 0.01); again != want {
		t.Fatalf("%g, then %g", want, again)
	}
	for name, c := range map[string]Config{
		"beta1": {0, 0.8, base.Beta2, base.Eps, base.Decay, false, base.Clip, "", 0, 0, false},
		"beta2": {0, base.Beta1, 0.9, base.Eps, base.Decay, false, base.Clip, "", 0, 0, false},
		"eps":   {0, base.Beta1, base.Beta2, 1e-2, base.Decay, false, base.Clip, "", 0, 0, false},
		"decay": {0, base.Beta1, base.Beta2, base.Eps, 0.2, false, base.Clip, "", 0, 0, false},
		"clip":  {0, base.Beta1, base.Beta2, base.Eps, base.Decay, false, 0.1, "", 0, 0, false},
	} {
		if got := end(c, 0.01); !(math.Abs(got-want) >= 1e-9) {
			t.Errorf("another %s makes no difference", name)
		}
	}
	if got := end(base, 0.02); !(math.Abs(got-want) >= 1e-9) {
		t.Error("another rate makes no difference")
	}
}

// The defaults: those of the paper's scaling runs, and ours where it has none.
func TestDefault(t *testing.T) {
	want := Config{LR: 1e-3, Beta1: 0.9, Beta2: 0.98, Eps: 1e-8, Decay: 0.05, Clip: 1, Schedule: "cosine",
		Warmup: 100, FinalLR: 0.1}
	if got := Default(); got != want || got.Check() != nil {
		t.Errorf("%+v, want %+v", got, want)
	}
}
