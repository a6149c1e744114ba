package task

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"antiphase/eval"
)

// Variable tracking after RULER: chains of assignments, "VAR QLM = 48." and "VAR TRX = VAR QLM.", are spread over a
// long text, and the question asks for all variables that hold one chain's value. RULER scores recall; bound also
// counts wrong names.
func init() {
	h := &hidden{hay: true, build: buildVariables, values: func(*eval.Plan) float64 { return 26 * 26 * 26 }}
	registerAt(32, 0, eval.Task{
		Name: "ruler_variables", Group: "ruler", Version: 1, Shots: -1, Measures: hiddenScores, Valid: validLengths,
		Prepare: h.prepare,
		Doc:     "which variables have a value, through chains of assignments",
		Settings: haySettings(
			eval.Setting{Key: "chains", Default: 2, Rule: eval.Between(1, 50), Doc: "of which one is asked for"},
			eval.Setting{Key: "hops", Default: 2, Rule: eval.Between(0, 50),
				Doc: "assignments in a chain after its first"}),
	})
}

func buildVariables(p *eval.Plan, g *rand.Rand, hay *haystack, _, bytes int) hiddenCase {
	chains, each := p.Int("chains"), p.Int("hops")+1
	names := distinct(chains*each, func() string {
		return string([]byte{byte('A' + g.IntN(26)), byte('A' + g.IntN(26)), byte('A' + g.IntN(26))})
	})
	values := distinct(chains, func() string { return strconv.Itoa(10 + g.IntN(90)) })
	var list []string
	for hop := range each { // a variable is set before it is used
		for c := range chains {
			name := names[c*each+hop]
			if hop == 0 {
				list = append(list, fmt.Sprintf("VAR %s = %s.", name, values[c]))
			} else {
				list = append(list, fmt.Sprintf("VAR %s = VAR %s.", name, names[c*each+hop-1]))
			}
		}
	}
	question := fmt.Sprintf("Which variables have the value %s? They are", values[0])
	return hiddenCase{prompt: buried(g, hay, bytes, "There are variables set in the text below. Remember them.", list,
		true, question), right: names[:each:each], others: names[each:]}
}

// distinct draws n different texts.
func distinct(n int, draw func() string) []string {
	seen := map[string]bool{}
	var out []string
	for len(out) < n {
		if s := draw(); !seen[s] {
			seen[s], out = true, append(out, s)
		}
	}
	return out
}
