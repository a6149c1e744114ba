package cuda

import (
	"testing"

	"antiphase/device"
	"antiphase/device/devicetest"
)

func TestTrials(t *testing.T) {
	var hopper, ampere trials
	if err := hopper.choose("ring", 9); err != nil || hopper.ring == 0 {
		t.Errorf("ring: %v", err)
	}
	if err := ampere.choose("ring", 8); err != nil || ampere.ring != 0 {
		t.Errorf("ring on Ampere: %v", err)
	}
	var none, all trials
	if err := none.choose("none", 9); err != nil || none != (trials{}) {
		t.Errorf("none: %+v, %v", none, err)
	}
	if err := all.choose("ring,warps", 9); err != nil || all != (trials{ring: ringLeast, warps: true}) {
		t.Errorf("all: %+v, %v", all, err)
	}
	if err := new(trials).choose("", 9); err != nil {
		t.Errorf("those that have won: %v", err)
	}
	if hopper.choose("ring,rung", 9) == nil {
		t.Error("an unknown name passes")
	}
}

// ringRight holds the cross-entropy that reads each logit once to the contract, and to the oracle on rows of up to all
// slots, several for each block, so that the ring goes around.
func ringRight(t *testing.T, d *Device, classes ...int) {
	t.Helper()
	d.try.ring = 1
	defer func() { d.try.ring = 0 }()
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

// TestClassifyRingLaunch: one block for each multiprocessor, only where a row fits and has a gradient.
func TestClassifyRingLaunch(t *testing.T) {
	for classes, want := range map[int]string{50257: "classify_ring 132,1,1 × 544 + 229856", 60000: "classify 300,1,1 × 1024 + 0", 8192: "classify 300,1,1 × 512 + 0"} {
		d, drv := fakeDevice(t)
		d.try.ring = ringLeast
		d.Classify(&device.Classifier{X: act(d, 300, 64), W: act(d, classes, 64), Targets: ints(d, 300), Loss: stat(d, 1, 300), DX: act(d, 300, 64),
			DW: stat(d, classes, 64), Scale: 1})
		if got := geometry(drv.Launches[0]); got != want {
			t.Errorf("%d classes launched %s, want %s", classes, got, want)
		}
	}
}
