package experiment

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"antiphase/train"
)

// A folder's experiment goes on where each list of the grid grows and nothing else changes: for every field of a Spec.
func TestContinues(t *testing.T) {
	base := func() *Spec {
		return &Spec{Sizes: []string{"nano", "tiny"}, Archs: []string{"a", "b"}, LRs: []float64{1, 2}, Seeds: []uint64{1, 2}}
	}
	if d := base().continues(base()); d != "" {
		t.Errorf("differs from itself by %s", d)
	}
	grid := map[string]bool{"Sizes": true, "Archs": true, "Variants": true, "LRs": true, "Seeds": true}
	for i := range reflect.TypeFor[Spec]().NumField() {
		f := reflect.TypeFor[Spec]().Field(i)
		if !f.IsExported() || f.Tag.Get("json") == "-" {
			continue
		}
		more, field := base(), func(s *Spec) reflect.Value { return reflect.ValueOf(s).Elem().Field(i) }
		change(field(more))
		if d := more.continues(base()); (d == "") != (grid[f.Name]) {
			t.Errorf("%s: one more gives %q", f.Name, d)
		}
		if d := base().continues(more); d == "" {
			t.Errorf("%s: one less continues", f.Name)
		}
		if grid[f.Name] && f.Name != "Variants" {
			other := base()
			field(other).Index(1).Set(field(other).Index(0)) // the second is gone
			if d := other.continues(base()); d == "" {
				t.Errorf("%s: another entry continues", f.Name)
			}
		}
	}
	for _, x := range []struct{ old, now []float64 }{{nil, []float64{1}}, {[]float64{1}, nil}} {
		old, now := base(), base()
		old.LRs, now.LRs = x.old, x.now
		if d := now.continues(old); d != "--lr" {
			t.Errorf("rates %v after %v: %q", x.now, x.old, d)
		}
	}
	turned := base()
	slices.Reverse(turned.Sizes)
	if turned.continues(base()) == "" {
		t.Error("another first size, with another tokenizer, continues")
	}
}

// change gives a value another one: lists and maps grow by one entry.
func change(v reflect.Value) {
	switch v.Kind() {
	case reflect.Slice:
		e := reflect.New(v.Type().Elem()).Elem()
		change(e)
		v.Set(reflect.Append(v, e))
	case reflect.Map:
		k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		change(k)
		change(e)
		m := reflect.MakeMap(v.Type())
		m.SetMapIndex(k, e)
		v.Set(m)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				change(v.Field(i))
			}
		}
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Float64:
		v.SetFloat(v.Float() + 99)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		change(v.Elem())
	default:
		if v.CanInt() {
			v.SetInt(v.Int() + 99)
		} else {
			v.SetUint(v.Uint() + 99)
		}
	}
}

// Each second of a call is counted once: a probe in the row of the next step, or with the tasks if no step follows.
func TestStopwatch(t *testing.T) {
	w := &stopwatch{}
	w.start(t.TempDir(), 3)
	ago := func(s float64) time.Time { return time.Now().Add(-time.Duration(s * float64(time.Second))) }
	w.prepared(ago(10))
	w.probe("a", ago(100))
	w.step("a", &train.Row{StepMS: 2000, EvalS: 100, SaveS: math.NaN()}) // its row has the probe
	w.step("a", &train.Row{StepMS: 3000, EvalS: math.NaN(), SaveS: 7})
	w.probe("b", ago(40))
	w.judged("a", ago(5))
	w.probe("b", ago(2))
	w.judged("b", ago(1)) // 40 and 2 seconds of probes after its last step
	w.judged("b", ago(1))
	w.begin("c")
	w.mark["c"] = ago(9)
	w.step("c", &train.Row{StepMS: 1000, EvalS: math.NaN(), SaveS: math.NaN()}) // 8 seconds before it
	w.mark["c"] = ago(50)
	w.probe("c", ago(46))
	w.trained("c") // 4 seconds for the last checkpoint
	w.begin("d")
	w.mark["d"] = ago(3)
	w.trained("d") // an earlier call took its last step
	got := w.read()
	for name, x := range map[string][2]float64{
		"training": {got.Training, 6}, "evaluating": {got.Evaluating, 100 + 5 + 42 + 1 + 1}, "data": {got.Data, 30}, "saving": {got.Saving, 11}, "starting": {got.Starting, 8 + 3},
		"runs": {float64(got.Runs), 3},
	} {
		if math.Abs(x[0]-x[1]) > 0.5 {
			t.Errorf("%s: %g, want %g", name, x[0], x[1])
		}
	}
	s := Spent{Total: 200, Training: 100, Evaluating: 50, Data: 20, Saving: 10, Starting: 6}
	if want := "50.0 % of the time went to training, 25.0 % to evaluating, 10.0 % to data, 5.0 % to checkpoints, 3.0 % to starting runs, 7.0 % to anything else"; s.String() != want || s.Useful() != 0.75 {
		t.Errorf("%q, useful %g", s.String(), s.Useful())
	}
	w.spent.Began = ago(10)
	if total := w.read().Total; math.Abs(total-30) > 0.5 {
		t.Errorf("%g seconds of three devices in ten", total)
	}
}
