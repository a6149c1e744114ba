package cpu

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/internal/half"
	"antiphase/tensor"
)

// rounded is the product of numbers rounded to bfloat16, x [m,k] by rows of w [n,k], or by its columns if w is [k,n].
func rounded(d *Device, x, w tensor.Tensor, trans bool) []float64 {
	read := func(t tensor.Tensor) []float32 {
		v := make([]float32, t.Len())
		device.ReadFloats(d, v, t)
		for i := range v {
			v[i] = half.BF16ToF32(half.F32ToBF16(v[i]))
		}
		return v
	}
	a, b, n, across, down := read(x), read(w), w.Cols, 1, w.Cols
	if trans {
		n, across, down = w.Rows, w.Cols, 1
	}
	y := make([]float64, x.Rows*n)
	for i := range y {
		for p := range x.Cols {
			y[i] += float64(a[i/n*x.Cols+p]) * float64(b[i%n*across+p*down])
		}
	}
	return y
}

// One piece of memory as several weights: square, of another shape, some of its columns, used in both directions. Each
// has a packed form of its own, and a write to any part of the memory makes those that hold it stale, wherever they
// lie.
func TestWeightsOfOneMemory(t *testing.T) {
	for _, p := range []Precision{BF16, Int8} {
		d := New(Options{Threads: 2, Precision: p})
		r := rand.New(rand.NewPCG(9, 9))
		const n = 48
		all := randomTensor(d, r, 3*n, n)
		views := map[string]tensor.Tensor{"middle": all.RowRange(n, 2*n), "low": all.RowRange(0, n),
			"high": all.RowRange(2*n, 3*n), "wide": all.RowRange(n, 2*n).Reshape(n/2, 2*n),
			"columns": all.RowRange(n, 2*n).Columns(0, 32), "half": all.RowRange(n, n+n/2)}
		check := func(when string) {
			t.Helper()
			for _, name := range []string{"middle", "low", "high", "wide", "columns", "half"} { // the middle first
				w := views[name]
				for _, trans := range []bool{true, false} {
					k, out := w.Rows, w.Cols
					if trans {
						k, out = w.Cols, w.Rows
					}
					x, y := randomTensor(d, r, 20, k), device.Empty(d, tensor.F32, 20, out)
					d.MatMul(y, x, w, device.MatMul{TransB: trans})
					for i, want := range rounded(d, x, w, trans) {
						if got := float64(f32(y)[i]); !(math.Abs(got-want) <= 0.05*math.Sqrt(float64(k))) {
							t.Fatalf("%v, %s, %s, transposed %v: element %d is %g, want %g", p, when, name,
								trans, i, got, want)
						}
					}
				}
			}
		}
		check("at first")
		for _, name := range []string{"high", "low", "middle", "half", "columns"} {
			w := views[name]
			device.WriteFloats(d, w, f32(randomOf(d, tensor.F32, r, w.Rows, w.Cols)))
			check("after a write to " + name)
		}
		d.Wrote(views["high"]) // as a collective does, which writes past the device
		for i := range views["high"].Buf.Host {
			views["high"].Buf.Host[i] = 0
		}
		d.Wrote(all)
		check("after a collective")
		d.Close()
	}
}

// The first of several faults is the one that Sync reports, once, with the numbers that are wrong.
func TestFirstFault(t *testing.T) {
	d := New(Options{Threads: 1})
	defer d.Close()
	r := rand.New(rand.NewPCG(1, 1))
	ints := func(v ...int32) tensor.Tensor {
		x := device.Empty(d, tensor.I32, 1, len(v))
		device.WriteI32(d, x, v)
		return x
	}
	x, table := randomTensor(d, r, 2, 4), randomTensor(d, r, 5, 4)
	faults := []struct {
		want string
		do   func()
	}{
		{"cpu: embed: id 5 of row 1 is outside a table of 5 rows", func() { d.Embed(x, table, ints(4, 5)) }},
		{"cpu: embed backward: id -1 of row 0 is outside a table of 5 rows",
			func() { d.EmbedBackward(table, x, ints(-1, 0)) }},
		{"cpu: rope: id -2 of row 1 is outside a table of 5 rows",
			func() { d.Rope(x, table, ints(0, device.Elsewhere), device.Rope{Heads: 1, Dim: 4}) }},
		{"cpu: classify: target 5 of row 1 is none of 5 classes", func() {
			d.Classify(&device.Classifier{X: x, W: table, Targets: ints(-1, 5),
				Loss: device.Empty(d, tensor.F32, 1, 2)})
		}},
		{"cpu: classify: target -2 of row 0 is none of 5 classes", func() {
			d.Classify(&device.Classifier{X: x, W: table, Targets: ints(device.Elsewhere, 0),
				Loss: device.Empty(d, tensor.F32, 1, 2)})
		}},
	}
	for i, f := range faults {
		f.do()
		faults[(i+1)%len(faults)].do()
		if err := d.Sync(); err == nil || err.Error() != f.want {
			t.Errorf("%v, want %s", err, f.want)
		}
		if err := d.Sync(); err != nil {
			t.Errorf("told twice: %v", err)
		}
	}
	d.Classify(&device.Classifier{X: x, W: table, Targets: ints(device.Elsewhere, 0),
		Loss: device.Empty(d, tensor.F32, 1, 2), Part: device.Empty(d, tensor.F32, 2, 2)})
	if err := d.Sync(); err != nil {
		t.Errorf("a target that another rank has: %v", err)
	}
}

// An instruction set that is not here is refused with those that are.
func TestForcedNames(t *testing.T) {
	t.Setenv("ANTIPHASE_SIMD", "sse9")
	if err := Forced(); err == nil ||
		!strings.HasPrefix(err.Error(), `ANTIPHASE_SIMD: there is no "sse9" here; there are `) ||
		!strings.Contains(err.Error(), "generic") {
		t.Errorf("%v", err)
	}
	for _, name := range []string{"", "generic"} {
		if t.Setenv("ANTIPHASE_SIMD", name); Forced() != nil {
			t.Errorf("%q: %v", name, Forced())
		}
	}
}
