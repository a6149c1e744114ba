//go:build linux && amd64

package cuda

import (
	"errors"
	"os"
	"testing"

	"antiphase/device/devicetest"
	"antiphase/internal/cu"
)

// TestEmulatedHopper runs one Hopper shape of each kind on the CPU, all of them with ANTIPHASE_TEST_LONG=1.
func TestEmulatedHopper(t *testing.T) {
	d := emulatedDevice(t)
	defer d.Close()
	shapes := []attnShape{{1, 1, 128, 128}}
	if long() {
		shapes = hopperOrder()
	}
	for _, s := range shapes {
		hopperAgrees(t, d, s, 1, 150)
	}
	// Five tiles of keys and of queries: each slot of a ring is used three times.
	hopperAgrees(t, d, attnShape{2, 2, 64, 128}, 1, 266)
	d.wgmma = true
	sequencesApart(t, d, attnShape{2, 2, 64, 128}, 70)
}

// TestEmulatedHopperOrder runs blocks that take several tickets, of items that are started one by one and together, on
// the CPU: one shape, with two tiles of each kind and a rest in the second warpgroup of the last block, or with
// ANTIPHASE_TEST_LONG=1 all.
func TestEmulatedHopperOrder(t *testing.T) {
	d := emulatedDevice(t)
	defer d.Close()
	d.info.SMs = 2
	shapes, rows := []attnShape{{2, 1, 64, 64}}, 202
	if long() {
		shapes, rows = hopperOrder(), 330
	}
	for _, s := range shapes {
		hopperAgrees(t, d, s, 2, rows)
	}
}

// mapless is a driver that makes no tensor maps and counts launches.
type mapless struct {
	*emulator
	launches int
}

func (m *mapless) TensorMap(*cu.TensorMap, *cu.Tiles) error { return errors.New("no map") }

func (m *mapless) LaunchStruct(cu.Func, cu.Dim, cu.Dim, int, []byte) error {
	m.launches++
	return nil
}

// Without its tensor maps a kernel is not launched: it would read those of the call before and wait for ever.
func TestNoMapNoLaunch(t *testing.T) {
	d := emulatedDevice(t)
	defer d.Close()
	c := benchCall(t, d, attnShape{1, 1, 128, 128}, 1, 64, 1)
	if err := d.Sync(); err != nil {
		t.Fatal(err)
	}
	drv := &mapless{emulator: d.drv.(*emulator)}
	d.drv = drv
	k := hopperShapes[attnShape{1, 1, 128, 128}]
	d.forwardHopper(c, attnShape{1, 1, 128, 128}, &k)
	if err := d.Sync(); err == nil || drv.launches > 0 {
		t.Errorf("%d launches, %v", drv.launches, err)
	}
}

// long reports that the slow tests of the emulation are asked for: all shapes, and kernels that no default launches.
func long() bool { return os.Getenv("ANTIPHASE_TEST_LONG") == "1" }

// TestEmulatedHopperConformance checks the Hopper kernels against attention's contract, on the CPU.
func TestEmulatedHopperConformance(t *testing.T) {
	if !long() {
		t.Skip("TestEmulatedHopper holds them to the general kernels: ANTIPHASE_TEST_LONG=1 runs the whole contract")
	}
	d := emulatedDevice(t)
	defer d.Close()
	d.wgmma = true
	devicetest.RunOps(t, d, "attention", "diffattention")
}

// TestEmulatedHopperBackwards: every way to add to dQ comes to the same bits, on the CPU.
func TestEmulatedHopperBackwards(t *testing.T) {
	if !long() {
		t.Skip("variants that nothing launches by default: ANTIPHASE_TEST_LONG=1 runs them")
	}
	shapes := hopperOrder()
	made := madeBackwards(shapes)
	d := emulatedDevice(t) // after the kernels: it knows those that are registered
	defer d.Close()
	for _, s := range shapes {
		sameBackwards(t, d, s, made[s], 330)
	}
}

// TestEmulatedHopperChunks: chunks of prompts over a cache's pages, on the CPU; all shapes with ANTIPHASE_TEST_LONG=1.
func TestEmulatedHopperChunks(t *testing.T) {
	d := emulatedDevice(t)
	defer d.Close()
	shapes := []attnShape{{2, 2, 96, 192}}
	if long() {
		shapes = hopperOrder()
	}
	for _, s := range shapes {
		chunksAgree(t, d, s, 16, [][3]int{{0, 70, 130}, {2, 9, 170}, {1, 40, 56}})
	}
	tilesAgree(t, d, attnShape{1, 1, 64, 64}, 16)
	chunksRefused(t, d)
	chunksAgree(t, d, attnShape{1, 1, 64, 64}, 8, [][3]int{{0, 140, 210}})
}

// TestEmulatedHopperTurns: warpgroups that take turns at multiplying come to the same bits, also where one of them
// skips tiles.
func TestEmulatedHopperTurns(t *testing.T) {
	if !long() {
		t.Skip("the table's kernels run elsewhere: ANTIPHASE_TEST_LONG=1 runs their variants")
	}
	kernels := map[attnShape]hopperKernels{}
	for _, s := range []attnShape{{1, 1, 128, 128}, {2, 2, 64, 128}} {
		tile := hopperShapes[s].tile
		tile.turns = !tile.turns
		kernels[s] = s.hopperKernels(tile, s.backwards()[0])
	}
	d := emulatedDevice(t) // after the kernels: it knows those that are registered
	defer d.Close()
	for s, k := range kernels {
		sameForward(t, d, s, &k, 200)
	}
}
