package cuda

import (
	"fmt"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// BenchmarkClassify times the classifier of the 160m model with chunks of several sizes, and its cross-entropy alone
// with blocks of two sizes and with each logit read once, in turns. It is run with -benchtime=1x.
func BenchmarkClassify(b *testing.B) {
	const n, width, classes = 32768, 768, 50304
	d := gpu(b, nil)
	x, w := spread(b, d, n, width), spread(b, d, classes, width)
	c := &device.Classifier{X: x, W: w, DX: act(d, n, width), DW: stat(d, classes, width), Loss: stat(d, 1, n),
		Targets: ints(d, n), Scale: 1}
	d.Zero(c.Targets)
	var chunks, rows []*timed
	for _, most := range []int{512 << 20, 1 << 30, 2 << 30, 4 << 30} {
		chunks = append(chunks, &timed{name: fmt.Sprintf("chunks of %4d MiB", most>>20), pass: []func(){func() {
			d.maxLogits = most
			d.Classify(c)
		}}})
	}
	timeInTurns(b, d.Time, chunks)
	for _, x := range chunks {
		fmt.Printf("classify, %s: %8.0f µs\n", x.name, 1e3*x.ms[0][len(x.ms[0])/2])
	}
	const few = 4096
	z := on(d, tensor.F32, few, classes, classes)
	for _, threads := range []int{512, 1024} {
		rows = append(rows, &timed{name: fmt.Sprintf("%4d threads", threads), pass: []func(){func() {
			d.launch(classifyRows, dim1(few), dim1(threads), 0, ptr(c.Loss), ptr(z), i32(classes), ptr(c.Targets),
				i32(classes), f32(1), 1, d.faultPtr())
		}}})
	}
	rows = append(rows, &timed{name: "ring", pass: []func(){func() {
		d.launch(classifyRing, dim1(d.info.SMs), dim1(ringConsumers+32), ringShared, ptr(c.Loss), ptr(z), i32(classes),
			ptr(c.Targets), i32(few), i32(classes), f32(1), d.faultPtr())
	}}})
	timeInTurns(b, d.Time, rows)
	for _, x := range rows {
		us := 1e3 * x.ms[0][len(x.ms[0])/2]
		fmt.Printf("cross-entropy, %-12s %8.0f µs, %5.0f GB/s at 6 bytes a logit\n", x.name+":", us,
			6*float64(few*classes)/us/1e3)
	}
}
