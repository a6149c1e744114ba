package data

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// kvDocument lists keys with values and then looks some up:
//
//	fox: 4821
//	elm: 1190
//	elm? 1190
func kvDocument(r *rand.Rand, n, digits int) string {
	keys := slices.Concat(animals, tools, clothes, trees, metals)
	const line = len("willow: \n") // a little above the mean
	// Two thirds of the bytes list, one third looks up.
	count := max(2, min(len(keys), n*2/3/(line+digits)))
	keys = sample(r, keys, count)
	values := numbers(r, count, digits)
	var b strings.Builder
	for i, key := range keys {
		fmt.Fprintf(&b, "%s: %s\n", key, values[i])
	}
	for first := true; first || b.Len()+line+digits <= n; first = false {
		i := r.IntN(count)
		fmt.Fprintf(&b, "%s? %s\n", keys[i], values[i])
	}
	return strings.TrimSuffix(b.String(), "\n")
}
