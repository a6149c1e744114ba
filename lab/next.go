package lab

import (
	"math"
	"slices"
)

// topper finds the most likely tokens of a row of logits.
type topper struct {
	n     int
	spell func(id int32) string
}

func newTopper(n int, spell func(id int32) string) topper { return topper{n, spell} }

// of returns the most likely tokens with their log-probabilities, log softmax in float64. Among equals the smaller id
// comes first.
func (t topper) of(logits []float32) []Token {
	most := math.Inf(-1)
	for _, x := range logits {
		most = max(most, float64(x))
	}
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x) - most)
	}
	norm := most + math.Log(sum)
	var best []int32 // sorted by descending logit
	for id := range logits {
		if len(best) == t.n && (t.n == 0 || logits[id] <= logits[best[t.n-1]]) {
			continue
		}
		at := len(best)
		for at > 0 && logits[best[at-1]] < logits[id] {
			at--
		}
		if best = slices.Insert(best, at, int32(id)); len(best) > t.n {
			best = best[:t.n]
		}
	}
	out := make([]Token, len(best))
	for i, id := range best {
		lp := float64(logits[id]) - norm
		out[i] = Token{ID: id, Text: t.spell(id), Logprob: &lp}
	}
	return out
}
