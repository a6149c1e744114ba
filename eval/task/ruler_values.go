package task

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"antiphase/data"
	"antiphase/eval"
)

// Multi-value needles after RULER: every key has several numbers, each in its own sentence, and the question asks for
// all of one key's.
func init() {
	h := &hidden{hay: true, build: buildValues,
		values: func(p *eval.Plan) float64 { return numbersOf(p.Int("digits")) }}
	registerAt(32, 1, eval.Task{
		Name: "ruler_values", Group: "ruler", Version: 1, Shots: -1, Measures: hiddenScores, Valid: validValues,
		Prepare: h.prepare,
		Doc:     "all numbers of a key that has several",
		Settings: haySettings(
			eval.Setting{Key: "keys", Default: 2, Rule: eval.Between(1, float64(data.MostNeedles())), Doc: "cities"},
			eval.Setting{Key: "values", Default: 3, Rule: eval.Between(1, float64(data.MostNeedles())),
				Doc: "numbers of each"},
			eval.Setting{Key: "digits", Default: 2, Rule: eval.Between(1, 9), Doc: "digits of each number"}),
	})
}

func validValues(p *eval.Plan) error {
	n := p.Int("keys") * p.Int("values")
	if n > data.MostNeedles() {
		return eval.BadSetting("keys × values is %d, must be at most %d", n, data.MostNeedles())
	}
	if err := enoughDigits(p, n); err != nil {
		return err
	}
	return validLengths(p)
}

func buildValues(p *eval.Plan, g *rand.Rand, hay *haystack, _, bytes int) hiddenCase {
	keys, each := p.Int("keys"), p.Int("values")
	drawn := data.NewNeedle(g, data.NeedleOptions{Needles: keys * each, Digits: p.Int("digits"), Bytes: 1})
	cities, numbers := slices.Concat(drawn.Cities, drawn.OtherCities), slices.Concat(drawn.Answers, drawn.OtherNumbers)
	var list []string
	for i, number := range numbers {
		list = append(list, fmt.Sprintf("The magic code is %s %s.", cities[i/each], number))
	}
	question := fmt.Sprintf("Which magic codes begin with %s? They are %s", cities[0], cities[0])
	return hiddenCase{prompt: buried(g, hay, bytes, "There are magic codes hidden in the text below. Remember them.",
		list, true, question), right: numbers[:each:each], others: numbers[each:]}
}
