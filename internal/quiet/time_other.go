//go:build !linux

package quiet

import "time"

var begin = time.Now()

// threadTime is wall-clock time if a thread's own is not available.
func threadTime() time.Duration { return time.Since(begin) }
