package data

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// kvDocument is a list of keys with values in which keys recur, always with the same value: new keys cannot be
// predicted, recurring ones can.
//
//	fox 48
//	elm 11
//	fox 48
func kvDocument(r *rand.Rand, n, digits int) string {
	keys := slices.Concat(animals, tools, clothes, trees, metals)
	const line = len("willow \n") // a little above the mean
	lines := max(2, n/(line+digits))
	count := min(len(keys), 2+r.IntN(max(1, lines/3))) // each key occurs three times or more
	keys = sample(r, keys, count)
	values := numbers(r, count, digits)
	var b strings.Builder
	for range lines {
		i := r.IntN(count)
		fmt.Fprintf(&b, "%s %s\n", keys[i], values[i])
	}
	return strings.TrimSuffix(b.String(), "\n")
}
