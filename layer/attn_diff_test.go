package layer_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"antiphase/device/ref"
	"antiphase/internal/golden"
	"antiphase/layer"
)

// naive is the paper's formula with every map written out, in float64 and without the layer package: weights by row,
// positions as an argument, heads as slices. It knows nothing of fused projections, groups' layouts or devices.
type naive struct {
	seq, dim, heads, groups, d int
	x                          [][]float64 // [T][C], one sequence
	q, k, v, o                 [][]float64 // weights, one row per output
	interleaved                bool
}

// project is the rows w·x_t of head h, width wide, for all tokens.
func (n *naive) project(w [][]float64, h, width int) [][]float64 {
	out := make([][]float64, n.seq)
	for t := range out {
		for _, row := range w[h*width : (h+1)*width] {
			out[t] = append(out[t], dot(row, n.x[t]))
		}
	}
	return out
}

// rotate turns each pair of coordinates of token t by t·10000^(−2j/d).
func (n *naive) rotate(x [][]float64) [][]float64 {
	for t, r := range x {
		for j := range n.d / 2 {
			a, b := j, j+n.d/2
			if n.interleaved {
				a, b = 2*j, 2*j+1
			}
			s, c := math.Sincos(float64(t) * math.Pow(10000, -2*float64(j)/float64(n.d)))
			r[a], r[b] = r[a]*c-r[b]*s, r[a]*s+r[b]*c
		}
	}
	return x
}

// maps is the causal softmax(q·kᵀ/√d), [T][T].
func (n *naive) maps(q, k [][]float64) [][]float64 {
	a := make([][]float64, n.seq)
	for t := range a {
		a[t] = make([]float64, n.seq)
		sum := 0.0
		for s := 0; s <= t; s++ {
			a[t][s] = math.Exp(dot(q[t], k[s]) / math.Sqrt(float64(n.d)))
			sum += a[t][s]
		}
		for s := range a[t] {
			a[t][s] /= sum
		}
	}
	return a
}

// head is (A1 − λ_t·A2)·V.
func (n *naive) head(a1, a2, v [][]float64, lam func(t int) float64) [][]float64 {
	out := make([][]float64, n.seq)
	for t := range out {
		out[t] = make([]float64, len(v[0]))
		for s := range n.seq {
			for c := range out[t] {
				out[t][c] += (a1[t][s] - lam(t)*a2[t][s]) * v[s][c]
			}
		}
	}
	return out
}

// v1 is the paper's layer l = 1…L: pair i has query heads 2i and 2i+1; of every heads/groups neighbouring pairs all
// read key heads 2g, 2g+1 and value head g, 2d wide; head_i' = (1−λ_init)·RMSNorm(head_i)·gain.
func (n *naive) v1(l int, lamVecs map[string][]float64, gain []float64, norm bool, eps float64) []float64 {
	init := 0.8 - 0.6*math.Exp(-0.3*float64(l-1))
	lam := math.Exp(dot(lamVecs["lambda_q1"], lamVecs["lambda_k1"])) - math.Exp(dot(lamVecs["lambda_q2"],
		lamVecs["lambda_k2"])) + init
	concat := make([][]float64, n.seq)
	for i := range n.heads {
		g := i / (n.heads / n.groups)
		a1 := n.maps(n.rotate(n.project(n.q, 2*i, n.d)), n.rotate(n.project(n.k, 2*g, n.d)))
		a2 := n.maps(n.rotate(n.project(n.q, 2*i+1, n.d)), n.rotate(n.project(n.k, 2*g+1, n.d)))
		h := n.head(a1, a2, n.project(n.v, g, 2*n.d), func(int) float64 { return lam })
		for t, r := range h {
			if norm {
				rms := math.Sqrt(dot(r, r)/float64(len(r)) + eps)
				for c := range r {
					r[c] *= (1 - init) * gain[c] / rms
				}
			}
			concat[t] = append(concat[t], r...)
		}
	}
	return n.output(concat)
}

// v2 is DIFF V2: the 2·heads/groups neighbouring query heads of a group share key and value head g of width d; pairs
// are neighbours, so both maps of a pair are in one group; λ = σ(w_i·x_t), and there is no norm and no factor.
//
// Its ablations: λ = 1, λ without the sigmoid, and pairs of head i of the first half with head i of the second half,
// each half with the keys and values of its own heads' groups.
func (n *naive) v2(lamProj [][]float64, form layer.LambdaForm, pairing layer.Pairing) []float64 {
	concat := make([][]float64, n.seq)
	for i := range n.heads {
		first, second := 2*i, 2*i+1
		if pairing == layer.PairingAcross {
			first, second = i, n.heads+i
		}
		lam := func(t int) float64 {
			switch form {
			case layer.LambdaNone:
				return 1
			case layer.LambdaLinear:
				return dot(lamProj[i], n.x[t])
			}
			return 1 / (1 + math.Exp(-dot(lamProj[i], n.x[t])))
		}
		for t, r := range n.single(first) {
			other := n.single(second)[t]
			for c := range r {
				r[c] -= lam(t) * other[c]
			}
			concat[t] = append(concat[t], r...)
		}
	}
	return n.output(concat)
}

// single is softmax attention of one of the 2·heads query heads over its group's keys and values.
func (n *naive) single(q int) [][]float64 {
	g := q / (2 * n.heads / n.groups)
	a := n.maps(n.rotate(n.project(n.q, q, n.d)), n.rotate(n.project(n.k, g, n.d)))
	return n.head(a, a, n.project(n.v, g, n.d), func(int) float64 { return 0 })
}

func (n *naive) output(concat [][]float64) (y []float64) {
	for _, r := range concat {
		for _, w := range n.o {
			y = append(y, dot(w, r))
		}
	}
	return y
}

func dot(a, b []float64) (s float64) {
	for i, x := range a {
		s += x * b[i]
	}
	return s
}

func rowsOf(x []float64, cols int) (rows [][]float64) {
	for ; len(x) > 0; x = x[cols:] {
		rows = append(rows, x[:cols])
	}
	return rows
}

// TestDiffAgainstPaper checks both differential layers against the formulas above for every way to group 4 pairs, in
// layers where a λ_init counted from the wrong end or a factor left out shows.
func TestDiffAgainstPaper(t *testing.T) {
	for _, arch := range []string{"diff", "diff2"} {
		for _, groups := range []int{1, 2, 4} {
			for l := 1; l <= 3; l++ {
				for _, rope := range []string{"interleaved", "half"} {
					for _, norm := range []layer.HeadNormMode{layer.HeadNormAffine, layer.HeadNormPlain,
						layer.HeadNormOff} {
						if arch == "diff2" && (norm != layer.HeadNormOff || l > 1) {
							continue // V2 has neither a norm nor a schedule
						}
						t.Run(fmt.Sprintf("%s/kv%d/layer%d/%s/%s", arch, groups, l, rope, norm), func(t *testing.T) {
							testAgainstPaper(t, module{Arch: arch, Dim: 24, Layer: l - 1, Heads: 4,
								KVHeads: groups, HeadDim: 6, Rope: rope, RopeTheta: 10000, HeadNorm: norm,
								HeadNormEps: 1e-3})
						})
					}
				}
			}
		}
	}
}

// DIFF V2's ablations, alone and together.
func TestDiff2Variants(t *testing.T) {
	for _, form := range []layer.LambdaForm{layer.LambdaSigmoid, layer.LambdaLinear, layer.LambdaNone} {
		for _, pairing := range []layer.Pairing{layer.PairingGroup, layer.PairingAcross} {
			for _, groups := range []int{1, 2, 4} {
				t.Run(fmt.Sprintf("%s/%s/kv%d", form, pairing, groups), func(t *testing.T) {
					testAgainstPaper(t, module{Arch: "diff2", Dim: 24, Heads: 4, KVHeads: groups, HeadDim: 6,
						Rope: "interleaved", RopeTheta: 10000, HeadNorm: layer.HeadNormOff, LambdaForm: form,
						Pairing: pairing})
				})
			}
		}
	}
}

func testAgainstPaper(t *testing.T, m module) {
	const seq = 7
	d := ref.New()
	r := rand.New(rand.NewPCG(uint64(m.KVHeads), uint64(m.Layer)))
	draw := func(n int, std float64) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = std * r.NormFloat64()
		}
		return x
	}
	f := newFixture(t, d, m.config(t, d, seq), 1, seq)
	values := map[string][]float64{}
	f.fill(func(p *layer.Param) []float64 {
		values[p.Name] = draw(p.Rows*p.Cols, 0.5)
		return values[p.Name]
	})
	x := draw(seq*m.Dim, 1)
	got, _ := f.run(x, make([]float64, len(x)))

	n := &naive{seq: seq, dim: m.Dim, heads: m.Heads, groups: m.KVHeads, d: m.HeadDim, x: rowsOf(x, m.Dim),
		interleaved: m.Rope == "interleaved"}
	qkv := rowsOf(values["qkv.weight"], m.Dim)
	keys := len(qkv) - 2*m.Heads*m.HeadDim // rows of k and v, in equal number: 2·d a group in V1, d in V2
	n.q, n.k, n.v = qkv[:2*m.Heads*m.HeadDim], qkv[2*m.Heads*m.HeadDim:][:keys/2], qkv[len(qkv)-keys/2:]
	var want []float64
	if m.Arch == "diff" {
		n.o = rowsOf(values["out.weight"], m.Heads*2*m.HeadDim)
		gain := values["head_norm.weight"]
		for len(gain) < 2*m.HeadDim {
			gain = append(gain, 1)
		}
		want = n.v1(m.Layer+1, values, gain, m.HeadNorm != layer.HeadNormOff, m.HeadNormEps)
	} else {
		n.o = rowsOf(values["out.weight"], m.Heads*m.HeadDim)
		want = n.v2(rowsOf(values["lambda.weight"], m.Dim), m.LambdaForm, m.Pairing)
	}
	if diff := golden.Relative(got, want); !(diff <= 1e-12) {
		t.Errorf("output is off by %g of its norm", diff)
	}
}

// TestLambdaSchedule checks the first values of λ_init, counted from layer 0, to the digits that are published.
func TestLambdaSchedule(t *testing.T) {
	for l, want := range []float64{0.2000, 0.3555, 0.4707, 0.5561, 0.6193, 0.6661, 0.7008, 0.7265, 0.7456, 0.7597,
		0.7701, 0.7779} {
		if got := layer.LambdaSchedule(l); !(math.Abs(got-want) <= 5e-5) {
			t.Errorf("λ_init of layer %d is %.6f, want %.4f", l, got, want)
		}
	}
	if got := layer.LambdaSchedule(1000); !(math.Abs(got-0.8) <= 1e-12) {
		t.Errorf("λ_init tends to %g, want 0.8", got)
	}
}
