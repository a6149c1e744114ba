//go:build linux && amd64

package cuda

import "testing"

// TestEmulatedDecode runs the checks of decoding on the CPU.
func TestEmulatedDecode(t *testing.T) {
	d := emulatedDevice(t)
	defer d.Close()
	rowsRight(t, d)
	cachedRight(t, d, 140)
}

// TestEmulatedHeld runs those of ops that wait for the next one.
func TestEmulatedHeld(t *testing.T) {
	d := emulatedDevice(t)
	defer d.Close()
	leftRight(t, d)
	gatedRight(t, d)
	turnedRight(t, d)
	faultsRight(t, d)
}
