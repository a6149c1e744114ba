package bench

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"antiphase/device"
	"antiphase/tensor"
)

// near compares numbers by name.
func near(t *testing.T, list map[string][2]float64) {
	t.Helper()
	for name, v := range list {
		if !(math.Abs(v[0]-v[1]) <= 1e-12*max(1, math.Abs(v[1]))) { // NaN too
			t.Errorf("%s: %g, want %g", name, v[0], v[1])
		}
	}
}

// A row by hand: three repetitions after two to warm up, each beside the ceiling measured after it.
func TestMeasureAndFill(t *testing.T) {
	c := &Config{Warmup: 2, Reps: 3}
	seconds, rates := []float64{9, 9, 2, 1, 4}, []float64{9, 9, 10, 40, 5}
	i, k := -1, -1
	top := &Ceiling{Name: "top", Unit: UnitBytes, Run: func() (float64, error) { k++; return rates[k], nil }}
	s, err := c.measure(context.Background(), func() (float64, error) { i++; return seconds[i], nil }, top)
	if err != nil || i != 4 || k != 4 || len(s.seconds) != 3 || s.seconds[0] != 2 || s.ceiling[2] != 5 {
		t.Fatalf("%+v after %d and %d calls: %v", s, i+1, k+1, err)
	}
	var r Row
	r.fill(s, c, top, 8e9, func(sec float64) float64 { return 12 / sec })
	near(t, map[string][2]float64{"median": {r.Value, 6}, "low": {r.Low, 4.5}, "high": {r.High, 9}, "rate": {r.Rate, 4},
		"ceiling": {r.CeilingRate, 10},
		"share":   {r.Share, 0.4}}) // 4/10, 8/40 and 2/5
	if r.Reps != 3 || r.Warmup != 2 || r.RateUnit != UnitBytes || r.Ceiling != "top" {
		t.Errorf("%+v", r)
	}
	r.fill(s, c, &Ceiling{Unit: UnitFLOPs}, 8e12, milliseconds)
	near(t, map[string][2]float64{"TFLOP/s": {r.Rate, 4}, "ms": {r.Value, 2000}, "share": {r.Share, 0.4}})
	broken := errors.New("broken")
	if _, err := c.measure(context.Background(), func() (float64, error) { return 0, broken },
		top); !errors.Is(err, broken) {
		t.Errorf("a failing repetition: %v", err)
	}
	if _, err := c.measure(context.Background(), func() (float64, error) { return 1, nil },
		&Ceiling{Name: "top", Run: func() (float64, error) { return 0, broken }}); !errors.Is(err, broken) ||
		!strings.Contains(err.Error(), "ceiling top") {
		t.Errorf("a failing ceiling: %v", err)
	}
	d := &Config{}
	if d.defaults(); d.Warmup != 3 || d.Reps != 10 || d.Say == nil {
		t.Errorf("defaults %+v", d)
	}
	if low, mid, high := quartiles(nil); low != 0 || mid != 0 || high != 0 {
		t.Error("quartiles of nothing")
	}
	// As numpy.percentile.
	if low, mid, high := quartiles([]float64{40, 10, 30, 20}); low != 17.5 || mid != 25 || high != 32.5 {
		t.Error(low, mid, high)
	}
}

// timing is a device with a clock of its own; it counts waits and knows its scratch memory.
type timing struct {
	device.Device
	ms    float64
	syncs int
	fail  error
}

func (d *timing) Time(f func()) (float64, error) { f(); return d.ms, d.fail }
func (d *timing) Sync() error                    { d.syncs++; return d.Device.Sync() }
func (d *timing) Scratch() int                   { return 1000 }

// A device that times itself is believed, in milliseconds; ops are counted by name and shape, divided by the steps and
// listed by time, with the bytes of all operands that are there.
func TestOpsByHand(t *testing.T) {
	d := &timing{Device: open(t).Device, ms: 250}
	if sec, err := elapsed(d, func() {}); err != nil || sec != 0.25 || d.syncs != 1 {
		t.Errorf("%g s after %d waits (%v)", sec, d.syncs, err)
	}
	o := NewOps(d)
	x, y, z := device.Empty(d, tensor.F32, 3, 8), device.Empty(d, tensor.F32, 3, 8), device.Empty(d, tensor.F32, 8, 8)
	defer release(d, x, y, z)
	o.op(opKey{name: "warm"}, 0, func() {})
	o.Reset()
	d.ms = 100
	o.Zero(z)
	for range 2 {
		o.MatMul(y, x, z, device.MatMul{TransB: true})
	}
	d.ms = 300
	o.op(opKey{name: "Odd"}, 6, func() {}, x, tensor.Tensor{})
	got := o.Times(2)
	want := []OpTime{{"Odd", "", 0.5, 0.15, 3, 48}, {"MatMul y=x·Wᵀ", "3×8×8", 1, 0.1, 2 * 3 * 8 * 8, 96 + 96 + 256},
		{"Zero", "", 0.5, 0.05, 0, 128}}
	if len(got) != 3 {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if math.Abs(got[i].Seconds-want[i].Seconds) < 1e-12 {
			got[i].Seconds = want[i].Seconds
		}
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
	d.fail = errors.New("no clock")
	o.Zero(z)
	if err := o.Sync(); err == nil || err.Error() != "no clock" {
		t.Errorf("an error of timing: %v", err)
	}
	if err := o.Sync(); err != nil {
		t.Errorf("it is told twice: %v", err)
	}
	if m := count(d).memory(); m != 1000 {
		t.Errorf("scratch memory of %d bytes", m)
	}
	for op, name := range map[device.MatMul]string{{}: "MatMul dx=dy·W", {Accumulate: true}: "MatMul dx+=dy·W",
		{TransB: true}: "MatMul y=x·Wᵀ",
		{TransA: true}: "MatMul dW=dyᵀ·x", {TransA: true, Accumulate: true}: "MatMul dW+=dyᵀ·x"} {
		if got := productName(op); got != name {
			t.Errorf("%+v is called %q", op, got)
		}
	}
}

// A product's FLOPs and shape follow its form: k is the rows of a transposed first operand.
func TestProductsOfEveryForm(t *testing.T) {
	c := open(t)
	o := NewOps(c.Device)
	a, b, y := device.Empty(c.Device, tensor.F32, 5, 3), device.Empty(c.Device, tensor.F32, 5, 7),
		device.Empty(c.Device, tensor.F32, 3, 7)
	defer release(c.Device, a, b, y)
	o.MatMul(y, a, b, device.MatMul{TransA: true})
	if got := o.Times(1)[0]; got.Shape != "3×7×5" || got.FLOPs != 2*3*7*5 {
		t.Errorf("%+v", got)
	}
	s := &device.AttnShape{B: 2, T: 4, Heads: 3, D: 5, DV: 7}
	near(t, map[string][2]float64{"cells": {cells(s), 2 * 3 * 10}, "one map": {attnForward(s, 1), 2 * 60 * 12},
		"two maps": {attnForward(s, 2), 2 * 60 * 24}, "backward": {attnBackward(s, 1), 2 * 60 * (15 + 14)},
		"backward of two": {attnBackward(s, 2), 2 * 60 * (30 + 14)}})
}

// Numbers of a table: three digits, or all before the point.
func TestNumbers(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 12345.6: "12346", 100: "100", 99.94: "99.9", 10: "10.0",
		9.994: "9.99", 1: "1.00", 0.12345: "0.123", 0.0001234: "0.000123"} {
		if got := number(x); got != want {
			t.Errorf("%g: %q, want %q", x, got, want)
		}
	}
	if memory(0) != "" || memory(3<<29) != "1.50 GiB" {
		t.Errorf("%q %q", memory(0), memory(3<<29))
	}
	runs := []Row{{Reps: 5, Warmup: 2}, {Reps: 10, Warmup: 3}, {Reps: 10, Warmup: 3}, {Reps: 10, Warmup: 2}}
	want := ""
	for n, more := range []string{"5 repetitions after 2 to warm up", ", then 10 after 3", "", ", then 10 after 2"} {
		if want += more; repetitions(runs[:n+1]) != want {
			t.Errorf("%d rows: %q, want %q", n+1, repetitions(runs[:n+1]), want)
		}
	}
	if got := ceilings([]Row{{Ceiling: "a"}, {Ceiling: "b"}, {Ceiling: "a"}}); got != "a, b" {
		t.Errorf("%q", got)
	}
}

// The rows of a table by hand: ops with their share of the time, TFLOP/s and GB/s.
func TestPrintedOps(t *testing.T) {
	var b bytes.Buffer
	rows := []Row{{Name: "a", Value: 1, Low: 0.5, High: 2, Unit: "ms", Reps: 7, Warmup: 3, Ceiling: "top",
		Ops: []OpTime{{Op: "MatMul", Shape: "1×2×3", Calls: 2, Seconds: 0.003, FLOPs: 3e9, Bytes: 6e6},
			{Op: "Add", Calls: 1, Seconds: 0.001, Bytes: 1e6}}}}
	if err := Print(&b, rows); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, line := range strings.Split(b.String(), "\n") {
		got[strings.Join(strings.Fields(line), " ")] = true
	}
	for _, want := range []string{"ceiling: top; 7 repetitions after 3 to warm up", "ops of a",
		"MatMul 1×2×3 2 3.000 75.0% 1.00 2.00", "Add 1 1.000 25.0% 1.00",
		"all ops 4.000 100% 0.75", "a 1.00 ms 0.5 … 2.00 0 0 0.0%"} {
		if !got[want] {
			t.Errorf("no line %q in\n%s", want, b.String())
		}
	}
}

// The rate of a pass counts the tokens while all sequences write, scaled to all that were written.
func TestPassRate(t *testing.T) {
	at := func(list ...int) (out []time.Duration) {
		for _, ms := range list {
			out = append(out, time.Duration(ms)*time.Millisecond)
		}
		return out
	}
	for _, x := range []struct {
		what   string
		at     [][]time.Duration
		tokens int
		want   float64
	}{
		{"one sequence", [][]time.Duration{at(100, 200, 300, 400)}, 4, 10},
		{"two at once", [][]time.Duration{at(100, 200, 300), at(190, 250, 350)}, 6, 3 / 0.11}, // 200, 250, 300
		{"one after the other", [][]time.Duration{at(0, 50, 100), at(200, 300)}, 5, 4 / 0.3},
		{"one begins as the other ends", [][]time.Duration{at(100, 200), at(200, 300)}, 4, 3 / 0.2},
		{"the later one first", [][]time.Duration{at(200, 300), at(0, 50, 100)}, 5, 4 / 0.3},
		{"three, the middle one first", [][]time.Duration{at(200, 300), at(400, 450, 500), at(0, 100)}, 7, 6 / 0.5},
		{"half of the tokens without text", [][]time.Duration{at(100, 200, 300, 400)}, 8, 20},
	} {
		p := &pass{at: x.at, tokens: x.tokens}
		if got := p.rate(); !(math.Abs(got-x.want) <= 1e-9) {
			t.Errorf("%s: %g, want %g", x.what, got, x.want)
		}
	}
	for _, x := range []struct {
		at     [][]time.Duration
		tokens int
		left   int // sequences that have a rate
		fault  string
	}{
		{[][]time.Duration{at(1), at(1, 2), at(1, 2, 3)}, 12, 2, ""}, {[][]time.Duration{at(1, 2), nil}, 4, 1, ""},
		{[][]time.Duration{at(1, 2)}, 5, 0, "5 tokens came in 2 events"},
		{[][]time.Duration{at(1), at(2)}, 4, 0, "4 tokens came in 2 events"},
		{[][]time.Duration{at(1)}, 1, 0, "1 tokens came in 1 events"},
	} {
		p := &pass{at: x.at, tokens: x.tokens}
		err := p.check()
		if (err == nil) != (x.fault == "") || err == nil && len(p.at) != x.left ||
			err != nil && !strings.HasPrefix(err.Error(), x.fault) {
			t.Errorf("%v of %d tokens: %d sequences are left, %v; want %d, %q", x.at, x.tokens, len(p.at), err,
				x.left, x.fault)
		}
	}
}

// stepping counts the optimiser's calls.
type stepping struct {
	device.Device
	calls *int
}

func (d stepping) AdamW(a *device.AdamW) { *d.calls++; d.Device.AdamW(a) }

// Ops are measured over at most five steps, after two, and divided by them.
func TestStepsOfOps(t *testing.T) {
	for reps, want := range map[int]int{3: 5, 9: 7} {
		c := quick(t)
		calls := 0
		c.Device, c.Reps = stepping{c.Device, &calls}, reps
		r, err := TrainOptions{Geometry: Geometry{Size: "nano", Arch: "diff"}}.recipe()
		if err != nil {
			t.Fatal(err)
		}
		list, err := c.trainOps(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list {
			if o.Op == "AdamW" && (o.Calls*float64(want) != float64(calls) || o.Bytes <= 0) {
				t.Errorf("%d repetitions: %g calls of the optimiser in a step, %d in %d steps",
					reps, o.Calls, calls, want)
			}
		}
	}
}
