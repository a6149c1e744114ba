package quiet

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is the CPU time of this thread, to which the goroutine is locked: time used by others does not count.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}
