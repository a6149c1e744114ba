package cuda

import (
	"fmt"
	"testing"
)

// hopperAgrees wants the Hopper kernels' results within bf16's error of the general kernels'.
func hopperAgrees(t *testing.T, d *Device, s attnShape, b, rows int) {
	t.Helper()
	d.wgmma = true
	defer func() { d.wgmma = false }()
	c := newTiledCase(d, s, b, rows, 0)
	if _, _, ok := c.hopper(d); !ok {
		t.Fatalf("%+v has no Hopper kernels", s)
	}
	c.free()
	tiledAgrees(t, d, s, b, rows)
}

// hopperOrder are the shapes with Hopper kernels in one order.
func hopperOrder() (all []attnShape) {
	for _, s := range tiledShapes() {
		if _, ok := hopperShapes[s]; ok {
			all = append(all, s)
		}
	}
	return all
}

// TestAttnHopper runs every Hopper shape on a GPU, at lengths of many tiles with a rest.
func TestAttnHopper(t *testing.T) {
	d := gpu(t, nil)
	if d.info.Major != 9 {
		t.Skipf("%s is no Hopper", d.Name())
	}
	for _, s := range hopperOrder() {
		t.Run(fmt.Sprintf("%d%d/%d/%d", s.maps, s.keys, s.d, s.dv), func(t *testing.T) {
			hopperAgrees(t, d, s, 2, 1000)
			hopperAgrees(t, d, s, 1, 130)
		})
	}
}
