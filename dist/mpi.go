package dist

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"antiphase/internal/fault"
	"antiphase/tensor"
)

// mpiLib is an initialised MPI library. All calls come from one OS thread.
type mpiLib interface {
	world() (rank, size int, err error)
	allReduce(x []byte, t tensor.DType) error
	// allToAll: part r of a goes to rank r, part r of b comes from rank r; n bytes each.
	allToAll(b, a []byte, n int) error
	// allGather: n bytes of a from each rank, into b.
	allGather(b, a []byte, n int) error
	broadcast(x []byte, root int) error
	barrier() error
	split(color, key int) (mpiLib, error)
	finalize() error
	name() string
}

// mpi is the Comm over an MPI library. A goroutine locked to its thread makes all calls, which every level of MPI's
// thread support allows.
type mpi struct {
	*mpiThread
	lib        mpiLib
	rank, size int
	fast       bool   // sums by MPI_Allreduce, in the library's own order
	a, b       []byte // staging
	part       bool   // a group split from another
}

// mpiThread makes the calls of all groups.
type mpiThread struct {
	calls   chan func()
	done    chan struct{}
	aborted chan struct{}
	once    sync.Once
	why     error
}

// MPIOptions configure the use of an MPI library.
type MPIOptions struct {
	Fast    bool          // let the library choose the order of sums
	Timeout time.Duration // of initialisation; 0 means DefaultJoin
}

// OpenMPI loads the MPI library that belongs to l's launcher and checks that it found the same world: a library of
// another family starts without an error, alone, and every rank would train a copy.
func OpenMPI(l Launch, o MPIOptions) (Comm, error) { return openWith(l, o, openMPILib) }

// openWith is OpenMPI with the function that loads the library.
func openWith(l Launch, o MPIOptions, load func(Launch) (mpiLib, error)) (Comm, error) {
	if o.Timeout == 0 {
		o.Timeout = DefaultJoin
	}
	m := &mpi{fast: o.Fast, mpiThread: &mpiThread{calls: make(chan func()), done: make(chan struct{}),
		aborted: make(chan struct{})}}
	started := make(chan error, 1)
	go m.run(l, load, started)
	select {
	case err := <-started:
		if err != nil {
			return nil, err
		}
	case <-time.After(o.Timeout):
		return nil, fmt.Errorf("dist: MPI_Init did not return within %s: the launcher's other ranks never came",
			o.Timeout)
	}
	if m.rank != l.Rank || m.size != l.World {
		err := fmt.Errorf("dist: %s found rank %d of %d, but the launcher (%s) says rank %d of %d: the library does "+
			"not belong to it; ANTIPHASE_MPI may name the right one",
			m.lib.name(), m.rank, m.size, l.Source, l.Rank, l.World)
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// run owns the library from its first call to its last.
func (m *mpi) run(l Launch, load func(Launch) (mpiLib, error), started chan<- error) {
	defer fault.Guard()()
	runtime.LockOSThread() // for good: the thread ends with the goroutine
	defer close(m.done)
	lib, err := load(l)
	if err != nil {
		started <- err
		return
	}
	m.lib = lib
	if m.rank, m.size, err = lib.world(); err != nil {
		started <- err
		return
	}
	started <- nil
	for f := range m.calls {
		f()
	}
}

// do runs f on the library's thread. Work waiting there cannot be interrupted, but the caller can.
func (m *mpi) do(f func() error) error {
	result := make(chan error, 1)
	select {
	case m.calls <- func() { result <- f() }:
	case <-m.aborted:
		return m.why
	}
	select {
	case err := <-result:
		return err
	case <-m.aborted:
		return m.why
	}
}

func (m *mpi) Rank() int     { return m.rank }
func (m *mpi) Size() int     { return m.size }
func (m *mpi) Ordered() bool { return !m.fast }

// String names the library.
func (m *mpi) String() string { return m.lib.name() }

// segment is the number of bytes a rank sends to each other rank at a time.
const segment = 256 << 10

// room is the staging buffer for parts of n bytes from and to every rank.
func (m *mpi) room(n int) (a, b []byte) {
	if len(m.a) < n*m.size {
		m.a, m.b = make([]byte, n*m.size), make([]byte, n*m.size)
	}
	return m.a[:n*m.size], m.b[:n*m.size]
}

// AllReduce sums in rank order: each rank receives one part from every rank, adds, and sends the sum to all. This moves
// as many bytes as a ring.
func (m *mpi) AllReduce(x tensor.Tensor) error {
	CheckSum("AllReduce", x)
	return m.do(func() error {
		all := hostBytes(x)
		if m.fast {
			return inPieces(all, 1<<30, func(p []byte) error { return m.lib.allReduce(p, x.Type) })
		}
		return inPieces(all, segment*m.size, func(p []byte) error { return m.reducePiece(p, x.Type) })
	})
}

// reducePiece sums what fits the staging buffer. A short last part is padded with zeros.
func (m *mpi) reducePiece(x []byte, t tensor.DType) error {
	e := t.Size()
	n := (len(x)/e + m.size - 1) / m.size * e
	a, b := m.room(n)
	copy(a, x)
	clear(a[len(x):])
	if err := m.lib.allToAll(b, a, n); err != nil {
		return err
	}
	sumParts(b, n, m.size, t)
	if err := m.lib.allGather(a, b[:n], n); err != nil {
		return err
	}
	copy(x, a)
	return nil
}

// ReduceScatter is the first half of AllReduce.
func (m *mpi) ReduceScatter(out, x tensor.Tensor) error {
	CheckSum("ReduceScatter", x)
	CheckScatter("ReduceScatter", out, x, m.size)
	return m.do(func() error {
		dst, src := hostBytes(out), hostBytes(x)
		part := len(dst)
		for at := 0; at < part; at += segment {
			n := min(segment, part-at)
			a, b := m.room(n)
			for r := range m.size {
				copy(a[r*n:(r+1)*n], src[r*part+at:])
			}
			if err := m.lib.allToAll(b, a, n); err != nil {
				return err
			}
			sumParts(b, n, m.size, x.Type)
			copy(dst[at:at+n], b)
		}
		return nil
	})
}

// AllGather works in pieces through the staging buffer, whose counts fit any library.
func (m *mpi) AllGather(out, x tensor.Tensor) error {
	CheckScatter("AllGather", x, out, m.size)
	return m.do(func() error {
		dst, src := hostBytes(out), hostBytes(x)
		part := len(src)
		for at := 0; at < part; at += segment {
			n := min(segment, part-at)
			a, _ := m.room(n)
			if err := m.lib.allGather(a, src[at:at+n], n); err != nil {
				return err
			}
			for r := range m.size {
				copy(dst[r*part+at:r*part+at+n], a[r*n:])
			}
		}
		return nil
	})
}

func (m *mpi) Broadcast(x tensor.Tensor, root int) error {
	return m.do(func() error {
		return inPieces(hostBytes(x), 1<<30, func(p []byte) error { return m.lib.broadcast(p, root) })
	})
}

func (m *mpi) Barrier() error { return m.do(m.lib.barrier) }

// Split is MPI_Comm_split. One thread makes its calls too, one after the other: ranks must call collectives of all
// their groups in an order that cannot deadlock.
func (m *mpi) Split(color int) (Comm, error) {
	g := &mpi{mpiThread: m.mpiThread, fast: m.fast, part: true}
	err := m.do(func() (err error) {
		if g.lib, err = m.lib.split(color, m.rank); err == nil {
			g.rank, g.size, err = g.lib.world()
		}
		return err
	})
	return g, err
}

// Abort releases waiting callers.
func (m *mpi) Abort(why error) {
	m.once.Do(func() {
		m.why = why
		close(m.aborted)
	})
}

// Close finalises the library, which can be done only once per process. After Abort there is nothing left to do.
func (m *mpi) Close() error {
	if m.part {
		return nil
	}
	select {
	case <-m.aborted:
		return nil
	default:
	}
	err := m.do(m.lib.finalize)
	close(m.calls)
	<-m.done
	return err
}

// hostBytes is the memory of a dense host tensor.
func hostBytes(x tensor.Tensor) []byte {
	if !x.Dense() || x.Buf.Host == nil {
		panic(fmt.Sprintf("dist: MPI of %v; want a dense tensor in host memory", x))
	}
	return x.Buf.Host[x.Off : x.Off+x.Len()*x.Type.Size()]
}

// inPieces passes x to f, at most n bytes at a time.
func inPieces(x []byte, n int, f func([]byte) error) error {
	for len(x) > 0 {
		m := min(n, len(x))
		if err := f(x[:m]); err != nil {
			return err
		}
		x = x[m:]
	}
	return nil
}

// sumParts adds the size parts of b, n bytes each, into the first, in order.
func sumParts(b []byte, n, size int, t tensor.DType) {
	if n == 0 {
		return
	}
	for r := 1; r < size; r++ {
		if t == tensor.F64 {
			addTo[float64](b[:n], b[r*n:(r+1)*n])
		} else {
			addTo[float32](b[:n], b[r*n:(r+1)*n])
		}
	}
}

func addTo[E float32 | float64](dst, src []byte) {
	var e E
	n := len(dst) / int(unsafe.Sizeof(e))
	d, s := unsafe.Slice((*E)(unsafe.Pointer(&dst[0])), n), unsafe.Slice((*E)(unsafe.Pointer(&src[0])), n)
	for i, x := range s {
		d[i] += x
	}
}
