// Package dist lets several processes train one model: it detects how they were started, connects them, checks that
// they are about to do the same work, and provides collectives.
//
//	Detect   reads the launcher's variables (Slurm, Open MPI, MPICH, torchrun, Kubernetes) and rejects contradictions
//	Join     meets the other ranks at a small TCP store and monitors them until Close
//	Agree    compares recipe, version and data of all ranks before training
//	Comm     sums and gathers tensors: MPI for host memory, NCCL for GPU memory, both loaded at run time
//
// There is no elastic membership: when a rank dies or hangs, the job ends on all ranks within Options.PeerTimeout, and
// the scheduler restarts it. Package disttest runs ranks as goroutines for tests.
package dist

import (
	"errors"
	"fmt"

	"antiphase/tensor"
)

// Comm is one rank's handle of a group of ranks. Every rank calls the same methods with the same shapes in the same
// order. Tensors are dense. A collective is ordered with the device's work: it sends what earlier ops wrote, and later
// ops see its result. Host engines return when the result is there; NCCL may return at once and report an error later.
//
// Sums are over F32 or F64 tensors. If Ordered is true they are formed in rank order, ((x0 + x1) + x2) + …, and so are
// bit-identical for any engine and algorithm.
type Comm interface {
	Rank() int
	Size() int
	Ordered() bool
	// AllReduce: x = Σ_r x_r on every rank.
	AllReduce(x tensor.Tensor) error
	// ReduceScatter: out = part Rank of Σ_r x_r, for x of Size·n elements and out of n. out may be that part of x
	// itself.
	ReduceScatter(out, x tensor.Tensor) error
	// AllGather: out = [x_0 | x_1 | …], for x of n elements and out of Size·n, any dtype. x may be part Rank of out
	// itself.
	AllGather(out, x tensor.Tensor) error
	// Broadcast: x = root's x on every rank, any dtype.
	Broadcast(x tensor.Tensor, root int) error
	// Barrier returns once every rank has called it.
	Barrier() error
	// Split makes groups of the ranks that pass the same color, each in this group's order, and returns this rank's.
	// All ranks call it. A group ends with the one it was split from: Abort of either aborts both, and only the first
	// one is closed.
	Split(color int) (Comm, error)
	// Abort ends the group: waiting calls return an error if the engine can be interrupted.
	Abort(why error)
	// Close leaves the group in an orderly way, after the last collective of every rank.
	Close() error
}

// Overlapper is a Comm whose collectives can run beside the device's own work.
type Overlapper interface {
	Comm
	// Beside runs the collectives that f starts after all earlier work of the device and beside later work, which must
	// leave their tensors alone until Join.
	Beside(f func() error) error
	// Join lets later work wait for all collectives of Beside.
	Join() error
}

// ErrUnavailable is wrapped if an engine's library cannot be loaded.
var ErrUnavailable = errors.New("not available")

// ErrPeer is wrapped by errors that another rank caused: it died, hung, or gave up. The job can be restarted.
var ErrPeer = errors.New("a rank was lost")

// GaveUp is the error of ranks that end because another one gave up. It wraps ErrPeer.
type GaveUp struct {
	Text string
	Code int // exit code for all ranks that the one that gave up suggests; 0 for none
}

// Error is what a rank prints.
func (g *GaveUp) Error() string { return fmt.Sprintf("%v: %s", ErrPeer, g.Text) }

// Unwrap returns ErrPeer.
func (g *GaveUp) Unwrap() error { return ErrPeer }

// CheckScatter panics unless whole holds size parts of part's length and dtype; both must be dense.
func CheckScatter(op string, part, whole tensor.Tensor, size int) {
	if part.Type != whole.Type || part.Len()*size != whole.Len() || !part.Dense() || !whole.Dense() {
		panic(fmt.Sprintf("dist: %s of %v and %v among %d ranks", op, part, whole, size))
	}
}

// CheckSum panics unless x is dense and of a dtype that can be summed.
func CheckSum(op string, x tensor.Tensor) {
	if !x.Ok() || !x.Dense() || x.Type != tensor.F32 && x.Type != tensor.F64 {
		panic(fmt.Sprintf("dist: %s of %v; want a dense F32 or F64 tensor", op, x))
	}
}
