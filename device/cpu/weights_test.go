package cpu

import (
	"maps"
	"math"
	"math/rand/v2"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// Every op that writes a weight makes the next product use what it wrote.
func TestWeightsFollowWrites(t *testing.T) {
	const n, k = 40, 64
	r := rand.New(rand.NewPCG(1, 1))
	for _, p := range []Precision{BF16, Int8} {
		d, fresh := New(Options{Threads: 2, Precision: p}), New(Options{Threads: 2, Precision: p})
		x, w, other := randomTensor(d, r, 7, k), randomTensor(d, r, n, k), randomTensor(d, r, n, k)
		y, dx, want := device.Empty(d, d.act, 7, n), device.Empty(d, d.act, 7, k), device.Empty(d, d.act, 7, n)
		for name, write := range writers(d, r, w, other) {
			d.MatMul(y, x, w, device.MatMul{TransB: true})
			d.MatMul(dx, y, w, device.MatMul{})
			write()
			d.MatMul(y, x, w, device.MatMul{TransB: true})
			d.MatMul(dx, y, w, device.MatMul{})
			again := randomTensor(fresh, r, n, k) // memory that the other device has never seen
			copy(again.Buf.Host, w.Buf.Host)
			fresh.MatMul(want, x, again, device.MatMul{TransB: true})
			sameBits(t, p.String()+" forward after "+name, y, want)
			back := device.Empty(d, d.act, 7, k)
			fresh.MatMul(back, y, again, device.MatMul{})
			sameBits(t, p.String()+" backward after "+name, dx, back)
			fresh.Free(again.Buf)
		}
		d.Close()
		fresh.Close()
	}
}

// writers are ops that change w.
func writers(d *Device, r *rand.Rand, w, other tensor.Tensor) map[string]func() {
	flat := func(t tensor.Tensor) tensor.Tensor { return t.Reshape(1, t.Len()) }
	zero := func() tensor.Tensor { return device.Empty(d, tensor.F32, 1, w.Len()) }
	rate, sq := device.Empty(d, tensor.F32, 1, 3), device.Empty(d, tensor.F32, 1, 1)
	copy(f32(rate), []float32{0.1, 0.1, 0.1})
	master := tensor.Tensor{}
	if d.act == tensor.BF16 {
		master = device.Empty(d, tensor.I16, 1, w.Len())
	}
	g := randomOf(d, tensor.F32, r, 1, w.Len())
	all := map[string]func(){
		"write": func() { device.WriteFloats(d, w, f32(randomOf(d, tensor.F32, r, w.Rows, w.Cols))) },
		"write of a row": func() {
			device.WriteFloats(d, w.RowRange(3, 4),
				f32(randomOf(d, tensor.F32, r, 1, w.Cols)))
		},
		"copy":    func() { d.Copy(w, other) },
		"add":     func() { d.Add(w, other) },
		"product": func() { d.MatMul(w, other, randomTensor(d, r, w.Cols, w.Cols), device.MatMul{}) },
		"adamw": func() {
			d.AdamW(&device.AdamW{W: flat(w), Master: master, M: zero(), V: zero(), G: g, Rate: rate, GradSq: sq,
				Beta1: 0.9, Beta2: 0.9, Eps: 1e-8})
		},
		"sigmoid": func() { d.Sigmoid(w, other) },
	}
	rowWriters(d, r, w, other, all)
	attentionWriters(d, r, w, all)
	if d.act == tensor.F32 { // a sum over rows is a statistic
		ids := device.Empty(d, tensor.I32, 1, 3)
		all["embed backward"] = func() { d.EmbedBackward(w, randomTensor(d, r, 3, w.Cols), ids) }
	}
	return all
}

// rowWriters adds the ops on rows whose results are activations.
func rowWriters(d *Device, r *rand.Rand, w, other tensor.Tensor, all map[string]func()) {
	n, k := w.Rows, w.Cols
	random := func(rows, cols int) tensor.Tensor { return randomTensor(d, r, rows, cols) }
	ids := device.Empty(d, tensor.I32, 1, n)
	for i := range i32(ids) {
		i32(ids)[i] = int32(i % 3)
	}
	rstd, table := device.Empty(d, tensor.F32, 1, n), randomOf(d, tensor.F32, r, 3, 16)
	for i := range f32(rstd) {
		f32(rstd)[i] = 1.5
	}
	targets := device.Empty(d, tensor.I32, 1, n)
	maps.Copy(all, map[string]func(){
		"zero":       func() { d.Zero(w) },
		"bias":       func() { d.AddBias(w, random(1, k)) },
		"embed":      func() { d.Embed(w, random(3, k), ids) },
		"norm":       func() { d.RMSNorm(w, rstd, tensor.Tensor{}, other, tensor.Tensor{}, random(1, k), 1e-5) },
		"norm's sum": func() { d.RMSNorm(random(n, k), rstd, w, other, random(n, k), random(1, k), 1e-5) },
		"norm backward": func() {
			d.RMSNormBackward(w, device.Empty(d, tensor.F32, 1, k), other, random(n, k), random(1, k), rstd)
		},
		"rope":            func() { d.Rope(w, table, ids, device.Rope{Heads: 4, Dim: k / 4}) },
		"swiglu":          func() { d.SwiGLU(w, random(n, 2*k)) },
		"swiglu backward": func() { d.SwiGLUBackward(w, random(n, k/2), random(n, k/2), random(n, k)) },
		"heads apart":     func() { d.SubtractHeads(w, random(n, 2*k), randomOf(d, tensor.F32, r, n, 4), 4) },
		"heads apart backward": func() {
			d.SubtractHeadsBackward(w, device.Empty(d, tensor.F32, n, 4), random(n, k/2), random(n, k),
				randomOf(d, tensor.F32, r, n, 4), 4)
		},
		"sigmoid backward": func() { d.SigmoidBackward(w, other, random(n, k)) },
		"a collective": func() {
			copy(w.Buf.Host, other.Buf.Host)
			d.Wrote(w)
		},
		"classifier's rows": func() {
			d.Classify(&device.Classifier{X: other, W: random(9, k), Targets: targets,
				Loss: device.Empty(d, tensor.F32, 1, n), DX: w, DW: device.Empty(d, tensor.F32, 9, k), Scale: 1})
		},
	})
}

// attentionWriters adds attention, forward and backward.
func attentionWriters(d *Device, r *rand.Rand, w tensor.Tensor, all map[string]func()) {
	n, k := w.Rows, w.Cols
	random := func(rows, cols int) tensor.Tensor { return randomTensor(d, r, rows, cols) }
	s := device.AttnShape{B: 1, T: n, Heads: 4, Groups: 4, D: k / 4, DV: k / 4, Scale: 0.25}
	attn := func(out tensor.Tensor) *device.Attn {
		return &device.Attn{AttnShape: s, Out: out, LSE: device.Empty(d, tensor.F32, n, 4), Q: random(n, k),
			K: random(n, k), V: random(n, k)}
	}
	backward := func(dq, dk, dv tensor.Tensor) {
		a := attn(random(n, k))
		d.Attention(a)
		d.AttentionBackward(a, &device.AttnGrad{DOut: random(n, k), DQ: dq, DK: dk, DV: dv})
	}
	diff := func(out, out2 tensor.Tensor) {
		lam := randomOf(d, tensor.F32, r, 1, 1)
		d.DiffAttention(&device.DiffAttn{AttnShape: s, Keys: 1, Q: random(n, 2*k), K: random(n, k), V: random(n, k),
			Lam: lam, Out: out, Out2: out2})
	}
	maps.Copy(all, map[string]func(){
		"attention": func() { d.Attention(attn(w)) },
		"attention's raw": func() {
			a := attn(random(n, k))
			a.Norm, a.Raw, a.Rstd = device.HeadNorm{On: true, Eps: 1e-5, Scale: 1}, w, device.Empty(d, tensor.F32, n, 4)
			d.Attention(a)
		},
		"attention's dq":         func() { backward(w, random(n, k), random(n, k)) },
		"attention's dk":         func() { backward(random(n, k), w, random(n, k)) },
		"attention's dv":         func() { backward(random(n, k), random(n, k), w) },
		"differential attention": func() { diff(w, random(n, k)) },
		"the second map's":       func() { diff(random(n, k), w) },
	})
}

// What is packed of memory that was given back is given back too.
func TestWeightsForget(t *testing.T) {
	d := New(Options{Threads: 1, Precision: BF16})
	defer d.Close()
	r := rand.New(rand.NewPCG(2, 2))
	x, y := randomTensor(d, r, 3, 50), device.Empty(d, tensor.F32, 3, 60)
	for range 3 {
		w := randomTensor(d, r, 60, 50)
		d.MatMul(y, x, w, device.MatMul{TransB: true})
		if n := len(d.weights.byKey); n != 1 {
			t.Fatalf("%d weights are packed, want 1", n)
		}
		d.Free(w.Buf)
	}
	if n := len(d.weights.byKey); n != 0 {
		t.Errorf("%d weights are packed of freed memory", n)
	}
	// Memory that was never freed may come again from the garbage collector: here, memory anywhere.
	d.weights.byKey = map[weightKey]*weight{{at: 1}: {end: ^uintptr(0), buf: d.allocate(64)}}
	b := d.Alloc(100)
	if n := len(d.weights.byKey); n != 0 {
		t.Errorf("%d weights are packed of memory that is new", n)
	}
	d.Free(b)
}

// With bytes a product is that of the rounded weights and of rows that are rounded far less than to bfloat16, for few
// rows and for many.
func TestMatMulInt8(t *testing.T) {
	each(t, func(t *testing.T) {
		d := New(Options{Threads: 3, Precision: Int8})
		defer d.Close()
		r := rand.New(rand.NewPCG(3, 3))
		for _, s := range [][3]int{{1, 33, 70}, {4, 64, 64}, {5, 100, 96}, {70, 130, 200}} {
			m, n, k := s[0], s[1], s[2]
			x, w, y := randomTensor(d, r, m, k), randomTensor(d, r, n, k), device.Empty(d, tensor.F32, m, n)
			d.MatMul(y, x, w, device.MatMul{TransB: true})
			for i := range m {
				for j := range n {
					row := f32(w)[j*k : (j+1)*k]
					var top float32
					for _, v := range row {
						top = max(top, v, -v)
					}
					var sum float64
					for p, v := range row {
						sum += float64(f32(x)[i*k+p]) * math.RoundToEven(float64(v*(127/top))) * float64(top/127)
					}
					if got := float64(f32(y)[i*n+j]); !(math.Abs(got-sum) <= 2e-4*math.Sqrt(float64(k))) {
						t.Fatalf("%d×%d×%d: y[%d,%d] = %v, want %v", m, n, k, i, j, got, sum)
					}
				}
			}
		}
	})
}

// A row has the same bits alone, among few, and among many, with bytes too.
func TestMatMulRowsPacked(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, p := range []Precision{BF16, Int8} {
			d := New(Options{Threads: 2, Precision: p})
			r := rand.New(rand.NewPCG(4, 4))
			const m, n, k = 70, 100, 770
			x, w := randomTensor(d, r, m, k), randomTensor(d, r, n, k)
			op := device.MatMul{TransB: true}
			whole, part := device.Empty(d, tensor.F32, m, n), device.Empty(d, tensor.F32, m, n)
			d.MatMul(whole, x, w, op)
			for _, batch := range []int{1, 3, 5, 17, 33, 64} {
				for i := 0; i+batch <= m; i += batch {
					d.MatMul(part.RowRange(i, i+batch), x.RowRange(i, i+batch), w, op)
					sameBits(t, p.String(), part.RowRange(i, i+batch), whole.RowRange(i, i+batch))
				}
			}
			d.Close()
		}
	})
}
