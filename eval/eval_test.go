package eval

import (
	"math"
	"testing"

	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/model/modeltest"
	"antiphase/tokenizer"
)

// subject is a tiny random model that reads bytes.
func subject(t testing.TB, d device.Device, arch string, context int) *Subject {
	t.Helper()
	tok := tokenizer.Bytes()
	m := modeltest.New(t, d, modeltest.Tiny(arch, tok.Vocab(), context), layer.Memory{}, 11)
	return &Subject{Name: arch, Model: m, Tokenizer: tok, Batch: 3}
}

// onArchs runs f for every architecture, in float64 and on the processor.
func onArchs(t *testing.T, context int, f func(t *testing.T, s *Subject)) {
	d := cpu.New(cpu.Options{Threads: 2})
	t.Cleanup(func() { d.Close() })
	modeltest.EachArch(t, map[string]device.Device{"ref": ref.New(), "cpu": d},
		func(t *testing.T, d device.Device, arch string) {
			f(t, subject(t, d, arch, context))
		})
}

func near(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance }

func TestRatio(t *testing.T) {
	var x Ratio
	for _, p := range [][2]float64{{1, 2}, {2, 2}, {3, 4}} {
		x.Add(p[0], p[1])
	}
	// v = 6/8; residuals −0.5, 0.5, 0: Σ² = 0.5; error √(0.5/(3·2)) / (8/3)
	m := x.Mean()
	if m.Value != 0.75 || m.N != 3 || !near(m.StdErr, math.Sqrt(0.5/6)/(8.0/3), 1e-12) {
		t.Errorf("%+v", m)
	}
}
