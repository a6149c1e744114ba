//go:build !purego

package simd

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// Every set of int8 products that the processor runs is exact, not only the one that it takes: SMMLA, SDOT and NEON
// alone.
func TestInt8SetsNEON(t *testing.T) {
	defer func(k *kernels) { cur = k }(cur)
	sets := int8Sets()
	t.Logf("%d sets of int8 products", len(sets))
	r := rand.New(rand.NewPCG(6, 9))
	for i, set := range sets {
		k := neon
		k.bytes = set
		cur = &k
		for _, sh := range [][3]int{{1, 33, 65}, {2, 70, 300}, {3, 96, 64}, {4, 31, 40}, {5, 64, 1000},
			{11, 100, 130}} {
			m, n, k := sh[0], sh[1], sh[2]
			var s Scratch
			x, w := random(r, m*k, 1), random(r, n*k, 0.3)
			rows, columns := packInt8(m, n, k, x, w, &s)
			want, c := make([]float32, m*n), make([]float32, m*n)
			exactInt8(m, n, k, x, w, want, n)
			GemmInt8(rows, columns, 0, n, c, n, false, &s)
			near(t, fmt.Sprintf("set %d, %v", i, sh), c, want, 0)
		}
	}
}
