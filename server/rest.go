package server

import (
	"runtime/debug"
	"time"
)

// restAfter is how long no call may have come before memory is given back.
const restAfter = 5 * time.Second

// rest gives the system back what calls have left to the collector, once none is under way for a while. By itself the collector runs when the
// heap has doubled, which an idle server's never does, and what a minute of overload took would stay for as long as nobody calls.
type rest struct {
	timer   *time.Timer
	release func()
}

func newRest() rest { return rest{release: debug.FreeOSMemory} }

// busy says that a call has begun. The server's lock is held.
func (r *rest) busy() {
	if r.timer != nil {
		r.timer.Stop()
	}
}

// idle says that the last call has ended. The server's lock is held.
func (r *rest) idle() {
	if r.timer == nil {
		r.timer = time.AfterFunc(restAfter, r.release)
		return
	}
	r.timer.Reset(restAfter)
}
