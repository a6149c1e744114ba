package dist

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"antiphase/tensor"
)

// hall is where ranks of a library in memory meet: each collective waits for all of them.
type hall struct {
	mu    sync.Mutex
	cond  *sync.Cond
	round int
	in    [][]byte
	count int
	last  [][]byte
}

func newHall(size int) *hall {
	h := &hall{in: make([][]byte, size)}
	h.cond = sync.NewCond(&h.mu)
	return h
}

// exchange gives every rank what all of them brought.
func (h *hall) exchange(rank int, b []byte) [][]byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.in[rank] = slices.Clone(b)
	if h.count++; h.count == len(h.in) {
		h.last, h.count = slices.Clone(h.in), 0
		h.round++
		h.cond.Broadcast()
		return h.last
	}
	for round := h.round; h.round == round; {
		h.cond.Wait()
	}
	return h.last
}

// memoryMPI is an MPI library among goroutines.
type memoryMPI struct {
	h         *hall
	rank      int
	finalized bool
	fail      error
	only      string // the call that fails; "": all
}

func (m *memoryMPI) end(call string) error {
	if m.only == "" || m.only == call {
		return m.fail
	}
	return nil
}

func (m *memoryMPI) world() (rank, size int, err error) { return m.rank, len(m.h.in), nil }
func (m *memoryMPI) name() string                       { return "memory" }
func (m *memoryMPI) barrier() error                     { m.h.exchange(m.rank, nil); return m.fail }
func (m *memoryMPI) finalize() error                    { m.finalized = true; return m.fail }

func (m *memoryMPI) allToAll(b, a []byte, n int) error {
	for r, x := range m.h.exchange(m.rank, a) {
		copy(b[r*n:(r+1)*n], x[m.rank*n:(m.rank+1)*n])
	}
	return m.end("allToAll")
}

func (m *memoryMPI) allGather(b, a []byte, n int) error {
	for r, x := range m.h.exchange(m.rank, a[:n]) {
		copy(b[r*n:], x)
	}
	return m.end("allGather")
}

func (m *memoryMPI) allReduce(x []byte, t tensor.DType) error {
	all := m.h.exchange(m.rank, x)
	whole := slices.Concat(all...)
	sumParts(whole, len(x), len(all), t)
	copy(x, whole)
	return m.fail
}

func (m *memoryMPI) broadcast(x []byte, root int) error {
	copy(x, m.h.exchange(m.rank, x)[root])
	return m.fail
}

// split is of colors that halve the ranks: even and odd ones.
func (m *memoryMPI) split(color, key int) (mpiLib, error) {
	all := m.h.exchange(m.rank, []byte{byte(color), byte(key)})
	h := newHall(0)
	place := 0
	for _, x := range all {
		if x[0] == byte(color) {
			h.in = append(h.in, nil)
			if x[1] < byte(key) {
				place++
			}
		}
	}
	groups.Lock()
	defer groups.Unlock()
	at := fmt.Sprintf("%p %d %d", m.h, m.h.round, color)
	if groups.m[at] == nil {
		groups.m[at] = h
	}
	return &memoryMPI{h: groups.m[at], rank: place}, m.fail
}

var groups = struct {
	sync.Mutex
	m map[string]*hall
}{m: map[string]*hall{}}

// onMemoryMPI runs f on every rank.
func onMemoryMPI(t *testing.T, size int, fast bool, f func(m *mpi)) {
	t.Helper()
	h := newHall(size)
	var wg sync.WaitGroup
	for r := range size {
		wg.Go(func() {
			m := &mpi{fast: fast, lib: &memoryMPI{h: h, rank: r},
				rank: r, size: size, mpiThread: &mpiThread{calls: make(chan func()), done: make(chan struct{}),
					aborted: make(chan struct{})}}
			go func() {
				defer close(m.done)
				for call := range m.calls {
					call()
				}
			}()
			f(m)
			if err := m.Close(); err != nil || !m.lib.(*memoryMPI).finalized {
				t.Errorf("rank %d closes: %v", r, err)
			}
		})
	}
	wg.Wait()
}

func floatsOf(x []float32) tensor.Tensor {
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
	return tensor.Tensor{Buf: &tensor.Buffer{Host: b, Size: len(b)}, Type: tensor.F32, Rows: 1,
		Cols: len(x), Ld: len(x)}
}

// mpiValues are n numbers of a rank whose sums depend on the order.
func mpiValues(rank, n int) []float32 {
	x, h := make([]float32, n), uint32(rank*1000+n)
	for i := range x {
		h = h*1664525 + 1013904223
		x[i] = float32(int32(h)>>8) * float32(int(1)<<(h%3*8))
	}
	return x
}

// mpiSum adds those of size ranks in the order of ranks.
func mpiSum(size, n int) []float32 {
	out := mpiValues(0, n)
	for r := 1; r < size; r++ {
		for i, v := range mpiValues(r, n) {
			out[i] += v
		}
	}
	return out
}

// The collectives over a library, against their definition: parts of every size around that of a segment, sums in the
// order of ranks, bit for bit.
func TestMPIInMemory(t *testing.T) {
	const size = 3
	for _, fast := range []bool{false, true} {
		onMemoryMPI(t, size, fast, func(m *mpi) {
			if m.Rank() != m.lib.(*memoryMPI).rank || m.Size() != size || m.Ordered() == fast ||
				m.String() != "memory" {
				t.Errorf("rank %d of %d, ordered %v, %s", m.Rank(), m.Size(), m.Ordered(), m.String())
			}
			for _, n := range []int{1, 2, 3, 7, segment/4 - 1, segment/4 + 1} {
				x := mpiValues(m.rank, n)
				if err := m.AllReduce(floatsOf(x)); err != nil || !slices.Equal(x, mpiSum(size, n)) {
					t.Errorf("sum of %d numbers: %v", n, err)
				}
				whole, part := mpiValues(m.rank, size*n), make([]float32, n)
				if err := m.ReduceScatter(floatsOf(part), floatsOf(whole)); err != nil ||
					!slices.Equal(part, mpiSum(size, size*n)[m.rank*n:(m.rank+1)*n]) {
					t.Errorf("part of a sum of %d numbers: %v", n, err)
				}
				own, all := mpiValues(m.rank, n), make([]float32, size*n)
				if err := m.AllGather(floatsOf(all), floatsOf(own)); err != nil ||
					!slices.Equal(all, slices.Concat(mpiValues(0, n), mpiValues(1, n), mpiValues(2, n))) {
					t.Errorf("gathering %d numbers: %v", n, err)
				}
				b := mpiValues(m.rank, n)
				if err := m.Broadcast(floatsOf(b), 1); err != nil || !slices.Equal(b, mpiValues(1, n)) {
					t.Errorf("broadcasting %d numbers: %v", n, err)
				}
			}
			long := mpiValues(m.rank, size*segment/4+2) // more than the ranks' segments
			if err := m.AllReduce(floatsOf(long)); err != nil || !slices.Equal(long, mpiSum(size, len(long))) {
				t.Errorf("a long sum: %v", err)
			}
			if err := m.Barrier(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Groups of ranks 0 and 2, and of rank 1, add their own numbers.
func TestMPIGroups(t *testing.T) {
	for _, fast := range []bool{false, true} {
		onMemoryMPI(t, 3, fast, func(m *mpi) {
			g, err := m.Split(m.rank % 2)
			if err != nil || g.Size() != []int{2, 1}[m.rank%2] || g.Rank() != m.rank/2 || g.Ordered() == fast {
				t.Errorf("rank %d is rank %d of %d in its group, %v", m.rank, g.Rank(), g.Size(), err)
			}
			x := mpiValues(m.rank, 5)
			want := [][]float32{mpiValues(0, 5), mpiValues(1, 5)}[m.rank%2]
			if m.rank%2 == 0 {
				for i, v := range mpiValues(2, 5) {
					want[i] += v
				}
			}
			if err := errors.Join(g.AllReduce(floatsOf(x)), g.Close()); err != nil || !slices.Equal(x, want) {
				t.Errorf("sum in a group: %v, %v", x, err)
			}
		})
	}
}

// Parts are added in their own type.
func TestSumParts(t *testing.T) {
	three := []float64{1, 4, 1e-10, 2e-10, 3e-10, 5e-10} // float32 would lose the small ones
	if sumParts(unsafe.Slice((*byte)(unsafe.Pointer(&three[0])), 48), 16, 3, tensor.F64); three[0] != 1+1e-10+3e-10 ||
		three[1] != 4+2e-10+5e-10 {
		t.Error(three)
	}
	sumParts(nil, 0, 2, tensor.F32)
}

// Errors of the library reach the caller; after Abort every call returns its reason, and closing is harmless.
func TestMPIEnds(t *testing.T) {
	lost, why := errors.New("lost"), errors.New("given up")
	m := &mpi{lib: &memoryMPI{h: newHall(1), fail: lost}, size: 1,
		mpiThread: &mpiThread{calls: make(chan func()), done: make(chan struct{}), aborted: make(chan struct{})}}
	go func() {
		defer close(m.done)
		for call := range m.calls {
			call()
		}
	}()
	x := func() tensor.Tensor { return floatsOf(make([]float32, 4)) }
	all := map[string]func() error{"AllReduce": func() error { return m.AllReduce(x()) },
		"ReduceScatter": func() error { return m.ReduceScatter(x(), x()) },
		"AllGather":     func() error { return m.AllGather(x(), x()) },
		"Broadcast":     func() error { return m.Broadcast(x(), 0) }, "Barrier": m.Barrier,
		"Split": func() error { _, err := m.Split(0); return err }}
	for name, call := range all {
		if err := call(); !errors.Is(err, lost) {
			t.Errorf("%s: %v", name, err)
		}
	}
	blocked, release := make(chan error), make(chan struct{})
	inside := make(chan struct{})
	go func() { blocked <- m.do(func() error { close(inside); <-release; return nil }) }()
	<-inside
	m.Abort(why)
	m.Abort(errors.New("another"))
	if err := <-blocked; err != why {
		t.Errorf("a call that waited: %v", err)
	}
	for name, call := range all {
		if err := call(); err != why {
			t.Errorf("%s after the end: %v", name, err)
		}
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	close(release)
	close(m.calls)
	<-m.done
	for name, bad := range map[string]tensor.Tensor{"a view": {Buf: x().Buf, Type: tensor.F32, Rows: 2, Cols: 1, Ld: 2},
		"on a GPU": {Buf: &tensor.Buffer{Addr: 5}, Type: tensor.F32, Rows: 1, Cols: 1, Ld: 1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is taken", name)
				}
			}()
			hostBytes(bad)
		}()
	}
}

// Which libraries are tried for a launcher.
func TestMPINames(t *testing.T) {
	seen := func(source string) Launch { return Launch{Source: source, Seen: []Finding{{Source: source}}} }
	for _, c := range []struct {
		l    Launch
		env  string
		want string // the names, or part of the error after !
	}{
		{seen("mpich"), "ANTIPHASE_MPI=/x/libmpi.so", "/x/libmpi.so"},
		{seen("openmpi"), "", "libmpi.so.40 libmpi.so.80 libmpi.so.20"},
		{seen("mpich"), "", "libmpich.so.12 libmpi.so.12"}, {seen("mvapich2"), "", "libmpich.so.12 libmpi.so.12"},
		{seen("slurm"), "PMIX_RANK=0", "libmpi.so.40 libmpi.so.80 libmpi.so.20 libmpich.so.12 libmpi.so.12"},
		{seen("slurm"), "PMI_FD=5", "libmpich.so.12 libmpi.so.12"},
		{seen("slurm"), "", "!srun has not prepared MPI"}, {seen("torchrun"), "", "!torchrun does not start it"},
	} {
		names, err := mpiNames(c.l, env(strings.Fields(c.env)...))
		if bad, refused := strings.CutPrefix(c.want, "!"); refused && (err == nil ||
			!strings.Contains(err.Error(), bad)) || !refused && (err != nil || strings.Join(names, " ") != c.want) {
			t.Errorf("%s %s: %v, %v; want %s", c.l.Source, c.env, names, err, c.want)
		}
	}
}
