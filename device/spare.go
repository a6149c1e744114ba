package device

import "math"

// Spare is a Device that knows how many more bytes it can give.
type Spare interface{ Spare() int64 }

// SpareOf is what d can still give; one that does not know has no bound.
func SpareOf(d Device) int64 {
	if s, ok := d.(Spare); ok {
		return s.Spare()
	}
	return math.MaxInt64
}
