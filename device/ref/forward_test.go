package ref

import (
	"math"
	"slices"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/internal/half"
	"antiphase/tensor"
)

// set is a tensor of these values.
func (b *bench) set(rows int, v ...float64) tensor.Tensor {
	t := b.zeros(rows, len(v)/rows)
	copy(tensor.Host[float64](t), v)
	return t
}

// Numbers worked by hand from the contracts' equations: finite differences only hold backward to forward.
func TestForwardByHand(t *testing.T) {
	b := newBench(1)
	e := math.Exp
	y, rstd, sum := b.zeros(2, 2), b.zeros(1, 2), b.zeros(2, 2)
	b.RMSNorm(y, rstd, sum, b.set(2, 1, 2, 0, 0), b.set(2, 2, 2, 0, 0), b.set(1, 2, 10), 0.5)
	inv := 1 / math.Sqrt((9+16)/2.+0.5)
	near(t, "sum", load(sum).v, []float64{3, 4, 0, 0})
	near(t, "rstd", load(rstd).v, []float64{inv, 1 / math.Sqrt(0.5)})
	near(t, "normed", load(y).v, []float64{3 * inv * 2, 4 * inv * 10, 0, 0})
	b.RMSNorm(y, tensor.Tensor{}, tensor.Tensor{}, b.set(2, 3, 4, 1, 1), tensor.Tensor{}, b.set(1, 1, 1), 0)
	near(t, "without a sum", load(y).v, []float64{3 / math.Sqrt(12.5), 4 / math.Sqrt(12.5), 1, 1})

	b.SwiGLU(y, b.set(2, 1, -2, 3, 5, 0, 1, 7, -1)) // gate 1, −2; up 3, 5
	near(t, "swiglu", load(y).v, []float64{3 / (1 + e(-1)), -10 / (1 + e(2)), 0, -1 / (1 + e(-1))})
	again := b.zeros(2, 2)
	b.SwiGLUBackward(b.zeros(2, 4), again, b.set(2, 1, 1, 1, 1), b.set(2, 1, -2, 3, 5, 0, 1, 7, -1))
	near(t, "swiglu again", load(again).v, load(y).v)
	b.Sigmoid(y, b.set(2, 0, 1, -1, 800))
	near(t, "sigmoid", load(y).v, []float64{0.5, 1 / (1 + e(-1)), 1 / (1 + e(1)), 1})

	apart, pairs := b.zeros(2, 2), b.set(2, 1, 2, 10, 100, 3, 4, 20, 200) // heads 1, 2 and 10, 100; 3, 4 and 20, 200
	b.SubtractHeads(apart, pairs, b.set(2, 0.5, 0.1, 2, -1), 2)
	near(t, "heads apart", load(apart).v, []float64{1 - 5, 2 - 10, 3 - 40, 4 + 200})
	b.SubtractHeads(apart, pairs, b.set(1, 0.5), 1)
	near(t, "heads apart by one λ", load(apart).v, []float64{1 - 5, 2 - 50, 3 - 10, 4 - 100})

	lam := b.zeros(1, 1)
	b.Lambda(lam, device.LambdaVecs{Q1: b.set(1, 1, 2), K1: b.set(1, 3, -1), Q2: b.set(1, 0.5, 0), K2: b.set(1, 2, 9)},
		0.8)
	near(t, "λ", load(lam).v, []float64{e(1) - e(1) + 0.8})
	b.Lambda(lam, device.LambdaVecs{Q1: b.set(1, 1, 0), K1: b.set(1, 2, 0), Q2: b.set(1, 0, 0), K2: b.set(1, 2, 9)},
		0.2)
	near(t, "λ", load(lam).v, []float64{e(2) - 1 + 0.2})

	sq := b.set(1, 5)
	b.SumSquares(sq, b.set(2, 1, -2, 3, 0))
	near(t, "squares", load(sq).v, []float64{5 + 14})
	b.Add(y, b.set(2, 1, 2, 3, 4))
	near(t, "added", load(y).v, []float64{1.5, 1/(1+e(-1)) + 2, 1/(1+e(1)) + 3, 5})
	b.AddBias(y, b.set(1, 10, 20))
	near(t, "biased", load(y).v[2:], []float64{1/(1+e(1)) + 13, 25})
	db := b.set(1, 100, 200)
	b.BiasBackward(db, b.set(2, 1, 2, 3, 4))
	near(t, "bias gradient", load(db).v, []float64{104, 206})
}

// Pairs rotate by cos and sin of their own angle at the row's position: neighbours, or halves of a head.
func TestRopeByHand(t *testing.T) {
	b := newBench(2)
	table := b.set(2, 1, 1, 0, 0, 0.6, 0.28, 0.8, 0.96) // of position 1: cos 0.6 and 0.28, sin 0.8 and 0.96
	for inter, want := range map[bool][]float64{
		false: {1*0.6 - 3*0.8, 2*0.28 - 4*0.96, 1*0.8 + 3*0.6, 2*0.96 + 4*0.28},
		true:  {1*0.6 - 2*0.8, 1*0.8 + 2*0.6, 3*0.28 - 4*0.96, 3*0.96 + 4*0.28},
	} {
		x := b.set(2, 1, 2, 3, 4, 1, 2, 3, 4)
		op := device.Rope{Heads: 1, Dim: 4, Interleaved: inter}
		b.Rope(x, table, b.ints(0, 1), op)
		near(t, "position 0", load(x).v[:4], []float64{1, 2, 3, 4})
		near(t, "position 1", load(x).v[4:], want)
		op.Inverse = true
		b.Rope(x, table, b.ints(0, 1), op)
		near(t, "back", load(x).v[4:], []float64{1, 2, 3, 4})
		b.Rope(x, table, b.ints(2, -1), op)
		if err := b.Sync(); err == nil || !strings.Contains(err.Error(), "position 2 outside a table of 2") {
			t.Errorf("%v", err)
		}
		near(t, "out of the table", load(x).v, []float64{1, 2, 3, 4, 1, 2, 3, 4})
	}
}

// The lowest of the largest; nothing where a row has no order.
func TestArgMaxByHand(t *testing.T) {
	b := newBench(3)
	inf, ids := math.Inf(1), b.ints(9, 9, 9, 9, 9, 9)
	b.ArgMax(ids, b.set(6, 1, 3, 3, -5, -2, -9, math.NaN(), 1, 2, 1, inf, 2, -inf, -inf, -inf, -inf, 0, -inf))
	if got := integers(ids); !slices.Equal(got, []int32{1, 1, -1, -1, -1, 1}) {
		t.Errorf("%v", got)
	}
}

// Rows of a table; ids of another rank are zeros and no fault, others outside are a fault.
func TestEmbedByHand(t *testing.T) {
	b := newBench(4)
	table, y := b.set(3, 1, 2, 3, 4, 5, 6), b.set(4, 9, 9, 9, 9, 9, 9, 9, 9)
	b.Embed(y, table, b.ints(2, device.Elsewhere, 0, 2))
	near(t, "rows", load(y).v, []float64{5, 6, 0, 0, 1, 2, 5, 6})
	if err := b.Sync(); err != nil {
		t.Error(err)
	}
	grad := b.set(3, 10, 10, 10, 10, 10, 10)
	b.EmbedBackward(grad, b.set(4, 1, 2, 3, 4, 5, 6, 7, 8), b.ints(2, device.Elsewhere, 0, 2))
	near(t, "gradient", load(grad).v, []float64{15, 16, 10, 10, 18, 20})
	for _, id := range []int32{3, -1} {
		b.Embed(y, table, b.ints(0, 0, 0, id))
		if err := b.Sync(); err == nil || !strings.Contains(err.Error(), "Embed") {
			t.Errorf("id %d: %v", id, err)
		}
		near(t, "a wrong id", load(y).v[6:], []float64{0, 0})
	}
}

// Cross-entropy by hand, and of classes on two ranks: their parts give the loss and the gradients of the whole.
func TestClassifyParts(t *testing.T) {
	b := newBench(5)
	x, w := b.normal(4, 3), b.normal(6, 3)
	targets := []int32{5, 0, -1, 2}
	whole := &device.Classifier{X: x, W: w, Targets: b.ints(targets...), Loss: b.zeros(1, 4), DX: b.zeros(4, 3),
		DW: b.zeros(6, 3), Scale: 0.5}
	b.Classify(whole)
	for n, target := range targets {
		sum, hit := 0.0, 0.0
		for v := range 6 {
			y := dot(load(x).row(n), load(w).row(v))
			if sum += math.Exp(y); int32(v) == target {
				hit = y
			}
		}
		want := math.Log(sum) - hit
		if target < 0 {
			want = 0
		}
		near(t, "loss", load(whole.Loss).v[n:n+1], []float64{want})
	}
	parts, dx, dw := b.zeros(4, 4), b.zeros(4, 3), b.zeros(6, 3)
	rank := func(r int) *device.Classifier {
		local := make([]int32, 4)
		for i, id := range targets {
			switch at := id - int32(3*r); {
			case id < 0:
				local[i] = -1
			case at >= 0 && at < 3:
				local[i] = at
			default:
				local[i] = device.Elsewhere
			}
		}
		return &device.Classifier{X: x, W: w.RowRange(3*r, 3*r+3), Targets: b.ints(local...),
			Loss: b.set(1, 7, 7, 7, 7), Scale: 0.5}
	}
	for r := range 2 {
		c := rank(r)
		c.Part = parts.RowRange(2*r, 2*r+2)
		b.Classify(c)
		near(t, "a loss that is not known yet", load(c.Loss).v, []float64{7, 7, 7, 7})
	}
	for r := range 2 {
		c := rank(r)
		c.Parts, c.DX, c.DW = parts, b.zeros(4, 3), dw.RowRange(3*r, 3*r+3)
		b.Classify(c)
		near(t, "loss of a rank", load(c.Loss).v, load(whole.Loss).v)
		b.Add(dx, c.DX)
	}
	near(t, "dx", load(dx).v, load(whole.DX).v)
	near(t, "dw", load(dw).v, load(whole.DW).v)
	bad := rank(0)
	bad.Part = b.zeros(2, 4)
	bad.Targets = b.ints(3, 0, 0, 0)
	if b.Classify(bad); b.Sync() == nil {
		t.Error("a class that no rank has is no fault")
	}
}

// Over a cache of pages in any order a row attends as the last row of a sequence of its own; with and without a norm,
// with one key head and two. Positions in no page are faults.
func TestCachedIsTheLastRow(t *testing.T) {
	b := newBench(6)
	const T, H, G, D, DV, page = 7, 4, 2, 3, 6, 2
	for _, keys := range []int{0, 1, 2} { // 0: plain attention
		for _, norm := range []bool{false, true} {
			s := device.AttnShape{B: 1, T: T, Heads: H, Groups: G, D: D, DV: DV, Scale: 0.6}
			n := device.HeadNorm{On: norm, Eps: 0.1, Scale: 0.3}
			raw, rstd := tensor.Tensor{}, tensor.Tensor{}
			if norm {
				n.Weight, raw, rstd = b.normal(1, DV), b.zeros(T, H*DV), b.zeros(T, H)
			}
			kw := G * max(keys, 1) * D
			k, v, lam := b.normal(T, kw), b.normal(T, G*DV), b.normal(T, H)
			c := &device.Cache{K: b.zeros(5*page, kw), V: b.zeros(5*page, G*DV),
				Table: device.Empty(b, tensor.I32, 2, 4), PageSize: page}
			device.WriteI32(b, c.Table, []int32{0, 0, 0, 0, 3, 1, 4, 2})
			slot, pos := b.ints(1, 1, 1, 1, 1, 1, 1), b.ints(0, 1, 2, 3, 4, 5, 6)
			b.CacheWrite(c, k, v, slot, pos)
			near(t, "position 5", load(c.K.RowRange(4*page+1, 4*page+2)).v, load(k.RowRange(5, 6)).v)
			want, got := b.zeros(T, H*DV), b.zeros(T, H*DV)
			if keys == 0 {
				q := b.normal(T, H*D)
				b.Attention(&device.Attn{AttnShape: s, Norm: n, Q: q, K: k, V: v, Out: want, Raw: raw, Rstd: rstd})
				b.AttentionCached(&device.Attn{AttnShape: s, Norm: n, Q: q, Out: got}, c, slot, pos)
			} else {
				q := b.normal(T, 2*H*D)
				b.DiffAttention(&device.DiffAttn{AttnShape: s, Keys: keys, Norm: n, Q: q, K: k, V: v, Lam: lam,
					Out: want, Raw: raw, Rstd: rstd})
				b.DiffAttentionCached(&device.DiffAttn{AttnShape: s, Keys: keys, Norm: n, Q: q, Lam: lam, Out: got}, c,
					slot, pos)
			}
			near(t, "cached rows", load(got).v, load(want).v)
			device.WriteI32(b, c.Table.RowRange(0, 1), []int32{3, 1, 4, 2}) // the same pages by another slot
			first := b.ints(0)
			if keys == 0 {
				q := b.normal(1, H*D)
				one, other := b.zeros(1, H*DV), b.zeros(1, H*DV)
				b.AttentionCached(&device.Attn{AttnShape: s, Norm: n, Q: q, Out: one}, c, first, b.ints(6))
				b.AttentionCached(&device.Attn{AttnShape: s, Norm: n, Q: q, Out: other}, c, b.ints(1), b.ints(6))
				near(t, "slot 0", load(one).v, load(other).v)
			}
			if err := b.Sync(); err != nil {
				t.Fatal(err)
			}
			for _, at := range [][2]int32{{2, 0}, {-1, 0}, {1, 8}, {1, -1}} {
				b.CacheWrite(c, k.RowRange(0, 1), v.RowRange(0, 1), b.ints(at[0]), b.ints(at[1]))
				if b.Sync() == nil {
					t.Errorf("position %d of slot %d is no fault", at[1], at[0])
				}
			}
		}
	}
}

// The parameter that a step changes: the weight, its master with the weight rounded from it, or the number whose halves
// both are.
func TestAdamWMasters(t *testing.T) {
	f32 := func(d *Device, v ...float32) tensor.Tensor {
		x := device.Empty(d, tensor.F32, 1, len(v))
		device.WriteFloats(d, x, v)
		return x
	}
	read := func(d *Device, x tensor.Tensor) []float32 {
		out := make([]float32, x.Len())
		device.ReadFloats(d, out, x)
		return out
	}
	p := []float32{1.0009765, -2.5, 0.3333333}
	want := make([]float32, 3)
	for i, x := range p { // m/c1 = g and √(v/c2) = |g|: the update is sign(g) and the decay
		want[i] = float32(float64(x) - 0.01*(1+0.1*float64(x)))
	}
	for _, kind := range []string{"weight", "master", "rounded", "halves"} {
		act := map[string]tensor.DType{"weight": tensor.F32, "master": tensor.BF16, "rounded": tensor.F32,
			"halves": tensor.BF16}[kind]
		d := NewTypes(device.Types{Act: act, Stat: tensor.F32})
		a := &device.AdamW{W: device.Empty(d, act, 1, 3), M: f32(d, 0, 0, 0), V: f32(d, 0, 0, 0), G: f32(d, 2, 2, 2),
			Rate: f32(d, 0.01, 0.5, 0.25), GradSq: f32(d, 12), Beta1: 0.5, Beta2: 0.75, Eps: 0, Decay: 0.1,
			RoundBF16: kind == "rounded"}
		switch kind {
		case "halves":
			a.Master = device.Empty(d, tensor.I16, 1, 3)
			device.WriteSplit(d, a.W, a.Master, p)
		case "weight":
			device.WriteFloats(d, a.W, p)
		default:
			a.Master = f32(d, p...)
			device.WriteFloats(d, a.W, p)
		}
		d.AdamW(a)
		got := make([]float32, 3)
		switch kind {
		case "halves":
			device.ReadSplit(d, got, a.W, a.Master)
		case "weight":
			got = read(d, a.W)
		default:
			got = read(d, a.Master)
			for i, w := range read(d, a.W) {
				if w != half.BF16ToF32(half.F32ToBF16(got[i])) {
					t.Errorf("%s: the weight is %g, its master %g", kind, w, got[i])
				}
			}
		}
		for i := range want {
			if math.Abs(float64(got[i]-want[i])) > 1e-6 {
				t.Errorf("%s: %g became %g, want %g", kind, p[i], got[i], want[i])
			}
		}
		if m, v := read(d, a.M), read(d, a.V); m[0] != 1 || v[0] != 1 {
			t.Errorf("%s: moments %v and %v", kind, m, v)
		}
	}
}

// An oracle of other types stores each result rounded once, and names them; what is freed cannot be read.
func TestOracleOfOtherTypes(t *testing.T) {
	d := NewTypes(device.Types{Act: tensor.BF16, Stat: tensor.F32})
	if d.Types().Cache != tensor.BF16 ||
		NewTypes(device.Types{Act: tensor.BF16, Stat: tensor.F32, Cache: tensor.F32}).Types().Cache != tensor.F32 ||
		!strings.Contains(d.Name(), "BF16 and F32") {
		t.Errorf("%s: %+v", d.Name(), d.Types())
	}
	a, w, c := device.Empty(d, tensor.BF16, 1, 2), device.Empty(d, tensor.BF16, 1, 2),
		device.Empty(d, tensor.BF16, 1, 1)
	device.WriteFloats(d, a, []float64{1.0078125, 3})
	device.WriteFloats(d, w, []float64{1.0078125, 0.0078125})
	d.MatMul(c, a, w, device.MatMul{TransB: true})
	exact := 1.0078125*1.0078125 + 3*0.0078125
	got := make([]float64, 1)
	if device.ReadFloats(d, got, c); got[0] != float64(half.BF16ToF32(half.F32ToBF16(float32(exact)))) {
		t.Errorf("%g, exactly %g", got[0], exact)
	}
	d.Free(c.Buf)
	defer func() {
		if recover() == nil {
			t.Error("freed memory was read")
		}
	}()
	device.ReadFloats(d, got, c)
}

// Gradients of weights add to what is there: a second backward pass doubles them, in attention with a norm too.
func TestWeightGradientsAccumulate(t *testing.T) {
	b := newBench(8)
	s := device.AttnShape{B: 1, T: 4, Heads: 2, Groups: 1, D: 3, DV: 6, Scale: 0.6}
	norm := device.HeadNorm{On: true, Weight: b.normal(1, 6), Eps: 0.1, Scale: 0.3}
	a := &device.Attn{AttnShape: s, Norm: norm, Q: b.normal(4, 6), K: b.normal(4, 3), V: b.normal(4, 6),
		Out: b.zeros(4, 12), Raw: b.zeros(4, 12), Rstd: b.zeros(4, 2), LSE: b.zeros(4, 2)}
	b.Attention(a)
	g := &device.AttnGrad{DOut: b.normal(4, 12), DQ: b.zeros(4, 6), DK: b.zeros(4, 3), DV: b.zeros(4, 6),
		DNorm: b.zeros(1, 6)}
	two := &device.DiffAttn{AttnShape: s, Keys: 1, Norm: norm, Q: b.normal(4, 12), K: a.K, V: a.V, Lam: b.normal(1, 1),
		Out: b.zeros(4, 12), Raw: b.zeros(4, 12), Out2: b.zeros(4, 12), Rstd: b.zeros(4, 2), LSE: b.zeros(4, 4)}
	b.DiffAttention(two)
	h := &device.DiffAttnGrad{DOut: g.DOut, DQ: b.zeros(4, 12), DK: b.zeros(4, 3), DV: b.zeros(4, 6),
		DNorm: b.zeros(1, 6), DLam: b.zeros(4, 2)}
	var once [2][]float64
	for n := range 2 {
		b.AttentionBackward(a, g)
		b.DiffAttentionBackward(two, h)
		for i, d := range []tensor.Tensor{g.DNorm, h.DNorm} {
			if n == 0 {
				once[i] = load(d).v
				continue
			}
			for j, x := range once[i] {
				near(t, "twice", load(d).v[j:j+1], []float64{2 * x})
			}
		}
	}
	if dq := load(g.DQ).v; slices.Max(dq) == 0 {
		t.Error("no gradient")
	}
}
