// Package quota checks in tests what a function takes: memory in proportion to its input, and no file that stays open.
package quota

import (
	"runtime"
	"testing"
)

// Check runs f on an input of n bytes and fails if it allocates more than times·n bytes plus a few megabytes. All
// allocations of f count, kept or not, so this also bounds the memory in use at any moment.
func Check(t testing.TB, name string, n, times int, f func()) {
	t.Helper()
	const free = 8 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(free+times*n); got > most {
		t.Errorf("%s: %d bytes of input took %d bytes of memory, at most %d (%d times and %d) are its share", name, n,
			got, most, times, free)
	}
}
