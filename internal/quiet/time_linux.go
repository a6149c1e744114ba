package quiet

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is the processor time of this thread, to which the goroutine is locked: what others take of a shared machine
// does not count.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}
