package cu

// CommID is what rank 0 makes and every rank needs to join a Communicator: an ncclUniqueId.
type CommID [128]byte

// Communicator joins the GPUs of several processes. Its work runs in the order of the driver's stream, and is
// recorded with it.
type Communicator interface {
	// AllReduce sums n float32 (or float64) numbers in place.
	AllReduce(addr uintptr, n int, double bool) error
	// ReduceScatter sums parts of n numbers each; dst gets this rank's.
	ReduceScatter(dst, src uintptr, n int, double bool) error
	// AllGather collects bytes from every rank.
	AllGather(dst, src uintptr, bytes int) error
	Broadcast(addr uintptr, bytes, root int) error
	// Fault is what the library noticed since, such as a peer that is gone. Any goroutine may ask.
	Fault() error
	// Abort ends work that waits for a peer. Any goroutine may call it.
	Abort()
	// Close ends it in good order.
	Close() error
	// Version is the library's, 10000·major + 100·minor + patch.
	Version() int
}

// Joiner is a Driver whose GPU can work together with others.
type Joiner interface {
	// Join blocks until all ranks have called it.
	Join(id CommID, rank, size int) (Communicator, error)
}
