package device

import "math"

// Spare is a Device that knows its free memory.
type Spare interface{ Spare() int64 }

// SpareOf is the free memory of d; unbounded if unknown.
func SpareOf(d Device) int64 {
	if s, ok := d.(Spare); ok {
		return s.Spare()
	}
	return math.MaxInt64
}
