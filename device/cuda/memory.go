package cuda

import (
	"math"

	"antiphase/internal/cu"
)

// Scratch is the device memory that ops hold for themselves, besides Alloc: scratch for partial results and the
// classifier's chunk of logits. cuBLASLt's workspace, of a fixed size, does not count.
func (d *Device) Scratch() int { return d.room.size + d.logits.size }

// Spare is the free memory of the GPU.
func (d *Device) Spare() int64 {
	if m, ok := d.drv.(cu.Meter); ok {
		if n, err := m.Spare(); err == nil {
			return n
		}
	}
	return math.MaxInt64
}
