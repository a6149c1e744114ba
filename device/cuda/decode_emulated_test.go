//go:build linux && amd64

package cuda

import (
	"testing"

	"antiphase/model"
	"antiphase/tensor"
)

// TestEmulatedDecode runs the checks of decoding on the CPU; the bits of one shape of each kind against the general
// kernels', of all of them with ANTIPHASE_TEST_LONG=1.
func TestEmulatedDecode(t *testing.T) {
	d := emulatedDevice(t)
	defer d.Close()
	rowsRight(t, d)
	heldRight(t, d)
	cachedRight(t, d, 140, func(s attnShape) bool { return long() || s.d == 64 })
}

// TestEmulatedHeld runs those of ops that wait for the next one.
func TestEmulatedHeld(t *testing.T) {
	d := emulatedDevice(t)
	defer d.Close()
	leftRight(t, d)
	gatedRight(t, d)
	turnedRight(t, d)
	faultsRight(t, d)
	joinedRight(t, d)
}

// TestEmulatedBytes runs those of a cache of bytes; all shapes with ANTIPHASE_TEST_LONG=1.
func TestEmulatedBytes(t *testing.T) {
	d := emulatedDevice(t)
	defer d.Close()
	if long() {
		for _, s := range byteShapes() {
			bytesRight(t, d, s, 150, 1)
		}
	}
	bytesRight(t, d, attnShape{2, 2, 64, 128}, 290, 3)
	bytesRight(t, d, attnShape{2, 2, 96, 192}, 290, 1)
	d.types.Cache = tensor.I8
	promptTogether(t, d, model.Config{Arch: "diff", Vocab: 50, Context: 80, Layers: 2, Dim: 32, Heads: 1, HeadDim: 16},
		33, 40)
	recordedDecoding(t, d, "diff2")
}

// TestEmulatedBytesEdges runs those of a cache of bytes at the ends of splits, pages and numbers; all shapes whose
// splits are taken by warps with ANTIPHASE_TEST_LONG=1.
func TestEmulatedBytesEdges(t *testing.T) {
	d := emulatedDevice(t)
	defer d.Close()
	for s := range byteKernels {
		if long() || s.d == 64 {
			bytesEdges(t, d, s)
		}
	}
	if long() {
		bytesEdges(t, d, attnShape{2, 1, 128, 128})
		bytesEdges(t, d, attnShape{1, 1, 72, 40})
	}
}
