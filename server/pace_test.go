package server

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// steps is the lock of an engine whose steps wait for the test, once the engine is made: each calls the functions that
// it finds in next up to a nil, and none waits when next is closed.
type steps struct {
	held bool
	next chan func()
	once sync.Once
}

func (s *steps) Lock() {
	for s.held {
		f := <-s.next
		if f == nil {
			return
		}
		f()
	}
}

func (s *steps) Unlock() {}

// let lets n more steps run, and returns when the last of them has begun.
func (s *steps) let(n int) {
	for range n {
		s.next <- nil
	}
}

// free lets all steps run.
func (s *steps) free() { s.once.Do(func() { close(s.next) }) }

// pace is the lock of an engine whose steps take this long. In a bubble that is their time on any machine.
type pace time.Duration

func (p pace) Lock() { time.Sleep(time.Duration(p)) }
func (pace) Unlock() {}

// bubble runs a test with a rig without a listener where time passes only while everyone waits, so that no machine is
// too slow for a limit.
func bubble(t *testing.T, s setup, f func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newBare(t, s)) })
}

// inFlight is the number of calls that compute or wait for it.
func (r *rig) inFlight() int {
	r.calls.mu.Lock()
	defer r.calls.mu.Unlock()
	return r.calls.inFlight
}
