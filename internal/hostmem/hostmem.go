// Package hostmem tells how much memory is available to this process.
package hostmem

import "math"

// Unknown is returned by Available if the system does not say.
const Unknown = math.MaxInt64

// Available is the number of bytes the process can allocate before the system refuses, swaps or kills: the minimum of
// the machine's free memory, the rest of its control group's limit, and the rest of its address-space limit.
func Available() int64 { return available() }
