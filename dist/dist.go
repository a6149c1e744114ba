// Package dist lets several processes train one model: it finds out how they were started, brings them together,
// checks that they are about to do the same thing, and gives them collectives.
//
//	Detect   reads the launcher's variables (Slurm, Open MPI, MPICH, torchrun, Kubernetes) and refuses contradictions
//	Join     meets the other ranks at a small TCP store and watches them until Close
//	Agree    compares recipe, version and data of all ranks before anything is trained
//	Comm     sums and gathers tensors: MPI for memory of the host, NCCL for a GPU's, both opened at run time
//
// There is no elastic membership: a rank that dies or hangs ends the job on all ranks within Options.PeerTimeout,
// and the scheduler starts it again. Package disttest has a world of goroutines for tests.
package dist

import (
	"errors"
	"fmt"

	"antiphase/tensor"
)

// Comm is a rank's end of a group of ranks. Every rank calls the same methods with the same shapes in the same order.
// Tensors are dense; their work is in the order of the device's: what ops before the call wrote is sent, and ops
// after it see the result. Host engines return when it is there, NCCL may return at once and tell a fault later.
//
// Sums are over F32 or F64 tensors. Where Ordered is true they are formed in the order of ranks, ((x0 + x1) + x2) +
// …, and so have the same bits whatever the engine or its algorithm.
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
	// Split makes groups of the ranks that name the same color, each in this group's order, and gives this rank's. All
	// ranks call it. A group ends with the one that it was split from: Abort of either is Abort of both, and only the
	// first one is closed.
	Split(color int) (Comm, error)
	// Abort ends the group: calls that wait return an error where the engine can be interrupted.
	Abort(why error)
	// Close leaves the group in good order, after the last collective of every rank.
	Close() error
}

// ErrUnavailable is wrapped where an engine's library cannot be opened.
var ErrUnavailable = errors.New("not available")

// ErrPeer is wrapped by errors that another rank caused: it died, hangs, or gave up. The job can be started again.
var ErrPeer = errors.New("a rank was lost")

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
