package cpu

import (
	"testing"

	"go.uber.org/goleak"

	"antiphase/device"
	"antiphase/device/devicetest"
	"antiphase/internal/simd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// each runs f under every implementation of the kernels that this machine has.
func each(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	before := simd.Name()
	defer func() { _ = simd.Use(before) }()
	for _, name := range simd.Names() {
		if err := simd.Use(name); err != nil {
			t.Fatal(err)
		}
		t.Run(name, f)
	}
}

func TestConformance(t *testing.T) {
	each(t, func(t *testing.T) {
		d := New(Options{Threads: 3})
		defer d.Close()
		devicetest.RunAll(t, d)
	})
}

func TestThreads(t *testing.T) {
	devicetest.RunThreads(t, func(threads int) device.Device { return New(Options{Threads: threads}) })
}

func TestAllocs(t *testing.T) {
	d := New(Options{Threads: 2})
	defer d.Close()
	devicetest.RunAllocs(t, d)
}

func BenchmarkOps(b *testing.B) {
	d := New(Options{})
	defer d.Close()
	devicetest.BenchAll(b, d)
}
