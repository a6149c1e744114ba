package cuda

// Scratch is the device memory that ops keep for themselves, beside what was asked for by Alloc: the room for partial results and the
// classifier's chunk of logits. cuBLASLt's workspace, of a fixed size, does not count.
func (d *Device) Scratch() int { return d.room.size + d.logits.size }
