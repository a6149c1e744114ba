//go:build linux && amd64

package cuda

import "testing"

// TestEmulatedRing checks the cross-entropy that reads each logit once, on the CPU.
func TestEmulatedRing(t *testing.T) {
	d := emulatedDevice(t)
	defer d.Close()
	sizes := []int{8200}
	if long() {
		sizes = append(sizes, ringSlots*ringChunk/4)
	}
	ringRight(t, d, sizes...)
}
