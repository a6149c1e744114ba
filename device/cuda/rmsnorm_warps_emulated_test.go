//go:build linux && amd64

package cuda

import "testing"

// TestEmulatedNormWarps checks norms that give each row a warp, on the CPU.
func TestEmulatedNormWarps(t *testing.T) {
	d := emulatedDevice(t)
	defer d.Close()
	widths := []int{384, 768}
	if long() {
		widths = []int{8, 384, 768, 1000, 1536}
	}
	warpsRight(t, d, 300, widths...)
}
