package eval

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// fakeReport is a made-up comparison with every part filled in. Its numbers stand for nothing.
func fakeReport() *Report {
	r := rand.New(rand.NewPCG(1, 2))
	a, b := fakeSide(r, "Transformer", "transformer", 0), fakeSide(r, "DIFF", "diff", 1)
	return &Report{
		Title: "Invented numbers for a test", Machine: "no machine", Commit: "0000000", Date: "1 January", Seconds: 754,
		Recipe: json.RawMessage(`{"model":{"arch":"diff","dim":256},"note":"a<b"}`),
		Notes:  []string{"A note with <b>markup</b> & more."}, Sides: []Side{a, b},
	}
}

func fakeSide(r *rand.Rand, name, arch string, k float64) Side {
	s := Side{Name: name, Arch: arch, Parameters: 4_812_032 + int(k)*512, TrainTokens: 24_576_000, TokensPerSecond: 41_230 - 5_000*k}
	s.Loss = LossResult{Loss: Mean{1.3812 - 0.05*k, 0.006, 256}, Perplexity: math.Exp(1.3812 - 0.05*k), Tokens: 131072}
	for p := 1; p <= 512; p *= 2 {
		s.Loss.ByPosition = append(s.Loss.ByPosition, AtPosition{p, 1.2 + 2/math.Sqrt(float64(p)) - 0.01*k*math.Log(float64(p))})
	}
	for _, n := range []needleKind{{1, 1}, {4, 2}} {
		x := NeedleResult{Needles: n.needles, Queries: n.queries, Bytes: 1024, Depths: slices.Clone(Depths), Accuracy: Mean{0.9 - 0.08*float64(n.needles)*(1-k), 0.02, 250}}
		for range Depths {
			x.ByDepth = append(x.ByDepth, Mean{min(1, x.Accuracy.Value+0.05*r.NormFloat64()), 0.05, 50})
		}
		s.Needles = append(s.Needles, x)
	}
	s.Attention = AttentionResult{Depths: slices.Clone(Depths), Answer: Mean{0.05 + 0.2*k, 0.004, 250}, Noise: Mean{0.52 - 0.3*k, 0.01, 250},
		SignedAnswer: Mean{0.05 + 0.3*k, 0.01, 250}, SignedNoise: Mean{0.52 - 0.5*k, 0.01, 250}}
	for range Depths {
		x := Segments{0.32 - 0.1*k, 0.18 - 0.1*k, 0.05 + 0.2*k, 0.32 - 0.2*k, 0.13 + 0.2*k}.normalised()
		s.Attention.Absolute = append(s.Attention.Absolute, x)
		y := x
		y.Before -= 0.1 * k
		y.After -= 0.11 * k
		s.Attention.Signed = append(s.Attention.Signed, y.normalised())
		s.Attention.ByLayer = append(s.Attention.ByLayer, []Segments{{Answer: 0.02}, {Answer: 0.1 + 0.1*k}, {Answer: 0.2 + 0.2*k}, {Answer: 0.1}})
	}
	s.Outliers = OutlierResult{Tokens: 8192, Logits: Extreme{31.8 - 9*k, 30.2 - 9*k, 30 - 9*k, 28 - 9*k, 24 - 9*k, 1.4}, Hidden: Extreme{210 - 90*k, 200 - 90*k, 190 - 90*k, 150, 99, 0.6}}
	for step := 1; step <= 3000; step += 3 {
		p := CurvePoint{step, 1.3 - 0.05*k + 4*math.Exp(-float64(step)/120) + 30/float64(step+60) + 0.04*r.NormFloat64(), math.NaN()}
		if step%250 < 3 && step > 10 {
			p.Valid = 1.33 - 0.05*k + 4*math.Exp(-float64(step)/120) + 30/float64(step+60)
		}
		s.Curve = append(s.Curve, p)
	}
	if k > 0 {
		for l := range 8 {
			s.Lambda = append(s.Lambda, 0.75-0.55*math.Exp(-0.35*float64(l))+0.05*r.NormFloat64())
		}
	}
	s.Maps = []MapExample{fakeMaps(r, k)}
	s.Samples = []Sample{{"Once <script>alert(1)</script> there", " was a \"" + name + "\" & a <b>tag</b>."}, {"The key lay in the", " garden.\nRuth found it."}}
	return s
}

func fakeMaps(r *rand.Rand, k float64) MapExample {
	text := "<|endoftext|>There are magic codes hidden in the text below. Remember them.\nRuth took the red lamp to the mill because it was dark. The magic code is Oslo 4821. Tom was glad. He went home.\nWhich magic code begins with Oslo? The magic code is Oslo "
	x := MapExample{Layer: 3, Head: 2, Words: true, Units: []string{"<|endoftext|>"}, Answer: [2]int{25, 32}, Query: 37}
	x.Units = append(x.Units, strings.SplitAfter(text[len(x.Units[0]):], " ")...)
	soft := func(sharp float64) Matrix {
		var m Matrix
		for i := range x.Units {
			row, sum := make([]float64, i+1), 0.0
			for j := range row {
				row[j] = math.Exp(r.NormFloat64())
				if j == 0 {
					row[j] *= 20
				}
				if i >= x.Query && j >= x.Answer[0] && j < x.Answer[1] {
					row[j] *= sharp
				}
				sum += row[j]
			}
			for j := range row {
				row[j] /= sum
			}
			m.Rows = append(m.Rows, row)
		}
		return m
	}
	a1 := soft(4 + 30*k)
	a1.Name = "A"
	x.Maps = []Matrix{a1}
	if k == 0 {
		return x
	}
	a2, diff := soft(1), Matrix{Name: "A1 − λA2"}
	x.Lambda, x.Maps[0].Name, a2.Name = 0.71, "A1", "A2"
	for i := range a1.Rows {
		row := make([]float64, i+1)
		for j := range row {
			row[j] = a1.Rows[i][j] - x.Lambda*a2.Rows[i][j]
		}
		diff.Rows = append(diff.Rows, row)
	}
	x.Maps = append(x.Maps, a2, diff)
	return x
}
