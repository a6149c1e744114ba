package server

import (
	"runtime/debug"
	"time"
)

// restAfter is the idle time after which memory is returned.
const restAfter = 5 * time.Second

// rest returns memory of finished calls to the system once none has been in flight for a while. The collector itself
// runs when the heap has doubled, which never happens in an idle server, so the memory of a minute of overload would
// otherwise stay in use.
type rest struct {
	timer   *time.Timer
	release func()
}

func newRest() rest { return rest{release: debug.FreeOSMemory} }

// busy records that a call has begun. The server's lock is held.
func (r *rest) busy() {
	if r.timer != nil {
		r.timer.Stop()
	}
}

// idle records that the last call has ended. The server's lock is held.
func (r *rest) idle() {
	if r.timer == nil {
		r.timer = time.AfterFunc(restAfter, r.release)
		return
	}
	r.timer.Reset(restAfter)
}
