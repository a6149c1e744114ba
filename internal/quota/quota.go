// Package quota holds a parser to memory in proportion to its input, in tests.
package quota

import (
	"runtime"
	"testing"
)

// Check runs f on an input of n bytes and fails when it allocates more than times·n bytes and a few megabytes for what any call takes. All that
// f allocates counts, kept or not, so the bound holds for the memory in use at any moment too.
func Check(t testing.TB, name string, n, times int, f func()) {
	t.Helper()
	const free = 8 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(free+times*n); got > most {
		t.Errorf("%s: %d bytes of input took %d bytes of memory, at most %d (%d times and %d) are its share", name, n, got, most, times, free)
	}
}
