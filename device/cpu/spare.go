package cpu

import "antiphase/internal/hostmem"

// Spare is the memory available to this process.
func (d *Device) Spare() int64 { return hostmem.Available() }
