package server

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestRest: memory is given back once after the last call, when none has come for a while; not between calls, and not
// beside one.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newCalls()
		s.open()
		var given atomic.Int64
		s.rest.release = func() { given.Add(1) }
		call := func(length time.Duration) {
			if err := s.begin(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(length)
			s.end()
		}
		want := func(n int64, when string) {
			t.Helper()
			if synctest.Wait(); given.Load() != n {
				t.Errorf("%s: given back %d times, want %d", when, given.Load(), n)
			}
		}
		for range 10 {
			call(time.Second)
			time.Sleep(restAfter - time.Millisecond)
		}
		call(2 * restAfter)
		want(0, "in a busy time")
		time.Sleep(restAfter)
		want(1, "after it")
		time.Sleep(100 * restAfter)
		want(1, "much later")
		call(0)
		time.Sleep(restAfter)
		want(2, "after one more call")
	})
}
