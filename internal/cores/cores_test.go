package cores

import (
	"sync/atomic"
	"testing"
)

// Each number is given out once, and all are done when Each returns.
func TestEach(t *testing.T) {
	for _, n := range []int{0, 1, 2, 1000} {
		calls := make([]atomic.Int32, n)
		Each(n, func(i int) { calls[i].Add(1) })
		for i := range calls {
			if k := calls[i].Load(); k != 1 {
				t.Errorf("of %d, %d was given out %d times", n, i, k)
			}
		}
	}
}
