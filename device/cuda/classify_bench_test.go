package cuda

import (
	"fmt"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// median times f five times on the GPU after a first one, in µs.
func median(b *testing.B, d *Device, f func()) float64 {
	f()
	if err := d.Sync(); err != nil {
		b.Fatal(err)
	}
	var us [5]float64
	for i := range us {
		ms, err := d.Time(f)
		if err != nil {
			b.Fatal(err)
		}
		us[i] = ms * 1e3
	}
	slices.Sort(us[:])
	return us[2]
}

// BenchmarkClassify times the classifier of the 160m model with chunks of several sizes, and its cross-entropy alone with
// blocks of two sizes and with each logit read once. It is run with -benchtime=1x.
func BenchmarkClassify(b *testing.B) {
	const n, width, classes = 32768, 768, 50304
	d := gpu(b, nil)
	x, w := spread(b, d, n, width), spread(b, d, classes, width)
	c := &device.Classifier{X: x, W: w, DX: act(d, n, width), DW: stat(d, classes, width), Loss: stat(d, 1, n), Targets: ints(d, n), Scale: 1}
	d.Zero(c.Targets)
	for _, most := range []int{512 << 20, 1 << 30, 2 << 30, 4 << 30} {
		d.maxLogits = most
		fmt.Printf("classify, chunks of %4d MiB: %8.0f µs\n", most>>20, median(b, d, func() { d.Classify(c) }))
	}
	rows := 4096
	z := on(d, tensor.F32, rows, classes, classes)
	for _, threads := range []int{512, 1024} {
		us := median(b, d, func() {
			d.launch(classifyRows, dim1(rows), dim1(threads), 0, ptr(c.Loss), ptr(z), i32(classes), ptr(c.Targets), i32(classes), f32(1), 1, d.faultPtr())
		})
		fmt.Printf("cross-entropy, %4d threads: %8.0f µs, %5.0f GB/s at 6 bytes a logit\n", threads, us, 6*float64(rows*classes)/us/1e3)
	}
	us := median(b, d, func() {
		d.launch(classifyRing, dim1(d.info.SMs), dim1(ringConsumers+32), ringShared, ptr(c.Loss), ptr(z), i32(classes), ptr(c.Targets), i32(rows), i32(classes), f32(1), d.faultPtr())
	})
	fmt.Printf("cross-entropy, ring:         %8.0f µs, %5.0f GB/s at 6 bytes a logit\n", us, 6*float64(rows*classes)/us/1e3)
}
