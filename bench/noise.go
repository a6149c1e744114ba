package bench

import (
	"math/rand/v2"
	"sync"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/tensor"
)

// noise is a block of normal numbers that all random values are taken from: processors run zeros faster than data, but
// drawing a billion weights one by one would take longer than measuring them.
var noise = sync.OnceValue(func() []float32 {
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, 1_048_573)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
})

// draw writes mean + std·noise to t: the first rows from the host, as many as there is noise, and copies of them below.
func draw(d device.Device, t tensor.Tensor, mean, std float64) {
	src := noise()
	rows := min(t.Rows, max(1, len(src)/max(1, t.Cols)))
	part := make([]float32, rows*t.Cols)
	for i := range part {
		part[i] = float32(mean + std*float64(src[i%len(src)]))
	}
	first := t.RowRange(0, rows)
	device.WriteFloats(d, first, part)
	for from := rows; from < t.Rows; from += rows {
		n := min(rows, t.Rows-from)
		d.Copy(t.RowRange(from, from+n), first.RowRange(0, n))
	}
}

// noisy allocates a tensor of small random values.
func noisy(d device.Device, t tensor.DType, rows, cols int) tensor.Tensor {
	x := device.Empty(d, t, rows, cols)
	draw(d, x, 0, 0.1)
	return x
}

// noisyAct is noisy for an activation.
func noisyAct(d device.Device, rows, cols int) tensor.Tensor {
	x := device.EmptyAct(d, rows, cols)
	draw(d, x, 0, 0.1)
	return x
}

// drawParams gives every parameter random values with its own deviation.
func drawParams(d device.Device, ps *layer.ParamSet) {
	for _, p := range ps.List {
		draw(d, p.W, p.Const, p.Std)
		switch {
		case p.Master.Type == tensor.I16:
			d.Zero(p.Master) // exact bfloat16 values have zero lower halves
		case p.Master.Ok():
			d.Copy(p.Master, p.W)
		}
	}
}

// release frees tensors.
func release(d device.Device, all ...tensor.Tensor) {
	for _, t := range all {
		if t.Ok() {
			d.Free(t.Buf)
		}
	}
}

// randomIDs are n ids of a vocabulary.
func randomIDs(n, vocab int) []int32 {
	r := rand.New(rand.NewPCG(3, 4))
	x := make([]int32, n)
	for i := range x {
		x[i] = int32(r.IntN(vocab))
	}
	return x
}
