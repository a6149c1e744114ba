package cuda

import (
	"testing"

	"antiphase/device"
	"antiphase/device/devicetest"
)

// ringRight holds the cross-entropy that reads each logit once to the contract, and to the oracle on rows of up to all
// slots, several for each block, so that the ring goes around.
func ringRight(t *testing.T, d *Device, classes ...int) {
	t.Helper()
	d.ringLeast = 1
	defer func() { d.ringLeast = ringLeast }()
	devicetest.RunOps(t, d, "classify/grad=true") // others do not use it
	b := newBeside(t, d)
	for _, n := range classes {
		b.classify(3*d.info.SMs+1, 8, n)
	}
}

// TestClassifyRing does so on a GPU.
func TestClassifyRing(t *testing.T) {
	d := gpu(t, nil)
	if d.info.Major != 9 {
		t.Skipf("%s is no Hopper", d.Name())
	}
	ringRight(t, d, 8192, 50304, ringSlots*ringChunk/4)
}

// TestClassifyRingLaunch: one block for each multiprocessor, only on Hopper, and where a row is long, fits and has a
// gradient.
func TestClassifyRingLaunch(t *testing.T) {
	for _, c := range []struct {
		major, classes int
		want           string
	}{
		{9, 50257, "classify_ring 132,1,1 × 544 + 229856"}, {9, ringLeast, "classify_ring 132,1,1 × 544 + 229856"},
		{8, 50257, "classify 300,1,1 × 1024 + 0"},
		{9, 60000, "classify 300,1,1 × 1024 + 0"}, {9, 8192, "classify 300,1,1 × 512 + 0"},
	} {
		d, drv := fakeDevice(t)
		d.info.Major = c.major
		d.Classify(&device.Classifier{X: act(d, 300, 64), W: act(d, c.classes, 64), Targets: ints(d, 300),
			Loss: stat(d, 1, 300), DX: act(d, 300, 64), DW: stat(d, c.classes, 64), Scale: 1})
		if got := geometry(drv.Launches[0]); got != c.want {
			t.Errorf("%d classes on architecture %d launched %s, want %s", c.classes, c.major, got, c.want)
		}
	}
}
