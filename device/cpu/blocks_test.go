package cpu

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/internal/half"
	"antiphase/tensor"
)

// randomTensor is an activation.
func randomTensor(d *Device, r *rand.Rand, rows, cols int) tensor.Tensor {
	return randomOf(d, d.act, r, rows, cols)
}

func randomOf(d *Device, dtype tensor.DType, r *rand.Rand, rows, cols int) tensor.Tensor {
	t, x := device.Empty(d, dtype, rows, cols), make([]float32, rows*cols)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	device.WriteFloats(d, t, x)
	return t
}

func sameBits(t *testing.T, what string, got, want tensor.Tensor) {
	t.Helper()
	size := want.Type.Size()
	for i, w := range want.Buf.Host[want.Off:][:want.Len()*size] {
		if g := got.Buf.Host[got.Off+i]; g != w {
			t.Fatalf("%s: byte %d of element %d is %v, want %v", what, i%size, i/size, g, w)
		}
	}
}

// A product cut into blocks of rows and of k has the bits of the whole.
func TestMatMulBlocks(t *testing.T) {
	each(t, func(t *testing.T) {
		d := New(Options{Threads: 2})
		defer d.Close()
		r := rand.New(rand.NewPCG(1, 1))
		const m, n, k = 61, 70, 1300
		for _, op := range []device.MatMul{{TransB: true}, {}, {TransA: true, Accumulate: true}} {
			a, b, c0 := randomTensor(d, r, m, k), randomTensor(d, r, k, n), randomTensor(d, r, m, n)
			if op.TransA {
				a = a.Reshape(k, m)
			}
			if op.TransB {
				b = b.Reshape(n, k)
			}
			whole, cut := device.Empty(d, tensor.F32, m, n), device.Empty(d, tensor.F32, m, n)
			d.Copy(whole, c0)
			d.Copy(cut, c0)
			d.maxPacked = maxPacked
			d.MatMul(whole, a, b, op)
			d.maxPacked = 20000 // 28 rows of one run of k
			d.MatMul(cut, a, b, op)
			sameBits(t, op.String(), cut, whole)
		}
	})
}

// The gradient of a weight has the same bits for any number of workers, which cut it differently and share the packing
// of one factor.
func TestGradWorkers(t *testing.T) {
	for _, sh := range [][3]int{{330, 70, 1300}, {70, 330, 1300}, {600, 200, 100}, {100, 700, 900}} {
		m, n, k := sh[0], sh[1], sh[2]
		var first []float32
		for _, threads := range []int{1, 2, 5} {
			d := New(Options{Threads: threads, Precision: BF16})
			r := rand.New(rand.NewPCG(1, 1))
			a, b := randomTensor(d, r, k, m), randomTensor(d, r, k, n)
			c := randomOf(d, tensor.F32, r, m, n)
			d.MatMul(c, a, b, device.MatMul{TransA: true, Accumulate: true})
			got := slices.Clone(f32(c))
			if first == nil {
				first = got
			}
			if !slices.Equal(got, first) {
				t.Errorf("%v: other bits with %d threads", sh, threads)
			}
			d.Close()
		}
	}
}

// A row of a linear layer has the same bits alone, in any small batch, and in a large one.
func TestMatMulRows(t *testing.T) {
	each(t, func(t *testing.T) {
		d := New(Options{Threads: 2})
		defer d.Close()
		r := rand.New(rand.NewPCG(2, 2))
		const m, n, k = 40, 100, 770
		x, w := randomTensor(d, r, m, k), randomTensor(d, r, n, k)
		op := device.MatMul{TransB: true}
		whole, part := device.Empty(d, tensor.F32, m, n), device.Empty(d, tensor.F32, m, n)
		d.MatMul(whole, x, w, op)
		for batch := 1; batch < 20; batch++ {
			for i := 0; i+batch <= m; i += batch {
				d.MatMul(part.RowRange(i, i+batch), x.RowRange(i, i+batch), w, op)
				sameBits(t, "batch", part.RowRange(i, i+batch), whole.RowRange(i, i+batch))
			}
		}
	})
}

// readAll is the content of three tensors.
func readAll(d *Device, ts ...tensor.Tensor) (all [3][]float32) {
	for i, x := range ts {
		all[i] = make([]float32, x.Len())
		device.ReadFloats(d, all[i], x)
	}
	return all
}

// Chunks of logits change nothing but the memory they take, and neither do threads.
func TestClassifyChunks(t *testing.T) {
	const n, v, c = 75, 1700, 40
	run := func(p Precision, threads, limit int) [3][]float32 {
		d := New(Options{Threads: threads, Precision: p})
		defer d.Close()
		d.maxLogits = limit
		r := rand.New(rand.NewPCG(3, 3))
		x, w, dw := randomTensor(d, r, n, c), randomTensor(d, r, v, c), randomOf(d, tensor.F32, r, v, c)
		targets := device.Empty(d, tensor.I32, 1, n)
		for i := range i32(targets) {
			i32(targets)[i] = int32(r.IntN(v+1) - 1)
		}
		loss, dx := device.Empty(d, tensor.F32, 1, n), device.EmptyAct(d, n, c)
		d.Classify(&device.Classifier{X: x, W: w, Targets: targets, Loss: loss, DX: dx, DW: dw, Scale: 0.1})
		return readAll(d, loss, dx, dw)
	}
	for _, p := range []Precision{FP32, BF16} {
		whole := run(p, 2, maxLogits)
		for name, other := range map[string][3][]float32{"chunks": run(p, 2, 4*32*v),
			"one thread": run(p, 1, maxLogits), "five threads": run(p, 5, maxLogits)} {
			for i, what := range []string{"loss", "dx", "dw"} {
				if !slices.Equal(other[i], whole[i]) {
					t.Errorf("%v: %s: %s has other bits", p, name, what)
				}
			}
		}
	}
}

// The same where ranks split the classes: the sums of a rank's own classes, and losses and gradients from all ranks'
// sums.
func TestClassifyPartChunks(t *testing.T) {
	const n, v, c = 75, 1700, 40
	run := func(p Precision, limit int, first bool) [3][]float32 {
		d := New(Options{Threads: 2, Precision: p})
		defer d.Close()
		d.maxLogits = limit
		r := rand.New(rand.NewPCG(4, 4))
		x, w, dw := randomTensor(d, r, n, c), randomTensor(d, r, v, c), randomOf(d, tensor.F32, r, v, c)
		targets, parts := device.Empty(d, tensor.I32, 1, n), randomOf(d, tensor.F32, r, 4, n)
		for i := range i32(targets) {
			i32(targets)[i] = int32(r.IntN(v+2) - 2) // −2 is elsewhere
		}
		for i := range f32(parts) {
			f32(parts)[i] += 8
		}
		loss, dx, part := device.Empty(d, tensor.F32, 1, n), device.EmptyAct(d, n, c), device.Empty(d, tensor.F32, 2, n)
		if first {
			d.Classify(&device.Classifier{X: x, W: w, Targets: targets, Loss: loss, Part: part})
			return readAll(d, part)
		}
		d.Classify(&device.Classifier{X: x, W: w, Targets: targets, Loss: loss, DX: dx, DW: dw, Scale: 0.1,
			Parts: parts})
		return readAll(d, loss, dx, dw)
	}
	for _, p := range []Precision{FP32, BF16} {
		for _, first := range []bool{true, false} {
			whole, chunks := run(p, maxLogits, first), run(p, 4*32*v, first)
			for i := range whole {
				if !slices.Equal(chunks[i], whole[i]) {
					t.Errorf("%v, first call %v: tensor %d has other bits in chunks", p, first, i)
				}
			}
		}
	}
}

// Logits far from 0, all of a row's or a few, give what exact products give: bfloat16 inputs make logits nearly exact
// either way.
func TestClassifyRange(t *testing.T) {
	const n, v, c = 40, 1700, 64
	run := func(p Precision) [3][]float32 {
		d := New(Options{Threads: 2, Precision: p})
		defer d.Close()
		r := rand.New(rand.NewPCG(5, 5))
		xs, ws := make([]float32, n*c), make([]float32, v*c)
		for i := range xs {
			xs[i] = half.BF16ToF32(half.F32ToBF16(float32(r.NormFloat64() * math.Pow(2, float64(i/c%6)))))
			if i%c == 0 {
				xs[i] = float32(i/c%5*100 - 200) // all logits of a row by so much higher
			}
		}
		for i := range ws {
			ws[i] = half.BF16ToF32(half.F32ToBF16(float32(r.NormFloat64())))
			if i%c == 0 {
				ws[i] = 1
			}
		}
		x, w := device.EmptyAct(d, n, c), device.Empty(d, d.act, v, c)
		device.WriteFloats(d, x, xs)
		device.WriteFloats(d, w, ws)
		targets := device.Empty(d, tensor.I32, 1, n)
		for i := range i32(targets) {
			i32(targets)[i] = int32(r.IntN(v))
		}
		loss, dx, dw := device.Empty(d, tensor.F32, 1, n), device.EmptyAct(d, n, c), device.Empty(d, tensor.F32, v, c)
		d.Classify(&device.Classifier{X: x, W: w, Targets: targets, Loss: loss, DX: dx, DW: dw, Scale: 0.1})
		return readAll(d, loss, dx, dw)
	}
	each(t, func(t *testing.T) {
		got, want := run(BF16), run(FP32)
		for i, what := range []string{"loss", "dx", "dw"} {
			var worst, size float64
			for j := range want[i] {
				worst, size = max(worst, math.Abs(float64(got[i][j])-float64(want[i][j]))),
					max(size, math.Abs(float64(want[i][j])))
			}
			if what == "loss" { // to a thousandth, though logits reach a thousand
				size = 0.1
			}
			if !(worst <= 0.01*size) {
				t.Errorf("%s is off by %g of %g", what, worst, size)
			}
		}
	})
}

// A row that is no number says so in its own loss alone.
func TestClassifyNaN(t *testing.T) {
	for _, p := range []Precision{FP32, BF16} {
		d := New(Options{Threads: 1, Precision: p})
		defer d.Close()
		r := rand.New(rand.NewPCG(6, 6))
		x, loss := randomTensor(d, r, 3, 32), device.Empty(d, tensor.F32, 1, 3)
		device.WriteFloats(d, x.RowRange(1, 2).Columns(4, 5), []float32{float32(math.NaN())})
		d.Classify(&device.Classifier{X: x, W: randomTensor(d, r, 900, 32),
			Targets: device.Empty(d, tensor.I32, 1, 3), Loss: loss})
		for n, l := range f32(loss) {
			if math.IsNaN(float64(l)) != (n == 1) {
				t.Errorf("%v: loss of row %d is %g", p, n, l)
			}
		}
	}
}

func TestClassifyFault(t *testing.T) {
	d := New(Options{Threads: 1})
	defer d.Close()
	r := rand.New(rand.NewPCG(4, 4))
	targets := device.Empty(d, tensor.I32, 1, 2)
	copy(i32(targets), []int32{-1, 9})
	d.Classify(&device.Classifier{X: randomTensor(d, r, 2, 4), W: randomTensor(d, r, 9, 4), Targets: targets,
		Loss: device.Empty(d, tensor.F32, 1, 2)})
	if d.Sync() == nil {
		t.Error("target 9 of 9 classes is no fault")
	}
	if err := d.Sync(); err != nil {
		t.Errorf("the fault came twice: %v", err)
	}
}

// A gradient has the bits of one thread with more threads than it has columns, or rows, to share out.
func TestMoreThreadsThanColumns(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, s := range [][3]int{{20, 25, 9}, {25, 20, 9}, {15, 16, 300}} {
			run := func(threads int) []float32 {
				d := New(Options{Threads: threads, Precision: FP32})
				defer d.Close()
				r := rand.New(rand.NewPCG(2, 3))
				c, a, b := randomOf(d, tensor.F32, r, s[0], s[1]), randomTensor(d, r, s[2], s[0]),
					randomTensor(d, r, s[2], s[1])
				d.MatMul(c, a, b, device.MatMul{TransA: true, Accumulate: true})
				return slices.Clone(f32(c))
			}
			if !slices.Equal(run(7), run(1)) {
				t.Errorf("%v: seven threads differ from one", s)
			}
		}
	})
}
