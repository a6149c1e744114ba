package dist

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"antiphase/internal/cu"
	"antiphase/internal/fault"
	"antiphase/tensor"
)

// Streamer is a device whose work runs on a GPU's stream.
type Streamer interface {
	// Stream returns the driver after all earlier work has been queued.
	Stream() cu.Driver
}

// gpus is the Comm over NCCL. Calls return when the work is queued; a goroutine polls for later errors.
type gpus struct {
	job        *Job
	dev        Streamer
	comm       cu.Communicator
	rank, size int
	scratch    uintptr // for Barrier
	stop       chan struct{}
	once       sync.Once
	watching   sync.WaitGroup // Close must not free what watch still polls
	mu         sync.Mutex
	err        error
	tag        string  // of its exchanges
	groups     []*gpus // groups split from it
}

// poll is the interval at which NCCL is polled for errors.
const poll = time.Second

// newCommID makes the id of a group; tests make their own where there is no NCCL.
var newCommID = cu.NewCommID

// NCCL connects the GPUs of a job's ranks. An error that NCCL detects ends the job.
func NCCL(j *Job, dev Streamer) (Comm, error) {
	all := make([]int, j.Launch.World)
	for r := range all {
		all[r] = r
	}
	return joinGPUs(j, dev, "nccl", all)
}

// joinGPUs makes a group of these ranks of the job, of which this is one. Every rank of the job makes one at the same
// time, because ids are exchanged among all.
func joinGPUs(j *Job, dev Streamer, tag string, members []int) (*gpus, error) {
	var id cu.CommID
	var failed error
	if j.Launch.Rank == members[0] {
		if id, failed = newCommID(); failed != nil {
			j.Fail(failed, 0)
			return nil, fmt.Errorf("dist: %w", failed)
		}
	}
	all, err := j.Exchange(tag, id[:])
	if err != nil {
		return nil, err
	}
	copy(id[:], all[members[0]])
	joiner, ok := dev.Stream().(cu.Joiner)
	if !ok {
		return nil, fmt.Errorf("dist: NCCL is %w on this device", ErrUnavailable)
	}
	g := &gpus{job: j, dev: dev, rank: slices.Index(members, j.Launch.Rank), size: len(members),
		stop: make(chan struct{}), tag: tag}
	if g.comm, err = joiner.Join(id, g.rank, g.size); err != nil {
		return nil, fmt.Errorf("dist: %w", err)
	}
	if g.scratch, err = dev.Stream().Alloc(256); err != nil {
		return nil, fmt.Errorf("dist: %w", err)
	}
	g.watching.Go(func() {
		defer fault.Guard()()
		g.watch(j)
	})
	return g, nil
}

// Split makes new groups in the way the first one was made. Only the job's own group can be split.
func (g *gpus) Split(color int) (Comm, error) {
	if g.size != g.job.Launch.World {
		return nil, errors.New("dist: a group of GPUs that was split is not split again")
	}
	tag := fmt.Sprintf("%s-%d", g.tag, len(g.groups))
	all, err := g.job.Exchange(tag+"-color", []byte(strconv.Itoa(color)))
	if err != nil {
		return nil, err
	}
	var members []int
	for r, c := range all {
		if string(c) == strconv.Itoa(color) {
			members = append(members, r)
		}
	}
	part, err := joinGPUs(g.job, g.dev, tag, members)
	if err == nil {
		g.groups = append(g.groups, part)
	}
	return part, err
}

// watch polls for errors until the end.
func (g *gpus) watch(j *Job) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case <-g.stop:
			return
		case <-tick.C:
			if err := g.comm.Fault(); err != nil {
				j.lose(fmt.Errorf("%w: %w", ErrPeer, err))
				return
			}
		}
	}
}

func (g *gpus) Rank() int     { return g.rank }
func (g *gpus) Size() int     { return g.size }
func (g *gpus) Ordered() bool { return false }

// String names the library.
func (g *gpus) String() string {
	v := g.comm.Version()
	return fmt.Sprintf("NCCL %d.%d.%d", v/10000, v/100%100, v%100)
}

func addr(t tensor.Tensor) uintptr { return t.Buf.Addr + uintptr(t.Off) }

// ready queues all earlier work on the GPU.
func (g *gpus) ready() error {
	g.dev.Stream()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

func (g *gpus) AllReduce(x tensor.Tensor) error {
	CheckSum("AllReduce", x)
	if err := g.ready(); err != nil {
		return err
	}
	return g.comm.AllReduce(addr(x), x.Len(), x.Type == tensor.F64)
}

func (g *gpus) ReduceScatter(out, x tensor.Tensor) error {
	CheckSum("ReduceScatter", x)
	CheckScatter("ReduceScatter", out, x, g.size)
	if err := g.ready(); err != nil {
		return err
	}
	return g.comm.ReduceScatter(addr(out), addr(x), out.Len(), x.Type == tensor.F64)
}

func (g *gpus) AllGather(out, x tensor.Tensor) error {
	CheckScatter("AllGather", x, out, g.size)
	if err := g.ready(); err != nil {
		return err
	}
	return g.comm.AllGather(addr(out), addr(x), x.Len()*x.Type.Size())
}

func (g *gpus) Broadcast(x tensor.Tensor, root int) error {
	if err := g.ready(); err != nil {
		return err
	}
	return g.comm.Broadcast(addr(x), x.Len()*x.Type.Size(), root)
}

// Beside queues earlier work first.
func (g *gpus) Beside(f func() error) error {
	if err := g.ready(); err != nil {
		return err
	}
	return g.comm.Beside(f)
}

func (g *gpus) Join() error {
	if err := g.ready(); err != nil {
		return err
	}
	return g.comm.Join()
}

// Barrier waits for an empty sum.
func (g *gpus) Barrier() error {
	if err := g.ready(); err != nil {
		return err
	}
	if err := g.comm.AllReduce(g.scratch, 1, false); err != nil {
		return err
	}
	return g.dev.Stream().Sync()
}

// Abort ends GPU work that waits for a lost rank.
func (g *gpus) Abort(why error) {
	g.mu.Lock()
	g.err = why
	g.mu.Unlock()
	g.once.Do(func() { close(g.stop) })
	g.comm.Abort()
	for _, part := range g.groups {
		part.Abort(why)
	}
}

// Close first closes the groups split from it.
func (g *gpus) Close() error {
	var err error
	for _, part := range g.groups {
		err = errors.Join(err, part.Close())
	}
	g.once.Do(func() { close(g.stop) })
	g.watching.Wait()
	return errors.Join(err, g.comm.Close())
}
