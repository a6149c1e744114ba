package simd

// FetchBytes is the number of bytes of one call of Fetch: the generator's fetchLines.
const FetchBytes = 1024

// Fetch prefetches FetchBytes starting at an address into L2, without waiting. The memory need not exist.
func Fetch(at uintptr) { fetch(at) }
