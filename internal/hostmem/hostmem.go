// Package hostmem tells how much memory the machine can still give to this process.
package hostmem

import "math"

// Unknown is what Available returns where the system does not say.
const Unknown = math.MaxInt64

// Available is how many more bytes the process can take before the system refuses them, swaps or kills: the least of what is free on the
// machine, what its control group has left, and what its limit on address space has left.
func Available() int64 { return available() }
