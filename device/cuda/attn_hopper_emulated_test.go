//go:build linux && amd64

package cuda

import (
	"os"
	"testing"

	"antiphase/device/devicetest"
)

// TestEmulatedHopper runs one Hopper shape of each kind on the CPU, all of them with ANTIPHASE_TEST_LONG=1.
func TestEmulatedHopper(t *testing.T) {
	d := emulatedDevice(t)
	defer d.Close()
	shapes := []attnShape{{1, 1, 128, 128}, {2, 2, 96, 192}}
	if os.Getenv("ANTIPHASE_TEST_LONG") == "1" {
		shapes = hopperOrder()
	}
	for _, s := range shapes {
		hopperAgrees(t, d, s, 1, 150)
	}
	hopperAgrees(t, d, attnShape{2, 2, 64, 128}, 1, 330) // rings go around
}

// TestEmulatedHopperConformance holds the Hopper kernels to attention's contract, on the CPU; at a third of the sizes
// without ANTIPHASE_TEST_LONG=1.
func TestEmulatedHopperConformance(t *testing.T) {
	if os.Getenv("ANTIPHASE_TEST_LONG") != "1" {
		t.Setenv("ANTIPHASE_TEST_SHORT", "1")
	}
	d := emulatedDevice(t)
	defer d.Close()
	d.wgmma = true
	devicetest.RunOps(t, d, "attention", "diffattention")
}
