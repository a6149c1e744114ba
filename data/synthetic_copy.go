package data

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// copyDocument says a row of words in random order again and again. Every word after the first round can be known from
// the one before it: the plainest lesson in looking back.
//
//	elm fox brass elm fox brass elm
func copyDocument(r *rand.Rand, n int) string {
	words := slices.Concat(animals, tools, clothes, trees, metals, cities)
	const word = len("willow ") // a little above the mean
	total := max(4, n/word)
	row := sample(r, words, min(len(words), 2+r.IntN(max(1, total/2-1))))
	out := make([]string, total)
	for i := range out {
		out[i] = row[i%len(row)]
	}
	return strings.Join(out, " ")
}
