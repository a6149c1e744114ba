package cu

// CommID is an ncclUniqueId, which rank 0 makes and every rank needs to join a Communicator.
type CommID [128]byte

// Communicator connects the GPUs of several processes. Its work runs in stream order, except
// in Beside, and is recorded with the stream.
type Communicator interface {
	// AllReduce sums n float32 (or float64) numbers in place.
	AllReduce(addr uintptr, n int, double bool) error
	// ReduceScatter sums parts of n numbers each; dst gets this rank's.
	ReduceScatter(dst, src uintptr, n int, double bool) error
	// AllGather collects bytes from every rank.
	AllGather(dst, src uintptr, bytes int) error
	Broadcast(addr uintptr, bytes, root int) error
	// Beside runs the collectives that f starts on a second stream, after all earlier work and beside later work.
	Beside(f func() error) error
	// Join lets later work wait for all collectives of Beside. A recording must not end before it.
	Join() error
	// Fault returns an error that the library detected, such as a lost peer. Any goroutine may call it.
	Fault() error
	// Abort ends work that waits for a peer. Any goroutine may call it.
	Abort()
	// Close ends it normally.
	Close() error
	// Version is the library's, 10000·major + 100·minor + patch.
	Version() int
}

// Joiner is a Driver whose GPU can communicate with others.
type Joiner interface {
	// Join blocks until all ranks have called it.
	Join(id CommID, rank, size int) (Communicator, error)
}
