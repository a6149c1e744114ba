package eval

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// Paired compares two sides on the same samples. A side is a model, or a group of models that differ in their training
// seed.
type Paired struct {
	Question string  `json:"question"`
	Task     string  `json:"task"`
	Metric   string  `json:"metric"`
	A        string  `json:"a"`
	B        string  `json:"b"`
	Diff     float64 `json:"diff"` // B − A
	StdErr   float64 `json:"stderr"`
	Low      float64 `json:"low"` // 95 % interval of Diff
	High     float64 `json:"high"`
	P        float64 `json:"p"`      // probability of a difference this large between equal sides
	PHolm    float64 `json:"p_holm"` // corrected for the number of comparisons in its family
	N        int     `json:"n"`      // samples
	Seeds    [2]int  `json:"seeds"`  // models of A and of B
}

// Better returns which side is better at the 5 % level after correction: −1 for A, 1 for B, 0 for neither.
func (p *Paired) Better(d Better) int {
	if d == Neither || p.PHolm >= 0.05 || p.Diff == 0 {
		return 0
	}
	if (p.Diff > 0) == (d == Higher) {
		return 1
	}
	return -1
}

// compare pairs every two sides on every metric of every question that both answered.
func (e *Evaluation) compare(seed uint64) {
	sides := e.Sides()
	for _, q := range e.Questions() {
		for i := range sides {
			for k := i + 1; k < len(sides); k++ {
				a, b := sides[i].results(q.Question), sides[k].results(q.Question)
				for _, m := range q.Metrics {
					if p, ok := pair(a, b, m.Name, seed); ok {
						p.Question, p.Task, p.Metric, p.A, p.B = q.Question, q.Task, m.Name,
							sides[i].Name, sides[k].Name
						e.Paired = append(e.Paired, p)
					}
				}
			}
		}
	}
	e.holm()
}

// pair compares two sides. ok is false if they share fewer than two clusters of samples, or if their values are means
// over different units: losses per token of different tokenizers cannot be compared.
func pair(a, b []*Result, name string, seed uint64) (Paired, bool) {
	if len(a) == 0 || len(b) == 0 {
		return Paired{}, false
	}
	t, ok := newTable(a, b, name)
	if !ok {
		return Paired{}, false
	}
	p := Paired{N: t.n, Seeds: [2]int{len(a), len(b)}}
	v, df := t.compare(len(a))
	p.Diff, p.StdErr = v.Value, v.StdErr
	d := StudentQuantile(0.975, df) * p.StdErr
	p.Low, p.High = p.Diff-d, p.Diff+d
	switch {
	case len(a) == 1 && len(b) == 1:
		p.P = signFlip(t.diffs(), seed)
	case p.StdErr == 0:
		p.P = 1
	default:
		p.P = 2 * studentTail(math.Abs(p.Diff)/p.StdErr, df)
	}
	return p, true
}

// holm corrects p for the number of comparisons. Headline metrics are one family and all other metrics another, so that
// the others do not weaken the headlines.
func (e *Evaluation) holm() {
	headline := map[string]string{}
	for _, q := range e.Questions() {
		if len(q.Metrics) > 0 {
			headline[q.Question] = q.Metrics[0].Name
		}
	}
	families := map[bool][]*Paired{}
	for i := range e.Paired {
		p := &e.Paired[i]
		first := headline[p.Question] == p.Metric
		families[first] = append(families[first], p)
	}
	for _, list := range families {
		slices.SortStableFunc(list, func(a, b *Paired) int { return cmp.Compare(a.P, b.P) })
		most := 0.0
		for i, p := range list {
			most = max(most, min(1, float64(len(list)-i)*p.P))
			p.PHolm = most
		}
	}
}

// signFlip is the sign-flip test: if the models were alike, each difference would be equally likely with the other
// sign. p is the share of sign patterns whose sum is at least as far from 0 as the observed one: over all patterns if
// there are few, otherwise over 10,000 random ones (plus the observed one, so that p is never 0). For right-or-wrong
// answers this is McNemar's exact test.
func signFlip(diffs []float64, seed uint64) float64 {
	var d []float64
	sum, size := 0.0, 0.0
	for _, x := range diffs {
		if x != 0 { // flipping a zero changes nothing
			d = append(d, x)
			sum += x
			size += math.Abs(x)
		}
	}
	const few, draws = 13, 10_000
	seen := math.Abs(sum) - 1e-12*size // sums in another order differ in their last bits
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

// flipped is the sum of d with the sign flipped where bits has a 1.
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
