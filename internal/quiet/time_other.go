//go:build !linux

package quiet

import "time"

var begin = time.Now()

// threadTime is the time of day where a thread's own is not to be had.
func threadTime() time.Duration { return time.Since(begin) }
