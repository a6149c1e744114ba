package quota

import (
	"os"
	"runtime/debug"
	"strings"
	"testing"
)

// Files fails if f leaves files open or mapped. The collector, which closes what is forgotten, is off meanwhile. Where
// the system does not list its files, f only runs.
func Files(t testing.TB, name string, f func()) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	f() // what is opened once and kept does not count
	const times = 4
	open, mapped, ok := files()
	for range times {
		f()
	}
	if nowOpen, nowMapped, _ := files(); ok && (nowOpen >= open+times || nowMapped >= mapped+times) {
		t.Errorf("%s leaves %d files open and %d mapped after %d calls", name, nowOpen-open, nowMapped-mapped, times)
	}
}

// files is the number of open and of mapped files of this process.
func files() (open, mapped int, ok bool) {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0, 0, false
	}
	maps, err := os.ReadFile("/proc/self/maps")
	return len(list), strings.Count(string(maps), " /"), err == nil
}
