package cpu

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is the processor time of this thread: what others take of a shared machine does not count. A call at the
// beginning must have locked the goroutine to its thread.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}
