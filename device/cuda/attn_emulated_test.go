//go:build linux && amd64

package cuda

import (
	"os"
	"testing"
)

// TestEmulatedTiled runs one tiled shape of each kind on the CPU, all of them with ANTIPHASE_TEST_LONG=1.
func TestEmulatedTiled(t *testing.T) {
	d := emulatedDevice(t)
	defer d.Close()
	shapes := []attnShape{{2, 2, 32, 64}, {2, 2, 96, 192}}
	if os.Getenv("ANTIPHASE_TEST_LONG") == "1" {
		shapes = tiledShapes()
	}
	for _, s := range shapes {
		tiledAgrees(t, d, s, 1, 150)
	}
}
