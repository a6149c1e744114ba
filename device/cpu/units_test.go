package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/device/devicetest"
	"antiphase/internal/half"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

// What each precision keeps its tensors, cache and operands in, and how it is named.
func TestPrecisions(t *testing.T) {
	for _, c := range []struct {
		name                 string
		p                    Precision
		act, cache, products tensor.DType
	}{
		{"fp32", FP32, tensor.F32, tensor.F32, tensor.F32}, {"bf16", BF16, tensor.BF16, tensor.BF16, tensor.BF16},
		{"int8", Int8, tensor.F32, tensor.BF16, tensor.BF16},
	} {
		d := New(Options{Threads: 1, Precision: c.p})
		if got, want := d.Types(), (device.Types{Act: c.act, Stat: tensor.F32, Cache: c.cache,
			OddRows: true}); got != want || d.Products() != c.products || d.Precision() != c.p {
			t.Errorf("%s: %+v, products of %v", c.name, got, d.Products())
		}
		if p, err := ParsePrecision(c.name); err != nil || p != c.p || c.p.String() != c.name {
			t.Errorf("%s: %v, %v", c.name, p, err)
		}
		d.Close()
	}
	if p, err := ParsePrecision("auto"); err != nil || p != BestPrecision() {
		t.Errorf("auto: %v, %v", p, err)
	}
	for _, name := range []string{"", "fp16", "FP32", "Auto"} {
		if _, err := ParsePrecision(name); err == nil || !strings.Contains(err.Error(), "auto, fp32, bf16 and int8") {
			t.Errorf("%q: %v", name, err)
		}
	}
	each(t, func(t *testing.T) {
		if want := map[bool]Precision{true: BF16, false: FP32}[simd.Name() == "amx"]; BestPrecision() != want {
			t.Errorf("the best of %s is %v", simd.Name(), BestPrecision())
		}
	})
}

// Bits depend on architecture, precision and kernels, not on threads; sets that differ in bf16 products only are one at
// float32, those that differ in int8 products, whose sums are exact, always.
func TestIdentityOfBits(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, p := range []Precision{FP32, BF16, Int8} {
			one, two := New(Options{Threads: 1, Precision: p}), New(Options{Threads: 2, Precision: p})
			set := simd.Name()
			switch {
			case p == FP32 && (set == "amx" || set == "avx512bf16"):
				set = "avx512"
			case p == FP32 && set == "neonbf16":
				set = "neon"
			case set == "avxvnni":
				set = "avx2"
			}
			want := device.Identity{Device: "cpu", Precision: p.String(), Kernels: runtime.GOARCH + " " + set}
			if one.Identity() != want || two.Identity() != want {
				t.Errorf("%+v and %+v, want %+v", one.Identity(), two.Identity(), want)
			}
			if name := fmt.Sprintf("cpu: 2 threads, %s, %s", simd.Name(), p); two.Name() != name {
				t.Errorf("%q, want %q", two.Name(), name)
			}
			one.Close()
			two.Close()
		}
	})
	d := New(Options{})
	defer d.Close()
	if want := fmt.Sprintf("cpu: %d threads", runtime.GOMAXPROCS(0)); !strings.HasPrefix(d.Name(), want) {
		t.Errorf("%q, want %s by default", d.Name(), want)
	}
	if m := d.Machine(); strings.TrimSpace(m) != m || m == "" || strings.ContainsAny(m, "\n\t") ||
		strings.HasPrefix(m, ":") {
		t.Errorf("machine %q", m)
	}
	if d.Spare() <= 0 {
		t.Errorf("%d bytes to spare", d.Spare())
	}
}

// Copies and sums between any two float types, of views with a pitch, element by element: converted exactly, rounded
// once, and nothing written beside the view.
func TestCopyAndAddOfEveryType(t *testing.T) {
	types := []tensor.DType{tensor.F32, tensor.F64, tensor.BF16}
	round := func(x float64, to tensor.DType) float64 {
		switch to {
		case tensor.F32:
			return float64(float32(x))
		case tensor.BF16:
			return float64(half.BF16ToF32(half.F32ToBF16(float32(x))))
		}
		return x
	}
	d := New(Options{Threads: 2})
	defer d.Close()
	r := rand.New(rand.NewPCG(5, 5))
	const rows, cols, from, to = 3, 700, 5, 690
	for _, a := range types {
		for _, b := range types {
			src, dst, sum := device.Empty(d, a, rows, cols), device.Empty(d, b, rows, cols),
				device.Empty(d, b, rows, cols)
			x, y := make([]float64, rows*cols), make([]float64, rows*cols)
			for i := range x {
				x[i], y[i] = round(r.NormFloat64()*1e3, a), round(r.NormFloat64(), b)
			}
			device.WriteFloats(d, src, x)
			device.WriteFloats(d, dst, y)
			device.WriteFloats(d, sum, y)
			d.Copy(dst.Columns(from, to), src.Columns(from, to))
			d.Add(sum.Columns(from, to), src.Columns(from, to))
			copied, added := make([]float64, rows*cols), make([]float64, rows*cols)
			device.ReadFloats(d, copied, dst)
			device.ReadFloats(d, added, sum)
			for i := range x {
				c, s := y[i], y[i]
				if at := i % cols; at >= from && at < to {
					c, s = round(x[i], b), round(x[i]+y[i], b)
				}
				if copied[i] != c || !(math.Abs(added[i]-s) <= math.Abs(s)*1e-6*map[tensor.DType]float64{tensor.F32: 1,
					tensor.F64: 1e-9, tensor.BF16: 1e4}[b]) {
					t.Fatalf("%v to %v, element %d: copied %g, want %g; added %g, want %g", a, b, i, copied[i],
						c, added[i], s)
				}
			}
		}
	}
}

// Bytes of another length than the tensor's, and absent tensors, are refused.
func TestBytesMustFit(t *testing.T) {
	d := New(Options{Threads: 1})
	defer d.Close()
	devicetest.BytesMustFit(t, d, "cpu")
}

// A sum that is too long for exact integers is one of bf16 operands.
func TestInt8OfLongSums(t *testing.T) {
	d := New(Options{Threads: 2, Precision: Int8})
	defer d.Close()
	r := rand.New(rand.NewPCG(6, 6))
	k := simd.MaxKInt8 + 8
	x, w, y := randomTensor(d, r, 2, k), randomTensor(d, r, 3, k), device.Empty(d, tensor.F32, 2, 3)
	d.MatMul(y, x, w, device.MatMul{TransB: true})
	bf := func(v float32) float64 { return float64(half.BF16ToF32(half.F32ToBF16(v))) }
	for i := range 2 {
		for j := range 3 {
			sum, exact := 0.0, 0.0
			for p := range k {
				sum += bf(f32(x)[i*k+p]) * bf(f32(w)[j*k+p])
				exact += float64(f32(x)[i*k+p]) * float64(f32(w)[j*k+p])
			}
			if got := float64(f32(y)[i*3+j]); !(math.Abs(got-sum) <= 1e-4*math.Sqrt(float64(k))) {
				t.Errorf("y[%d,%d] = %g, of bf16 operands %g, exact %g", i, j, got, sum, exact)
			}
		}
	}
}

// A product without rows, columns or terms: nothing to write, or zeros.
func TestEmptyProducts(t *testing.T) {
	for _, p := range []Precision{FP32, BF16, Int8} {
		d := New(Options{Threads: 2, Precision: p})
		r := rand.New(rand.NewPCG(7, 7))
		for _, s := range [][3]int{{0, 4, 5}, {4, 0, 5}, {4, 5, 0}} {
			m, n, k := s[0], s[1], s[2]
			c := device.Empty(d, tensor.F32, m, n)
			for i := range f32(c) {
				f32(c)[i] = 7
			}
			a, b := device.Empty(d, d.act, m, k), device.Empty(d, d.act, n, k)
			if m*k > 0 {
				a = randomTensor(d, r, m, k)
			}
			d.MatMul(c, a, b, device.MatMul{TransB: true, Accumulate: true})
			for _, v := range f32(c) {
				if v != 7 {
					t.Errorf("%v, %d×%d×%d: %g added", p, m, n, k, v-7)
				}
			}
			d.MatMul(c, a, b, device.MatMul{TransB: true})
			for _, v := range f32(c) {
				if v != 0 {
					t.Errorf("%v, %d×%d×%d: %g", p, m, n, k, v)
				}
			}
		}
		d.Close()
	}
}

// The next weight is fetched as far as its share goes, and no more than half a megabyte of it.
func TestErrandIsBounded(t *testing.T) {
	p := newPool(2)
	defer p.close()
	p.ahead, p.turns = span{at: 1 << 20, size: 300 << 10, n: 5}, 1
	for worker, want := range [][2]uintptr{{1 << 20, 1<<20 + 512<<10},
		{1<<20 + 2*300<<10, 1<<20 + 2*300<<10 + 512<<10}} {
		var e errand
		e.look(p, worker)
		if e.at != want[0] || e.end != want[1] {
			t.Errorf("worker %d: %d … %d, want %d … %d", worker, e.at, e.end, want[0], want[1])
		}
		e.at = 5
		if e.look(p, worker); e.at != 5 {
			t.Error("the same turn begins again")
		}
	}
}

// Rows of several slots: the pages of each are checked, also after rows of another slot that had them all.
func TestPagesOfEverySlot(t *testing.T) {
	d := New(Options{Threads: 2})
	defer d.Close()
	r := rand.New(rand.NewPCG(8, 8))
	s := device.AttnShape{B: 1, T: 1, Heads: 2, Groups: 2, D: 16, DV: 16, Scale: 0.25}
	ints := func(v ...int32) tensor.Tensor {
		x := device.Empty(d, tensor.I32, 1, len(v))
		device.WriteI32(d, x, v)
		return x
	}
	for _, c := range []struct {
		table []int32 // two slots of two pages, of four
		slots []int32
		pos   []int32
		good  bool
	}{
		{[]int32{0, 1, 2, 3}, []int32{0, 1}, []int32{31, 31}, true},
		{[]int32{0, 1, 99, 3}, []int32{0, 1}, []int32{31, 31}, false},
		{[]int32{0, 1, 2, -1}, []int32{0, 1}, []int32{31, 31}, false},
		{[]int32{0, 1, 2, 99}, []int32{0, 1}, []int32{31, 15}, true},
		{[]int32{0, 99, 2, 3}, []int32{1, 0}, []int32{31, 16}, false},
		{[]int32{0, 1, 2, 3}, []int32{1, 2}, []int32{0, 0}, false},
		{[]int32{0, 1, 2, 3}, []int32{0, -1}, []int32{0, 0}, false},
		{[]int32{0, 1, 2, 3}, []int32{0, 0}, []int32{0, 32}, false},
		{[]int32{0, 1, 2, 3}, []int32{0, 0}, []int32{-1, 0}, false},
		{[]int32{0, 1, 99, 3}, []int32{0, 0, 1}, []int32{3, 31, 31}, false},
	} {
		cache := &device.Cache{K: device.Empty(d, d.Products(), 64, 32), V: device.Empty(d, d.Products(), 64, 32),
			Table: device.Empty(d, tensor.I32, 2, 2), PageSize: 16}
		device.WriteI32(d, cache.Table, c.table)
		n := len(c.slots)
		d.AttentionCached(&device.Attn{AttnShape: s, Q: randomTensor(d, r, n, 32), Out: device.Empty(d, d.act, n, 32)},
			cache, ints(c.slots...), ints(c.pos...))
		if err := d.Sync(); (err == nil) != c.good {
			t.Errorf("%+v: %v", c, err)
		}
		if c.good {
			continue
		}
		bad := c.slots[n-1] == 2 || c.slots[n-1] == -1 || c.pos[0] < 0 || c.pos[n-1] >= 32
		d.CacheWrite(cache, randomTensor(d, r, n, 32), randomTensor(d, r, n, 32), ints(c.slots...), ints(c.pos...))
		if err := d.Sync(); err == nil && bad { // a write needs its own page only
			t.Errorf("%+v: written", c)
		}
	}
}
