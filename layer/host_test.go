package layer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"antiphase/device"
)

// lowbitByHand is attention with quantised logits by its definition, for adjacent query heads and no head norm: output
// [B·T, H·DV] of queries [B·T, H·maps, D], keys [B·T, G·keys, D] and values [B·T, G, DV].
func lowbitByHand(s device.AttnShape, maps, keys int, q Lowbit, x, k, v, lam []float64) []float64 {
	out := make([]float64, s.B*s.T*s.Heads*s.DV)
	for b := range s.B {
		logits := map[[3]int][]float64{} // by head, map and row
		tops := map[string]float64{}
		share := func(head, m, t int) string { // the name of the numbers that have one scale
			return map[Granularity]string{PerTensor: "", PerHead: fmt.Sprint(head, m),
				PerRow: fmt.Sprint(head, m, t)}[q.Per]
		}
		for head := range s.Heads {
			group := head / (s.Heads / s.Groups)
			for m := range maps {
				for t := range s.T {
					var row []float64
					for u := range t + 1 {
						dot := 0.0
						for c := range s.D {
							dot += x[((b*s.T+t)*s.Heads*maps+head*maps+m)*s.D+c] *
								k[((b*s.T+u)*s.Groups*keys+group*keys+min(m, keys-1))*s.D+c]
						}
						row = append(row, s.Scale*dot)
						tops[share(head, m, t)] = math.Max(tops[share(head, m, t)], math.Abs(s.Scale*dot))
					}
					logits[[3]int{head, m, t}] = row
				}
			}
		}
		for at, row := range logits {
			head, m, t := at[0], at[1], at[2]
			step := tops[share(head, m, t)] / (math.Exp2(float64(q.Logits-1)) - 1)
			n, sum := b*s.T+t, 0.0
			for u := range row {
				row[u] = math.Exp(step * math.RoundToEven(row[u]/step))
				sum += row[u]
			}
			weight := 1.0
			if m == 1 {
				weight = -lam[(n*s.Heads+head)%len(lam)]
			}
			for u, p := range row {
				for c := range s.DV {
					out[(n*s.Heads+head)*s.DV+c] +=
						weight * p / sum * v[((b*s.T+u)*s.Groups+head/(s.Heads/s.Groups))*s.DV+c]
				}
			}
		}
	}
	return out
}

// Quantised logits share their scales as the granularity says: over a sequence, over a map of a head, over a row.
func TestScalesOfLogits(t *testing.T) {
	for _, rows := range []int{5, hostRows, 2*hostRows + 3} {
		scalesOfLogits(t, device.AttnShape{B: 2, T: rows, Heads: 4, Groups: 2, D: 3, DV: 3})
	}
}

func scalesOfLogits(t *testing.T, s device.AttnShape) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	random := func(n int) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = r.NormFloat64() * math.Exp2(float64(i%7-3)) // some rows and heads are far larger than others
		}
		return x
	}
	for _, arch := range []*Arch{&plainArch, &diffArch, &diff2Arch} {
		rows := s.B * s.T
		x, k, v := random(rows*s.Heads*arch.Maps*s.D), random(rows*s.Groups*arch.Keys*s.D), random(rows*s.Groups*s.DV)
		for _, lam := range [][]float64{{0.4}, random(rows * s.Heads)} {
			for i, per := range append(granularities, granularities...) {
				s.Scale = []float64{0.7, 0.001}[i/len(granularities)]
				for _, bits := range []int{2, 3, 5} {
					q := Lowbit{Logits: bits, Per: per}
					h := &hostAttn{AttnShape: s, q: q,
						cfg:   &AttnConfig{Arch: arch, Heads: s.Heads, Groups: s.Groups, HeadDim: s.D},
						which: []int{0, 1, 2, 3}, maps: arch.Maps, qs: s.Heads * arch.Maps, keys: arch.Keys, queries: x,
						lam: lam, out: make([]float64, rows*s.Heads*s.DV)}
					h.attendPass(k, v)
					near(t, fmt.Sprintf("%s, T %d, %d bits per %s", arch.Name, s.T, bits, per), h.out,
						lowbitByHand(s, arch.Maps, arch.Keys, q, x, k, v, lam))
				}
			}
		}
	}
}

// What is wrong with a precision is said of the field that is wrong.
func TestLowbitWords(t *testing.T) {
	for want, q := range map[string]Lowbit{
		"bits: is 1, must be 0 (exact) or 2 to 16":       {Logits: 1, Per: PerRow},
		"bits: is 17, must":                              {Keys: 17},
		"bits: is -2, must":                              {Values: -2},
		`per: is "column", must be "tensor", "head" or `: {Logits: 4, Per: "column", CachePer: PerRow},
		`per: is "", must be "tensor"`:                   {Logits: 4},
		`per: is "page" for keys and values, must be "t`: {Logits: 4, Per: PerRow, CachePer: "page"},
	} {
		if err := q.Check(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", q, err, want)
		}
	}
	for _, q := range []Lowbit{{}, {Per: "column"}, {Logits: 2, Per: PerHead},
		{Keys: 16, Values: 2, CachePer: PerTensor}, {Keys: 3}} {
		if err := q.Check(); err != nil {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

// One layer of 830m with quantised logits on a text of 512 tokens.
func BenchmarkHostAttention(b *testing.B) {
	s := device.AttnShape{B: 1, T: 512, Heads: 8, Groups: 8, D: 96, DV: 192, Scale: 0.1}
	r := rand.New(rand.NewPCG(5, 6))
	random := func(n int) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = r.NormFloat64()
		}
		return x
	}
	h := &hostAttn{AttnShape: s, q: Lowbit{Logits: 6, Per: PerTensor},
		cfg:   &AttnConfig{Arch: &diffArch, Heads: s.Heads, Groups: s.Groups, HeadDim: s.D},
		which: []int{0, 1, 2, 3, 4, 5, 6, 7}, maps: 2, qs: 16, keys: 2, queries: random(s.T * 16 * s.D),
		lam: []float64{0.4}, out: make([]float64, s.T*s.Heads*s.DV)}
	k, v := random(s.T*16*s.D), random(s.T*8*s.DV)
	for b.Loop() {
		h.attendPass(k, v)
	}
}
