package attn_test

import (
	"testing"

	"antiphase/device/cpu"
	"antiphase/device/devicetest"
)

// A third of the conformance cases of attention, with the kernels in use: package cpu runs all, with all kernels.
func TestAttention(t *testing.T) {
	t.Setenv("ANTIPHASE_TEST_SHORT", "1")
	for _, p := range []cpu.Precision{cpu.FP32, cpu.BF16} {
		t.Run(p.String(), func(t *testing.T) {
			d := cpu.New(cpu.Options{Threads: 2, Precision: p})
			defer d.Close()
			devicetest.RunOps(t, d, "attention", "diffattention", "cache")
		})
	}
}
