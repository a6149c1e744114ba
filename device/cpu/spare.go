package cpu

import "antiphase/internal/hostmem"

// Spare is the memory that the machine can still give to this process.
func (d *Device) Spare() int64 { return hostmem.Available() }
