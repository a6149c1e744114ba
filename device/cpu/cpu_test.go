package cpu

import (
	"slices"
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

// The implementations that only add products of bfloat16, or of bytes, have nothing of their own to show elsewhere.
func TestConformance(t *testing.T) {
	each(t, func(t *testing.T) {
		if simd.Name() == "avxvnni" {
			t.Skip("its bytes are tested in simd")
		}
		for _, p := range []Precision{FP32, BF16} {
			if p == FP32 && slices.Contains([]string{"amx", "avx512bf16", "neonbf16"}, simd.Name()) {
				continue
			}
			t.Run(p.String(), func(t *testing.T) {
				if p == BF16 && simd.Name() != "amx" {
					t.Setenv("ANTIPHASE_TEST_SHORT", "1") // the same tiles of the same ops on slower products
				}
				d := New(Options{Threads: 3, Precision: p})
				defer d.Close()
				devicetest.RunAll(t, d)
			})
		}
	})
}

// Instruction sets divide products differently, so each is asked; plain Go, which takes longest, by the stage that has
// nothing else.
func TestThreads(t *testing.T) {
	used := simd.Name()
	each(t, func(t *testing.T) {
		for _, p := range []Precision{FP32, BF16, Int8} {
			if simd.Name() == used || p == FP32 && slices.Contains([]string{"avx2", "avx512", "neon"}, simd.Name()) {
				devicetest.RunThreads(t, func(threads int) device.Device {
					return New(Options{Threads: threads,
						Precision: p})
				})
			}
		}
	})
}

func TestAllocs(t *testing.T) {
	for _, p := range []Precision{FP32, BF16, Int8} {
		d := New(Options{Threads: 2, Precision: p})
		devicetest.RunAllocs(t, d)
		_ = d.Close()
	}
}

func BenchmarkOps(b *testing.B) {
	for _, p := range []Precision{FP32, BF16} {
		b.Run(p.String(), func(b *testing.B) {
			d := New(Options{Precision: p})
			defer d.Close()
			devicetest.BenchAll(b, d)
		})
	}
}
