package cuda

import (
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// mustChoose parses a list for Hopper.
func mustChoose(list string) (t trials) {
	if err := t.choose(list, 9); err != nil {
		panic(err)
	}
	return t
}

// TestTrialLaunches checks the launchers of kernels under trial against their geometry.
func TestTrialLaunches(t *testing.T) {
	for _, c := range []launchCase{
		{"bytes", func(d *Device) {
			a, _ := diffOn(d, 64, 1, 6, 6, 64, 128, 2)
			const rows, page, pages = 64 * 1056, 16, 66
			d.types.Cache = tensor.I8
			c := &device.Cache{K: on(d, tensor.I8, rows, 816, 816), V: on(d, tensor.I8, rows, 800, 800), Table: on(d, tensor.I32, 64, pages, pages), PageSize: page,
				KHeads: 12, VHeads: 6, D: 64, DV: 128}
			d.DiffAttentionCached(a, c, ints(d, 64), ints(d, 64))
		}, []string{"diffattention_splits 6,4,64 × 256 + 45408", "diffattention_join 6,64,1 × 384 + 6216"}},
		{"Rope and CacheWrite", func(d *Device) {
			qkv, at := act(d, 64, 2304), ints(d, 64)
			d.types.Cache = tensor.I8
			c := &device.Cache{K: on(d, tensor.I8, 1024, 816, 816), V: on(d, tensor.I8, 1024, 800, 800), Table: on(d, tensor.I32, 64, 1, 1), PageSize: 16,
				KHeads: 12, VHeads: 6, D: 64, DV: 128}
			d.Rope(qkv.Columns(0, 1536), stat(d, 64, 64), at, device.Rope{Heads: 24, Dim: 64, Interleaved: true})
			d.CacheWrite(c, qkv.Columns(768, 1536), qkv.Columns(1536, 2304), at, at)
		}, []string{"rope_bytes_pairs 240,1,1 × 128 + 0"}},
	} {
		d, drv := fakeDevice(t)
		d.try = mustChoose("joined")
		c.holds(t, d, drv)
	}
}
