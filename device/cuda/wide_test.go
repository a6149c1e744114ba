package cuda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/tensor"
)

// beside runs an op on a device and on the oracle, on the same random tensors, and compares what it leaves.
type beside struct {
	t      testing.TB
	d      *Device
	oracle *ref.Device
	r      *rand.Rand
	pairs  [][2]tensor.Tensor
}

func newBeside(t testing.TB, d *Device) *beside {
	return &beside{t: t, d: d, oracle: ref.NewTypes(device.Types{Act: tensor.BF16, Stat: tensor.F32}),
		r: rand.New(rand.NewPCG(1, 2))}
}

// random makes a tensor of standard normal numbers times scale on both; the view is pad columns narrower than its rows.
func (b *beside) random(dt tensor.DType, rows, cols, pad int, scale float64) [2]tensor.Tensor {
	v := make([]float64, rows*(cols+pad))
	for i := range v {
		v[i] = scale * b.r.NormFloat64()
	}
	var x [2]tensor.Tensor
	for i, d := range []device.Device{b.d, b.oracle} {
		x[i] = device.Empty(d, dt, rows, cols+pad)
		device.WriteFloats(d, x[i], v)
		x[i].Cols = cols
	}
	b.pairs = append(b.pairs, x)
	return x
}

func (b *beside) ids(n, below int) [2]tensor.Tensor {
	v := make([]int32, n)
	for i := range v {
		v[i] = int32(b.r.IntN(below)) * int32(b.r.IntN(2)) // id 0 is half of them
	}
	var x [2]tensor.Tensor
	for i, d := range []device.Device{b.d, b.oracle} {
		x[i] = device.Empty(d, tensor.I32, 1, n)
		device.WriteI32(d, x[i], v)
	}
	return x
}

// same wants x equal on both sides, within tol of its largest element.
func (b *beside) same(what string, x [2]tensor.Tensor, tol float64) {
	b.t.Helper()
	if err := b.d.Sync(); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
	got, want := make([]float64, x[0].Len()), make([]float64, x[0].Len())
	device.ReadFloats(b.d, got, x[0])
	device.ReadFloats(b.oracle, want, x[1])
	scale := 0.0
	for _, w := range want {
		scale = max(scale, math.Abs(w))
	}
	for i := range want {
		if err := math.Abs(got[i] - want[i]); !(err <= tol*scale) {
			b.t.Errorf("%s at [%d,%d]: %v, want %v", what, i/x[0].Cols, i%x[0].Cols, got[i], want[i])
			return
		}
	}
}

// both calls f for the device and for the oracle.
func (b *beside) both(f func(d device.Device, i int)) {
	f(b.d, 0)
	f(b.oracle, 1)
}

// product checks one shape, with strided operands.
func (b *beside) product(m, n, k int, op device.MatMul, to tensor.DType) {
	ar, ac, br, bc := m, k, k, n
	if op.TransA {
		ar, ac = ac, ar
	}
	if op.TransB {
		br, bc = bc, br
	}
	x, y, z := b.random(tensor.BF16, ar, ac, 8, 1), b.random(tensor.BF16, br, bc, 16, 1), b.random(to, m, n, 8, 1)
	b.both(func(d device.Device, i int) { d.MatMul(z[i], x[i], y[i], op) })
	tol := 1e-2
	if to == tensor.F32 {
		tol = 1e-5
	}
	b.same(fmt.Sprintf("%v to %v, %d×%d×%d", op, to, m, n, k), z, tol)
}

// wide checks the device against the oracle where conformance's sizes do not reach: sums over k in parts, many chunks
// of rows, rows wider than a block's first piece.
func wide(t *testing.T, d *Device, m, n, k int) {
	b := newBeside(t, d)
	for trans := range 4 {
		for _, to := range []tensor.DType{tensor.BF16, tensor.F32} {
			op := device.MatMul{TransA: trans&1 != 0, TransB: trans&2 != 0, Accumulate: to == tensor.F32}
			b.product(m, n, k, op, to)
			b.product(5, 72, 1100, op, to)
		}
	}
	dtable, dout, ids := b.random(tensor.F32, 50, 40, 8, 1), b.random(tensor.BF16, 2500, 40, 8, 1), b.ids(2500, 50)
	b.both(func(d device.Device, i int) { d.EmbedBackward(dtable[i], dout[i], ids[i]) })
	b.same("EmbedBackward", dtable, 1e-6)

	x, dy, w := b.random(tensor.BF16, 9, 9000, 0, 1), b.random(tensor.BF16, 9, 9000, 0, 1),
		b.random(tensor.BF16, 1, 9000, 0, 1)
	y, dx, rstd, dw := b.random(tensor.BF16, 9, 9000, 0, 1), b.random(tensor.BF16, 9, 9000, 0, 1),
		b.random(tensor.F32, 1, 9, 0, 1), b.random(tensor.F32, 1, 9000, 0, 1)
	b.both(func(d device.Device, i int) {
		d.RMSNorm(y[i], rstd[i], tensor.Tensor{}, x[i], tensor.Tensor{}, w[i], 1e-5)
		d.RMSNormBackward(dx[i], dw[i], dy[i], x[i], w[i], rstd[i])
	})
	b.same("RMSNorm", y, 1e-2)
	b.same("RMSNormBackward dx", dx, 1e-2)
	b.same("RMSNormBackward dw", dw, 1e-5)
	gu, h, dh := b.random(tensor.BF16, 9, 2*20, 0, 2), b.random(tensor.BF16, 9, 20, 4, 1),
		b.random(tensor.BF16, 9, 20, 4, 1)
	b.both(func(d device.Device, i int) { // u between 16 bytes
		d.SwiGLU(h[i], gu[i])
		d.SwiGLUBackward(gu[i], dh[i], dh[i], gu[i])
	})
	b.same("SwiGLU", h, 1e-2)
	b.same("SwiGLUBackward", gu, 1e-2)

	b.d.maxLogits = 128 * 4 * 48
	b.classify(300, 64, 41) // in chunks of 128 rows
	b.d.maxLogits = maxLogits
	b.d.ringLeast = 1 << 30
	b.classify(7, 16, 33001) // rows of several tiles of the block
	b.d.ringLeast = ringLeast
}

// classify checks one shape.
func (b *beside) classify(n, width, classes int) {
	x, w, ids := b.random(tensor.BF16, n, width, 0, 1), b.random(tensor.BF16, classes, width, 0, 0.1), b.ids(n, classes)
	loss, dx, dw := b.random(tensor.F32, 1, n, 0, 1), b.random(tensor.BF16, n, width, 0, 1),
		b.random(tensor.F32, classes, width, 0, 1)
	b.both(func(d device.Device, i int) {
		d.Classify(&device.Classifier{X: x[i], W: w[i], Targets: ids[i], Loss: loss[i], DX: dx[i],
			DW: dw[i], Scale: 0.5})
	})
	b.same("Classify Loss", loss, 1e-5)
	b.same("Classify DX", dx, 2e-2)
	b.same("Classify DW", dw, 2e-2)
}

// A row of a product has the same bits alone as among others, where the sum over k is cut too.
func rowsAlone(t *testing.T, d *Device) {
	b := newBeside(t, d)
	for _, s := range [][2]int{{72, 1100}, {200, 600}} {
		x, w, y := b.random(tensor.BF16, 100, s[1], 0, 1)[0], b.random(tensor.BF16, s[0], s[1], 0, 1)[0],
			b.random(tensor.F32, 100, s[0], 0, 1)[0]
		d.MatMul(y, x, w, device.MatMul{TransB: true})
		all, one := make([]float32, y.Len()), make([]float32, s[0])
		device.ReadFloats(d, all, y)
		for _, r := range []int{0, 17, 99} {
			d.MatMul(y.RowRange(r, r+1), x.RowRange(r, r+1), w, device.MatMul{TransB: true})
			device.ReadFloats(d, one, y.RowRange(r, r+1))
			for i := range one {
				if one[i] != all[r*s[0]+i] {
					t.Fatalf("row %d of %v: %v alone, %v among others", r, s, one[i], all[r*s[0]+i])
				}
			}
		}
	}
}
