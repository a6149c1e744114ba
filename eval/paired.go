package eval

import (
	"math"
	"math/rand/v2"
	"unicode/utf8"
)

// Paired compares two models on the same samples: the mean of B − A with its error, and the probability of a difference this
// large if the two models were alike.
type Paired struct {
	Task   string  `json:"task"`
	Metric string  `json:"metric"`
	A      string  `json:"a"` // the first model
	B      string  `json:"b"`
	Diff   float64 `json:"diff"`
	StdErr float64 `json:"stderr"`
	P      float64 `json:"p"`
	N      int     `json:"n"`
}

// compare pairs every model with the first.
func (e *Evaluation) compare(seed uint64) {
	for i := 1; i < len(e.Models); i++ {
		for k := range e.Models[0].Results {
			a, b := &e.Models[0].Results[k], &e.Models[i].Results[k]
			for _, m := range a.Metrics {
				if p, ok := pair(a.Answers, b.Answers, m.Name, seed); ok {
					p.Task, p.Metric, p.A, p.B = a.Task, m.Name, e.Models[0].Name, e.Models[i].Name
					e.Paired = append(e.Paired, p)
				}
			}
		}
	}
}

// pair compares samples by their ids. Weights are the first model's: the units behind a value (tokens, say) are the same for both
// where the models share a tokenizer. ok is false where fewer than two clusters of samples have the value in both.
func pair(a, b []Answer, name string, seed uint64) (Paired, bool) {
	of := map[string]*Answer{}
	for i := range b {
		of[b[i].ID] = &b[i]
	}
	var sums clusters // w·(b − a)
	for i := range a {
		x, ok := a[i].Values[name]
		other := of[a[i].ID]
		if !ok || other == nil {
			continue
		}
		if y, ok := other.Values[name]; ok {
			w := a[i].weight(name)
			sums.add(a[i].cluster(), w*(y-x), w)
		}
	}
	m := sums.ratio().mean()
	if len(sums.x) < 2 || m.N == 0 {
		return Paired{}, false
	}
	return Paired{Diff: m.Value, StdErr: m.StdErr, N: sums.n, P: signFlip(sums.x, seed)}, true
}

// signFlip is the sign-flip test: were the models alike, each difference would be as likely with the other sign. p is the share of
// sign patterns whose sum is at least as far from 0 as the one seen: of all patterns where there are few, else of 10,000 random
// ones (and the one seen, so that p is never 0). For right-or-wrong answers this is McNemar's exact test.
func signFlip(diffs []float64, seed uint64) float64 {
	var d []float64
	sum := 0.0
	for _, x := range diffs {
		if x != 0 { // flipping it changes nothing
			d = append(d, x)
			sum += x
		}
	}
	const few, draws = 13, 10_000
	seen := math.Abs(sum) * (1 - 1e-9) // sums in another order differ in their last bits
	if len(d) <= few {
		hits := 0
		for bits := range 1 << len(d) {
			if math.Abs(flipped(d, uint64(bits))) >= seen {
				hits++
			}
		}
		return float64(hits) / float64(int(1)<<len(d))
	}
	g := rand.New(rand.NewPCG(seed, 0x7a))
	hits := 1
	for range draws {
		s := 0.0
		for i := 0; i < len(d); i += 64 {
			s += flipped(d[i:min(i+64, len(d))], g.Uint64())
		}
		if math.Abs(s) >= seen {
			hits++
		}
	}
	return float64(hits) / (draws + 1)
}

// flipped is the sum of d with the sign turned where bits has a 1.
func flipped(d []float64, bits uint64) float64 {
	s := 0.0
	for _, x := range d {
		if bits&1 == 1 {
			x = -x
		}
		s += x
		bits >>= 1
	}
	return s
}

// text shows the difference with its error and its stars.
func (p Paired) text() string {
	verb := precision(p.StdErr)
	if p.StdErr == 0 {
		verb = "%.4g"
	}
	out := show(verb, p.Diff) + " ± " + show(verb, p.StdErr)
	if p.Diff > 0 {
		out = "+" + out
	}
	switch {
	case p.P < 0.01:
		return out + " **"
	case p.P < 0.05:
		return out + " * "
	}
	return out + "   "
}

func runes(s string) int { return utf8.RuneCountInString(s) }
