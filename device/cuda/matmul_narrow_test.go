package cuda

import (
	"fmt"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// narrowRight holds the products of many rows with few heads to the oracle, rounded as a library's would be.
func narrowRight(t *testing.T, d *Device, rows, cols int) {
	d.try.narrow = true
	defer func() { d.try.narrow = false }()
	for _, heads := range []int{4, 8, 12, 16} {
		for _, add := range []bool{false, true} {
			b := newBeside(t, d)
			a, x := b.random(tensor.BF16, rows, heads, (16-heads)%8, 1), b.random(tensor.BF16, rows, cols, 0, 1)
			w, g := b.random(tensor.BF16, heads, cols, 0, 1), b.random(tensor.F32, heads, cols, 0, 1)
			b.both(func(d device.Device, i int) {
				d.MatMul(g[i], a[i], x[i], device.MatMul{TransA: true, Accumulate: add})
				d.MatMul(x[i], a[i], w[i], device.MatMul{Accumulate: add})
			})
			b.same(fmt.Sprintf("%d heads: gradient of the weight", heads), g, 1e-4)
			b.same(fmt.Sprintf("%d heads: gradient of the input", heads), x, 1e-2)
		}
	}
}

// TestNarrow runs them on a GPU.
func TestNarrow(t *testing.T) {
	d := gpu(t, nil)
	narrowRight(t, d, 5000, 768)
	narrowRight(t, d, 259, 520)
}

func TestNarrowLaunches(t *testing.T) {
	d, drv := fakeDevice(t)
	d.try.narrow = true
	c := launchCase{"gradients of λ", func(d *Device) {
		lam := on(d, tensor.BF16, 32768, 12, 16)
		d.MatMul(stat(d, 12, 768), lam, act(d, 32768, 768), device.MatMul{TransA: true})
		d.MatMul(act(d, 32768, 768), lam, act(d, 12, 768), device.MatMul{Accumulate: true})
	}, []string{"narrow_sum_12 88,3,1 × 256 + 0", "narrow_finish 288,1,1 × 1024 + 0", "narrow_add_12 88,3,1 × 256 + 0"}}
	c.holds(t, d, drv)
}
