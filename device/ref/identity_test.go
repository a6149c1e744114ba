package ref

import (
	"math"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// near fails unless got and want agree to 1e-12.
func near(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= 1e-12*max(1, math.Abs(want[i]))) {
			t.Fatalf("%s[%d] = %v, want %v", what, i, got[i], want[i])
		}
	}
}

var shape = device.AttnShape{B: 2, T: 5, Heads: 4, Groups: 2, D: 3, DV: 6, Scale: 0.6}

// materialised is differential attention as whole T×T matrices, written from the paper's formula and not from
// the op: scores with −∞ above the diagonal and outside the document, exp and row sums, A1 − λA2, times V.
func materialised(a *device.DiffAttn, b, h int) [][]float64 {
	q, k, v := load(a.Q).v, load(a.K).v, load(a.V).v
	at := func(x []float64, cols, r, c int) float64 { return x[(b*a.T+r)*cols+c] }
	group := h * a.Groups / a.Heads
	soft := func(i int) [][]float64 {
		qc, kc := (2*h+i)*a.D, (group*a.Keys+i*(a.Keys-1))*a.D
		m := make([][]float64, a.T)
		for t := range m {
			m[t] = make([]float64, a.T)
			sum := 0.0
			for s := range m[t] {
				score := 0.0
				for d := range a.D {
					score += at(q, a.Q.Cols, t, qc+d) * at(k, a.K.Cols, s, kc+d)
				}
				if s > t || a.Start.Ok() && s < int(integers(a.Start)[b*a.T+t]) {
					score = math.Inf(-1)
				}
				m[t][s] = math.Exp(score * a.Scale)
				sum += m[t][s]
			}
			for s := range m[t] {
				m[t][s] /= sum
			}
		}
		return m
	}
	a1, a2 := soft(0), soft(1)
	out := make([][]float64, a.T)
	for t := range out {
		out[t] = make([]float64, a.DV)
		lam := load(a.Lam).row(b*a.T + t)[h]
		for s := range a.T {
			for c := range a.DV {
				out[t][c] += (a1[t][s] - lam*a2[t][s]) * at(v, a.V.Cols, s, group*a.DV+c)
			}
		}
	}
	return out
}

func TestDiffAttentionMaterialised(t *testing.T) {
	b := newBench(21)
	for _, keys := range []int{1, 2} {
		for name, start := range starts(b) {
			a, _ := b.diffAttn(shape, keys, device.HeadNorm{}, start)
			b.DiffAttention(a)
			for seq := range a.B {
				for h := range a.Heads {
					for row, want := range materialised(a, seq, h) {
						near(t, name, load(a.Out).head(seq*a.T+row, h, a.DV), want)
					}
				}
			}
		}
	}
}

// With V of ones each output is the row sum of A1 − λA2, which is 1 − λ, and Out2 is the row sum of A2.
func TestRowSums(t *testing.T) {
	b := newBench(22)
	for _, start := range starts(b) {
		a, _ := b.diffAttn(shape, 2, device.HeadNorm{}, start)
		for i := range tensor.Host[float64](a.V) {
			tensor.Host[float64](a.V)[i] = 1
		}
		b.DiffAttention(a)
		for n := range a.B * a.T {
			for h := range a.Heads {
				for c := range a.DV {
					near(t, "row sum", load(a.Out).head(n, h, a.DV)[c:c+1], []float64{1 - load(a.Lam).row(n)[h]})
					near(t, "row sum of A2", load(a.Out2).head(n, h, a.DV)[c:c+1], []float64{1})
				}
			}
		}
	}
}

// λ = 0 leaves the first map: Attention on Q1 and K1, and its LSE.
func TestDiffAttentionWithoutLambda(t *testing.T) {
	b := newBench(23)
	a, _ := b.diffAttn(shape, 2, device.HeadNorm{On: true, Eps: 1e-5, Scale: 0.5}, tensor.Tensor{})
	b.Zero(a.Lam)
	b.DiffAttention(a)
	p, _ := b.attn(shape, a.Norm, tensor.Tensor{})
	q1, k1 := load(p.Q), load(p.K)
	for n := range q1.rows {
		for h := range a.Heads {
			copy(q1.head(n, h, a.D), load(a.Q).head(n, 2*h, a.D))
		}
		for g := range a.Groups {
			copy(k1.head(n, g, a.D), load(a.K).head(n, 2*g, a.D))
		}
	}
	store(p.Q, q1)
	store(p.K, k1)
	b.Copy(p.V, a.V)
	b.Attention(p)
	near(t, "out", load(a.Out).v, load(p.Out).v)
	near(t, "raw", load(a.Raw).v, load(p.Raw).v)
	near(t, "rstd", load(a.Rstd).v, load(p.Rstd).v)
	for n := range q1.rows {
		for h := range a.Heads {
			near(t, "lse", load(a.LSE).row(n)[2*h:2*h+1], load(p.LSE).row(n)[h:h+1])
		}
	}
}

// One token sees only itself: raw = v, LSE = Scale·q·k, and q and k get no gradient.
func TestAttentionOfOneToken(t *testing.T) {
	b := newBench(24)
	sh := device.AttnShape{B: 3, T: 1, Heads: 2, Groups: 1, D: 4, DV: 5, Scale: 0.5}
	a, g := b.attn(sh, device.HeadNorm{}, tensor.Tensor{})
	b.Attention(a)
	b.AttentionBackward(a, g)
	for n := range sh.B {
		for h := range sh.Heads {
			near(t, "raw", load(a.Out).head(n, h, sh.DV), load(a.V).row(n))
			near(t, "lse", load(a.LSE).row(n)[h:h+1],
				[]float64{0.5 * dot(load(a.Q).head(n, h, sh.D), load(a.K).row(n))})
		}
	}
	near(t, "dq", load(g.DQ).v, make([]float64, g.DQ.Len()))
	near(t, "dk", load(g.DK).v, make([]float64, g.DK.Len()))
}

// Logits of a thousand overflow exp; the maximum taken out first must save them.
func TestAttentionOfLargeLogits(t *testing.T) {
	b := newBench(25)
	sh := shape
	sh.Scale = 1000
	a, _ := b.attn(sh, device.HeadNorm{}, tensor.Tensor{})
	b.Attention(a)
	for i, x := range append(load(a.Out).v, load(a.LSE).v...) {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			t.Fatalf("value %d is %v", i, x)
		}
	}
}

// The probabilities of AttentionProbs, applied to V, are Attention's output.
func TestProbsTimesValues(t *testing.T) {
	b := newBench(26)
	a, _ := b.attn(shape, device.HeadNorm{}, tensor.Tensor{})
	b.Attention(a)
	p := b.normal(a.T, a.T)
	for h := range a.Heads {
		g := h * a.Groups / a.Heads
		b.AttentionProbs(p, a.Q, a.K, device.Probs{T: a.T, D: a.D, Seq: 1, QHead: h, KHead: g, Scale: a.Scale})
		out := b.zeros(a.T, a.DV)
		b.MatMul(out, p, a.V.RowRange(a.T, 2*a.T).Columns(g*a.DV, (g+1)*a.DV), device.MatMul{})
		near(t, "P·V", load(out).v, load(a.Out.RowRange(a.T, 2*a.T).Columns(h*a.DV, (h+1)*a.DV)).v)
	}
}

// Clipping scales the gradient to MaxNorm; a first step without decay moves each weight by lr·sign(g).
func TestAdamWFirstStep(t *testing.T) {
	b := newBench(27)
	a := &device.AdamW{W: b.normal(1, 6), M: b.zeros(1, 6), V: b.zeros(1, 6), G: b.normal(1, 6), Rate: b.zeros(1, 3),
		GradSq: b.zeros(1, 1), Beta1: 0.9, Beta2: 0.95, MaxNorm: 0.5}
	copy(tensor.Host[float64](a.Rate), []float64{0.1, 1 - 0.9, 1 - 0.95})
	b.SumSquares(a.GradSq, a.G)
	w, g := load(a.W).v, load(a.G).v
	b.AdamW(a)
	for i := range w {
		w[i] -= 0.1 * math.Copysign(1, g[i])
		g[i] *= (1 - 0.9) * min(1, 0.5/math.Sqrt(load(a.GradSq).v[0]))
	}
	near(t, "w", load(a.W).v, w)
	near(t, "m", load(a.M).v, g)

	for _, bad := range []float64{math.NaN(), math.Inf(1)} { // nothing changes
		w, m, v := load(a.W).v, load(a.M).v, load(a.V).v
		tensor.Host[float64](a.GradSq)[0] = bad
		b.AdamW(a)
		for _, c := range []struct{ got, want []float64 }{{load(a.W).v, w}, {load(a.M).v, m}, {load(a.V).v, v}} {
			if !slices.Equal(c.got, c.want) {
				t.Errorf("a norm of %g: %v became %v", bad, c.want, c.got)
			}
		}
	}
	for _, limit := range []float64{0, 1000} { // a gradient below the limit stays as it is
		b.Zero(a.M)
		b.Zero(a.GradSq)
		a.MaxNorm = limit
		b.SumSquares(a.GradSq, a.G)
		b.AdamW(a)
		for i, g := range load(a.G).v {
			near(t, "m below the limit", load(a.M).v[i:i+1], []float64{(1 - 0.9) * g})
		}
	}
}

// Rows of a cache from the first to the last can be written and read; a page outside it is a fault, and is as zeros.
func TestCacheEnds(t *testing.T) {
	b := newBench(29)
	for _, page := range []int32{0, 1, 2, 3, -1} { // three pages of two rows
		c := &device.Cache{K: b.zeros(6, 2), V: b.zeros(6, 2), Table: b.ints(page), PageSize: 2}
		k, v, slot := b.normal(2, 2), b.normal(2, 2), b.ints(0, 0)
		b.CacheWrite(c, k, v, slot, b.ints(0, 1))
		bad := page < 0 || page > 2
		if err := b.Sync(); (err != nil) != bad {
			t.Errorf("page %d: %v", page, err)
		}
		a := &device.Attn{AttnShape: device.AttnShape{Heads: 1, Groups: 1, D: 2, DV: 2}, Q: b.zeros(2, 2),
			Out: b.normal(2, 2)}
		b.AttentionCached(a, c, slot, b.ints(0, 1))
		if err := b.Sync(); (err != nil) != bad {
			t.Errorf("read of page %d: %v", page, err)
		}
		x := load(v).v
		want := []float64{x[0], x[1], (x[0] + x[2]) / 2, (x[1] + x[3]) / 2}
		if bad {
			want = make([]float64, 4)
			near(t, "a cache that was not written", load(c.K).v, make([]float64, 12))
		}
		near(t, "rows of a page", load(a.Out).v, want)
	}
}

// A row without a target is no fault; a target outside the classes is, and one elsewhere unless classes are split.
func TestTargetsInRange(t *testing.T) {
	b := newBench(30)
	for target, good := range map[int32]bool{-3: false, device.Elsewhere: false, -1: true, 0: true, 4: true, 5: false} {
		for _, split := range []bool{false, true} {
			c := &device.Classifier{X: b.normal(2, 3), W: b.normal(5, 3), Targets: b.ints(1, target),
				Loss: b.set(1, 7, 7), Scale: 1}
			if split {
				c.Part = b.zeros(2, 2)
			}
			b.Classify(c)
			if err := b.Sync(); (err == nil) != (good || split && target == device.Elsewhere) {
				t.Errorf("target %d, split %v: %v", target, split, err)
			}
			if loss := load(c.Loss).v[1]; !split && (loss > 0) != (good && target >= 0) || split && loss != 7 {
				t.Errorf("target %d, split %v: loss %g", target, split, loss)
			}
		}
	}
}

// Memory of no bytes is memory.
func TestAllocNothing(t *testing.T) {
	if m := New().Alloc(0); m == nil || m.Size != 0 || len(m.Host) != 0 {
		t.Errorf("%+v", m)
	}
}

func TestFaultsSurfaceOnce(t *testing.T) {
	b := newBench(28)
	b.Embed(b.zeros(2, 3), b.normal(4, 3), b.ints(1, 4))
	if err := b.Sync(); err == nil {
		t.Fatal("an id outside the table gave no fault")
	}
	if err := b.Sync(); err != nil {
		t.Fatalf("second Sync: %v", err)
	}
}

// Every product by its definition, for all transpositions, with and without what was there before.
func TestMatMulByDefinition(t *testing.T) {
	b := newBench(11)
	const M, N, K = 3, 4, 5
	for _, op := range []device.MatMul{{}, {TransA: true}, {TransB: true}, {TransA: true, TransB: true}} {
		for _, add := range []bool{false, true} {
			op.Accumulate = add
			x, y, c := b.normal(M, K), b.normal(K, N), b.normal(M, N)
			if op.TransA {
				x = b.normal(K, M)
			}
			if op.TransB {
				y = b.normal(N, K)
			}
			before := slices.Clone(tensor.Host[float64](c))
			b.MatMul(c, x, y, op)
			at := func(t tensor.Tensor, trans bool, r, c int) float64 {
				if trans {
					r, c = c, r
				}
				return tensor.Host[float64](t)[r*t.Cols+c]
			}
			for m := range M {
				for n := range N {
					want := 0.0
					if op.Accumulate {
						want = before[m*N+n]
					}
					for k := range K {
						want += at(x, op.TransA, m, k) * at(y, op.TransB, k, n)
					}
					if got := tensor.Host[float64](c)[m*N+n]; math.Abs(got-want) > 1e-12 {
						t.Fatalf("%+v: element %d, %d is %g, want %g", op, m, n, got, want)
					}
				}
			}
		}
	}
}

// A head norm without a weight is one with ones, forward and backward.
func TestHeadNormWithoutWeight(t *testing.T) {
	b := newBench(31)
	const T, H, D = 3, 2, 4
	q, k, v, dout := b.normal(T, H*D), b.normal(T, H*D), b.normal(T, H*D), b.normal(T, H*D)
	var results [2][]float64
	for i := range results {
		a := &device.Attn{AttnShape: device.AttnShape{B: 1, T: T, Heads: H, Groups: H, D: D, DV: D, Scale: 0.5},
			Norm: device.HeadNorm{On: true, Eps: 1e-3, Scale: 0.7}, Q: q, K: k, V: v, Out: b.zeros(T, H*D),
			Raw: b.zeros(T, H*D), LSE: b.zeros(T, H), Rstd: b.zeros(T, H)}
		g := &device.AttnGrad{DOut: dout, DQ: b.zeros(T, H*D), DK: b.zeros(T, H*D), DV: b.zeros(T, H*D)}
		if i == 1 {
			a.Norm.Weight, g.DNorm = b.set(1, 1, 1, 1, 1), b.zeros(1, D)
		}
		b.Attention(a)
		b.AttentionBackward(a, g)
		results[i] = slices.Concat(load(a.Out).v, load(a.Raw).v, load(g.DQ).v, load(g.DK).v, load(g.DV).v)
	}
	near(t, "without a weight", results[0], results[1])
	if slices.Max(results[0]) < 0.1 {
		t.Error("all results are small")
	}
}

// A norm sees the sum as it is stored: 256 + 1 in bfloat16 is 256.
func TestNormOfTheStoredSum(t *testing.T) {
	d := NewTypes(device.Types{Act: tensor.BF16, Stat: tensor.F32})
	of := func(v ...float64) tensor.Tensor {
		x := device.Empty(d, tensor.BF16, 1, len(v))
		device.WriteFloats(d, x, v)
		return x
	}
	y, sum, rstd := of(0, 0), of(0, 0), device.Empty(d, tensor.F32, 1, 1)
	d.RMSNorm(y, rstd, sum, of(256, 256), of(1, 0), of(1, 1), 0)
	near(t, "sum", load(sum).v, []float64{256, 256})
	near(t, "y", load(y).v, []float64{1, 1})
	near(t, "rstd", load(rstd).v, []float64{1. / 256})
}
