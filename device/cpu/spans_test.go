package cpu

import (
	"slices"
	"sync"
	"testing"
)

// TestSpans: every tile is claimed once, whoever does how many of them; a worker's first ones are neighbours.
func TestSpans(t *testing.T) {
	var s spans
	for _, workers := range []int{1, 2, 3, 7} {
		for _, n := range []int{1, 2, 5, 16, 100} {
			for _, alone := range []bool{true, false} {
				s.cut(n, workers)
				taken := make([][]int, workers)
				var all sync.WaitGroup
				for w := range workers {
					count := n / workers
					if w < n%workers {
						count++
					}
					if alone { // the last does everything
						count = n * (w / max(1, workers-1))
						if workers == 1 {
							count = n
						}
					}
					all.Go(func() {
						for range count {
							taken[w] = append(taken[w], s.claim(w))
						}
					})
				}
				all.Wait()
				if got := slices.Sorted(slices.Values(slices.Concat(taken...))); len(got) != n || !slices.Equal(got, slices.Compact(slices.Clone(got))) || got[n-1] != n-1 {
					t.Errorf("%d tiles and %d workers: %v", n, workers, taken)
				}
				if last := taken[workers-1]; alone && !slices.IsSorted(last[:n-(workers-1)*n/workers]) {
					t.Errorf("%d tiles and %d workers: the last one began with %v", n, workers, last)
				}
			}
		}
	}
}
