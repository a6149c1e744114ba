//go:build linux && amd64

package cuda

import (
	"os"
	"testing"

	"antiphase/device/devicetest"
	"antiphase/model"
)

// TestEmulated holds every kernel to the contract, on the CPU, at a third of the sizes; at all of them, which takes a
// minute, with ANTIPHASE_TEST_LONG=1.
func TestEmulated(t *testing.T) {
	if os.Getenv("ANTIPHASE_TEST_LONG") != "1" {
		t.Setenv("ANTIPHASE_TEST_SHORT", "1")
	}
	d := emulatedDevice(t)
	defer d.Close()
	devicetest.RunAll(t, d)
}

// TestEmulatedWide does so at sizes that conformance leaves out.
func TestEmulatedWide(t *testing.T) {
	d := emulatedDevice(t)
	defer d.Close()
	wide(t, d, 300, 72, 520)
	rowsAlone(t, d)
}

// TestEmulatedModel trains and decodes by graphs and takes a prompt on the emulator. One architecture does for most:
// what differs between them is in the ops.
func TestEmulatedModel(t *testing.T) {
	d := emulatedDevice(t)
	defer d.Close()
	recordedSteps(t, d, "diff")
	recomputeSame(t, d, model.Config{Arch: "diff2", Vocab: 50, Context: 32, Layers: 2, Dim: 24, Heads: 2, HeadDim: 8},
		20)
	recordedDecoding(t, d, "diff")
	recordedDecoding(t, d, "diff2") // reads a norm's rows twice
	advanceRight(t, d)
	decodeAhead(t, d, "diff")
	promptTogether(t, d, model.Config{Arch: "diff", Vocab: 50, Context: 80, Layers: 2, Dim: 24, Heads: 2, HeadDim: 8},
		33, 40)
	d.wgmma = true // keys and values straight from the pages
	promptTogether(t, d, model.Config{Arch: "diff", Vocab: 50, Context: 80, Layers: 2, Dim: 64, Heads: 1, HeadDim: 64},
		33, 40)
	d.wgmma = false
}
