package quota

import (
	"testing"
)

type fake struct {
	testing.TB
	failed bool
}

func (f *fake) Helper()               {}
func (f *fake) Errorf(string, ...any) { f.failed = true }

var keep []byte

// TestCheck: what stays within its share passes, what does not is noticed even when it is let go at once.
func TestCheck(t *testing.T) {
	in, out := &fake{TB: t}, &fake{TB: t}
	Check(in, "frugal", 1<<20, 4, func() { keep = make([]byte, 1<<20) })
	Check(out, "greedy", 1<<20, 4, func() {
		for range 40 {
			keep = make([]byte, 1<<20)
		}
		keep = nil
	})
	if in.failed || !out.failed {
		t.Errorf("frugal failed %v, greedy failed %v", in.failed, out.failed)
	}
}
