//go:build linux && amd64

package cuda

import "testing"

// TestEmulatedNarrow runs the products of many rows with few heads on the CPU.
func TestEmulatedNarrow(t *testing.T) {
	d := emulatedDevice(t)
	defer d.Close()
	d.info.SMs = 2
	narrowRight(t, d, 259, 264)
}
