// Package hostmem tells how much memory is available to this process.
package hostmem

import "math"

// Unknown is returned by Available if the system does not say.
const Unknown = math.MaxInt64

// Available is the number of bytes the process can allocate before the system refuses, swaps or kills: the minimum of
// the machine's free memory, the rest of its control group's limit, and the rest of its address-space limit.
func Available() int64 { return available() }

// Reserve is what Available leaves of an address-space limit to the runtime: it ends the process where it cannot start
// a thread (8 MiB of stack, 64 MiB for malloc) or enlarge its heap.
const Reserve = 512 << 20

// Cramped reports that an address-space limit leaves no more than the reserve.
func Cramped() bool { return space() == 0 }
