package task

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"antiphase/data"
)

// standIns is the number of questions in a generated set. Stand-ins have a set's form and are about the world of the
// synthetic training text, so that small models can know some answers; their numbers say nothing about the set itself.
const standIns = 200

// place puts the right ending among wrong ones at a random position.
func place(g *rand.Rand, context, right string, wrong ...string) mcItem {
	at := g.IntN(len(wrong) + 1)
	endings := append([]string{}, wrong[:at]...)
	endings = append(append(endings, right), wrong[at:]...)
	return mcItem{contexts: []string{context}, endings: endings, gold: at}
}

// makeSum asks for a sum; the closer the wrong answers, the harder.
func makeSum(spread int) func(g *rand.Rand) mcItem {
	return func(g *rand.Rand) mcItem {
		x, y := g.IntN(100), g.IntN(100)
		var wrong []string
		for _, d := range g.Perm(spread)[:3] {
			n := x + y + d + 1
			if g.IntN(2) == 0 && x+y > d {
				n = x + y - d - 1
			}
			wrong = append(wrong, fmt.Sprint(n))
		}
		return place(g, fmt.Sprintf("%d + %d =", x, y), fmt.Sprint(x+y), wrong...)
	}
}

// makeYesNo asks about the story just told.
func makeYesNo(g *rand.Rand) mcItem {
	c := data.NewNeedle(g, data.NeedleOptions{Needles: 2, Depth: g.Float64(), Bytes: 400})
	city, number, gold := c.Cities[0], c.Answers[0], g.IntN(2)
	if gold == 0 {
		number = c.OtherNumbers[0]
	}
	passage := c.Prompt[:c.QuerySpan[0]]
	prompt := passage + "Question: is the magic code of " + city + " " + number + "?\nAnswer:"
	return mcItem{contexts: []string{prompt}, endings: []string{"no", "yes"}, gold: gold}
}

// makeEnding continues a story; the wrong endings come from other stories.
func makeEnding(g *rand.Rand) mcItem {
	last := func() (string, string) {
		s := data.Prose(g, 300)
		s = s[strings.LastIndexByte(s, '\n')+1:]
		if i := strings.LastIndex(s, ". "); i >= 0 {
			return s[:i+1], s[i+2:]
		}
		return s, s
	}
	context, right := last()
	var wrong []string
	for len(wrong) < 3 {
		if _, w := last(); w != right {
			wrong = append(wrong, w)
		}
	}
	return place(g, context, right, wrong...)
}

// makeCount continues a sequence.
func makeCount(g *rand.Rand) mcItem {
	step, x := 1+g.IntN(9), g.IntN(100)
	next := x + 4*step
	return place(g, fmt.Sprintf("count by %d: %d %d %d %d", step, x, x+step, x+2*step, x+3*step), fmt.Sprint(next),
		fmt.Sprint(next+1+g.IntN(3)), fmt.Sprint(next-1-g.IntN(3)), fmt.Sprint(next+10))
}

// makeCompare asks which of two numbers is greater.
func makeCompare(g *rand.Rand) mcItem {
	x := g.IntN(100)
	y := (x + 1 + g.IntN(99)) % 100
	right, wrong := "greater", "less"
	if x < y {
		right, wrong = wrong, right
	}
	return place(g, fmt.Sprintf("%d is", x), fmt.Sprintf("%s than %d", right, y), fmt.Sprintf("%s than %d", wrong, y))
}

// makeWho asks whom a sentence means.
func makeWho(g *rand.Rand) mcItem {
	c := data.NewNeedle(g, data.NeedleOptions{Needles: 2, Bytes: 1})
	a, b := c.Cities[0], c.OtherCities[0]
	const code = "The magic code is "
	sentence := code + a + " " + c.Answers[0] + ". " + code + b + " " + c.OtherNumbers[0] + ". " + code + "_ " +
		c.Answers[0] + "."
	options, gold := []string{a, b}, 0
	if g.IntN(2) == 0 {
		options, gold = []string{b, a}, 1
	}
	return fillBlank("", sentence, options, gold)
}

// makeLast asks for a code stated in the passage.
func makeLast(g *rand.Rand) mcItem {
	c := data.NewNeedle(g, data.NeedleOptions{Depth: g.Float64(), Bytes: 400})
	return mcItem{contexts: []string{c.Prompt}, endings: []string{c.Answers[0]}}
}
