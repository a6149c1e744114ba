package task

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"antiphase/eval"
)

// Common words after RULER: a long list of made-up words in random order, a few of which occur several times as often
// as the others; the question asks for the common ones. Longer lists have more words, not more common ones, up to
// mostWords.
func init() {
	h := &hidden{build: buildCommon, values: func(*eval.Plan) float64 {
		return float64(len(consonants)*len(vowels)) * float64(len(consonants)*len(vowels))
	}}
	registerAt(32, 2, eval.Task{
		Name: "ruler_common", Group: "ruler", Version: 1, Shots: -1, Measures: hiddenScores, Valid: validLengths,
		Prepare: h.prepare,
		Doc:     "which words of a long list come most often",
		Settings: hiddenSettings(
			eval.Setting{Key: "common", Default: 2, Rule: eval.Between(1, 20), Doc: "common words, the answer"},
			eval.Setting{Key: "often", Default: 5, Rule: eval.Between(2, 100),
				Doc: "how often a common word occurs for each occurrence of another; RULER has 10"}),
	})
}

const (
	consonants = "bdfgklmnprstvz"
	vowels     = "aeiou"
	mostWords  = 2000 // different ones
)

func buildCommon(p *eval.Plan, g *rand.Rand, _ *haystack, _, bytes int) hiddenCase {
	const first = "Some words of the list below come more often than the others. Remember them.\n"
	k, often := p.Int("common"), p.Int("often")
	question := fmt.Sprintf("\nWhich %d words of the list come most often? They are", k)
	total := (bytes - len(first) - len(question)) / 5 // a word has four letters and a space
	times := max(1, (total+mostWords+k*often-1)/(mostWords+k*often))
	rare := max(1, total/times-k*often)
	pick := func(letters string) byte { return letters[g.IntN(len(letters))] }
	words := distinct(k+rare, func() string {
		return string([]byte{pick(consonants), pick(vowels), pick(consonants),
			pick(vowels)})
	})
	var list []string
	for i, w := range words {
		n := times
		if i < k {
			n *= often
		}
		for range n {
			list = append(list, w)
		}
	}
	g.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return hiddenCase{prompt: first + strings.Join(list, " ") + question, right: words[:k:k], others: words[k:]}
}
