package cpu

import (
	"slices"
	"sync"
	"testing"
)

// TestShares: every tile is claimed once, whether workers do as much as each other or one does everything; who begins
// goes from neighbour to neighbour.
func TestShares(t *testing.T) {
	for _, workers := range []int{1, 2, 3, 7} {
		s := newShares(workers)
		for _, n := range []int{1, 2, 5, 16, 100} {
			for _, busy := range []int{1, workers} {
				s.cut(n)
				taken := make([][]int, busy)
				var all sync.WaitGroup
				for w := range busy {
					all.Go(func() {
						for i, ok := s.claim(w); ok; i, ok = s.claim(w) {
							taken[w] = append(taken[w], i)
						}
					})
				}
				all.Wait()
				got := slices.Sorted(slices.Values(slices.Concat(taken...)))
				for i := range n {
					if len(got) != n || got[i] != i {
						t.Fatalf("%d tiles, %d of %d workers: %v", n, busy, workers, taken)
					}
				}
				if busy == 1 && !slices.IsSorted(taken[0]) {
					t.Errorf("%d tiles and one of %d workers: %v", n, workers, taken[0])
				}
			}
		}
	}
}
