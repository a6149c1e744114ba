package task

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"antiphase/data"
	"antiphase/eval"
)

// Needles whose key must be resolved through other sentences: "Keller uses the code of Oslo." and "Moreau uses the code
// of Keller." are elsewhere in the text, and the question asks for Moreau's code. Every hidden number has a chain of
// the same form, so the form does not reveal the answer. Zero hops is a plain needle in the same words.
func init() {
	h := &hidden{hay: true, build: buildHops,
		values: func(p *eval.Plan) float64 { return numbersOf(p.Int("digits")) },
		cells: func(p *eval.Plan) (out []string) {
			for _, n := range p.Ints("hops") {
				out = append(out, fmt.Sprintf("hops=%d", n))
			}
			return out
		},
	}
	register(31, eval.Task{
		Name: "needle_hop", Version: 1, Shots: -1, Measures: hiddenScores, Valid: validHops, Prepare: h.prepare,
		Doc: "magic codes whose key must be resolved through no, one or two other sentences",
		Settings: haySettings(
			eval.Setting{Key: "needles", Default: 4, Rule: eval.Between(1, float64(len(surnames)/2)),
				Doc: "numbers hidden, each with its own chain"},
			eval.Setting{Key: "hops", Default: []int{0, 1, 2}, Rule: eval.Between(0, 2),
				Doc: "sentences between the key asked for and its number's key"},
			eval.Setting{Key: "digits", Default: 2, Rule: eval.Between(1, 9), Doc: "digits of each number"}),
	})
}

func validHops(p *eval.Plan) error {
	if err := enoughDigits(p, p.Int("needles")); err != nil {
		return err
	}
	return validLengths(p)
}

// enoughDigits rejects more different numbers than there are with so few digits.
func enoughDigits(p *eval.Plan, numbers int) error {
	if d := p.Int("digits"); float64(numbers) > numbersOf(d) {
		return eval.BadSetting("digits is %d, must be enough for %d different numbers", d, numbers)
	}
	return nil
}

// numbersOf is the count of numbers with this many digits.
func numbersOf(digits int) float64 {
	n := 9.0
	for range digits - 1 {
		n *= 10
	}
	return n
}

// surnames do not occur in generated prose.
var surnames = strings.Fields(`Alder Brandt Castro Dubois Eriksen Fischer Garcia Hansen Ito Jansen Keller Larsen
	Moreau Nowak Olsen Petrov Quist Rossi Silva Tanaka Urban Vogel Weber Yilmaz Zhang Amin Bauer Costa Dahl Ekman
	Farah Gruber Haas Ivanov Jung Kovac Lund Meyer Novak Ortiz`)

func buildHops(p *eval.Plan, g *rand.Rand, hay *haystack, cell, bytes int) hiddenCase {
	n, hops := p.Int("needles"), p.Ints("hops")[cell]
	drawn := data.NewNeedle(g, data.NeedleOptions{Needles: n, Digits: p.Int("digits"), Bytes: 1})
	keys, numbers := slices.Concat(drawn.Cities, drawn.OtherCities), slices.Concat(drawn.Answers, drawn.OtherNumbers)
	people := g.Perm(len(surnames))
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("The code of %s is %s.", keys[i], numbers[i]))
		for hop := range hops {
			next := surnames[people[hop*n+i]]
			list = append(list, fmt.Sprintf("%s uses the code of %s.", next, keys[i]))
			keys[i] = next
		}
	}
	question := fmt.Sprintf("Which code is that of %s? The code of %s is", keys[0], keys[0])
	return hiddenCase{prompt: buried(g, hay, bytes, "There are codes hidden in the text below. Remember them.", list,
		false, question), right: numbers[:1:1], others: numbers[1:]}
}
