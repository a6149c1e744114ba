package simd

// FetchBytes is what one call of Fetch brings: the generator's fetchLines.
const FetchBytes = 1024

// Fetch asks for FetchBytes from an address on to be brought into the second cache, and does not wait for them. The memory need not be there.
func Fetch(at uintptr) { fetch(at) }
