// Package cores divides work among all cores.
package cores

import (
	"runtime"
	"sync"
	"sync/atomic"

	"antiphase/internal/fault"
)

// Each calls f with 0 to n−1 on as many goroutines as there are cores, which take the numbers in order.
func Each(n int, f func(i int)) {
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			defer fault.Guard()()
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}
