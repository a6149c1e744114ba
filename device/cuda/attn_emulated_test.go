//go:build linux && amd64

package cuda

import (
	"fmt"
	"os"
	"testing"
)

// TestEmulatedTiled runs one tiled shape of each kind on the CPU, all of them with ANTIPHASE_TEST_LONG=1.
func TestEmulatedTiled(t *testing.T) {
	d := emulatedDevice(t)
	defer d.Close()
	shapes := []attnShape{{2, 2, 96, 192}}
	if os.Getenv("ANTIPHASE_TEST_LONG") == "1" {
		shapes = tiledShapes()
	}
	for _, s := range shapes {
		tiledAgrees(t, d, s, 1, 150, nil)
	}
}

// TestEmulatedVariants holds the backward pass's variants to the general kernels: the split kernels at both kinds of a warp's
// share, all variants at all sizes with ANTIPHASE_TEST_LONG=1.
func TestEmulatedVariants(t *testing.T) {
	if testing.Short() {
		t.Skip("compiling the kernels as C++ takes half a minute")
	}
	long := os.Getenv("ANTIPHASE_TEST_LONG") == "1"
	built := variantKernels()
	d := emulatedDevice(t)
	defer d.Close()
	for _, s := range variantShapes() {
		for _, v := range variants {
			if !v.right || !v.has(s) || !long && (v.name != "split" || s.d != 64) {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d-%d-%d-%d", v.name, s.maps, s.keys, s.d, s.dv), func(t *testing.T) {
				tiledAgrees(t, d, s, 1, 150, func(c *attnCall) { v.run(d, c, built, all) })
			})
		}
	}
}
