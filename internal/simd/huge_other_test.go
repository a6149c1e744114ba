//go:build !linux

package simd

import (
	"testing"
	"time"
)

func huge(_ *testing.B, n int) []float32 { return Aligned(n) }

var begin = time.Now()

// threadTime is the time of day where a thread's own is not to be had.
func threadTime() time.Duration { return time.Since(begin) }
