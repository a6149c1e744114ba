package dist

import (
	"fmt"
	"sync"
	"time"

	"antiphase/internal/cu"
	"antiphase/tensor"
)

// Streamer is a device whose work runs on a GPU's stream.
type Streamer interface {
	// Stream is the driver, with all work before asked of it.
	Stream() cu.Driver
}

// gpus is the Comm over NCCL. Calls return when the work is queued; what goes wrong later is noticed by a goroutine
// that asks.
type gpus struct {
	dev        Streamer
	comm       cu.Communicator
	rank, size int
	scratch    uintptr // of Barrier
	stop       chan struct{}
	once       sync.Once
	mu         sync.Mutex
	err        error
}

// poll is how often NCCL is asked for faults.
const poll = time.Second

// NCCL joins the GPUs of a job's ranks. A fault that NCCL notices ends the job.
func NCCL(j *Job, dev Streamer) (Comm, error) {
	var id cu.CommID
	var failed error
	if j.Launch.Rank == 0 {
		if id, failed = cu.NewCommID(); failed != nil {
			j.Fail(failed)
			return nil, fmt.Errorf("dist: %w", failed)
		}
	}
	all, err := j.Exchange("nccl", id[:])
	if err != nil {
		return nil, err
	}
	copy(id[:], all[0])
	joiner, ok := dev.Stream().(cu.Joiner)
	if !ok {
		return nil, fmt.Errorf("dist: NCCL is %w on this device", ErrUnavailable)
	}
	comm, err := joiner.Join(id, j.Launch.Rank, j.Launch.World)
	if err != nil {
		return nil, fmt.Errorf("dist: %w", err)
	}
	g := &gpus{dev: dev, comm: comm, rank: j.Launch.Rank, size: j.Launch.World, stop: make(chan struct{})}
	if g.scratch, err = dev.Stream().Alloc(256); err != nil {
		return nil, fmt.Errorf("dist: %w", err)
	}
	go g.watch(j)
	return g, nil
}

// watch asks for faults until the end.
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

// ready has everything before asked of the GPU.
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

// Barrier waits for a sum of nothing.
func (g *gpus) Barrier() error {
	if err := g.ready(); err != nil {
		return err
	}
	if err := g.comm.AllReduce(g.scratch, 1, false); err != nil {
		return err
	}
	return g.dev.Stream().Sync()
}

// Abort ends work on the GPU that waits for a rank that is gone.
func (g *gpus) Abort(why error) {
	g.mu.Lock()
	g.err = why
	g.mu.Unlock()
	g.once.Do(func() { close(g.stop) })
	g.comm.Abort()
}

func (g *gpus) Close() error {
	g.once.Do(func() { close(g.stop) })
	return g.comm.Close()
}
