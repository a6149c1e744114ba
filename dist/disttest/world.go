// Package disttest runs ranks inside one process, for tests: goroutines instead of processes, copies instead of a
// network, sums in rank order. Check checks any engine against dist.Comm's contract.
package disttest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"antiphase/dist"
	"antiphase/tensor"
)

// Options configure a world.
type Options struct {
	// Bandwidth is the number of bytes per second a rank can send; 0 is unlimited. A collective then takes as long as a
	// ring would at that rate, once its last rank has arrived.
	Bandwidth float64
	// Timeout ends a collective that not all ranks have joined; 0 means a minute.
	Timeout time.Duration
}

// World is n ranks; Comm returns the handle of each.
type World struct {
	opt   Options
	comms []*comm

	mu    sync.Mutex
	calls map[int]*call // by number
	err   error
	over  chan struct{}
	busy  time.Duration // on the wire

	root   *World // the world it was split from, or itself
	groups map[[2]int]*World
}

// call is one collective, from its first rank to its last.
type call struct {
	ins, outs []tensor.Tensor
	op        string
	root      int
	came      []bool
	count     int
	done      chan struct{}
	err       error
}

type comm struct {
	w      *World
	rank   int
	next   int // number of the next collective
	splits int
}

// NewWorld makes a world of n ranks.
func NewWorld(n int, opt Options) *World {
	if opt.Timeout == 0 {
		opt.Timeout = time.Minute
	}
	w := &World{opt: opt, calls: map[int]*call{}, over: make(chan struct{}), groups: map[[2]int]*World{}}
	w.root = w
	for r := range n {
		w.comms = append(w.comms, &comm{w: w, rank: r})
	}
	return w
}

// Comm is a rank's handle.
func (w *World) Comm(rank int) dist.Comm { return w.comms[rank] }

// Wire is the total time of collectives on the artificial wire.
func (w *World) Wire() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.busy
}

// Run runs f as every rank and joins the errors. A rank that fails aborts the others.
func (w *World) Run(f func(c dist.Comm) error) error {
	errs := make([]error, len(w.comms))
	var wg sync.WaitGroup
	for r, c := range w.comms {
		wg.Go(func() {
			if errs[r] = f(c); errs[r] != nil {
				c.Abort(errs[r])
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (c *comm) Rank() int     { return c.rank }
func (c *comm) Size() int     { return len(c.w.comms) }
func (c *comm) Ordered() bool { return true }
func (c *comm) Close() error  { return nil }

func (c *comm) AllReduce(x tensor.Tensor) error {
	dist.CheckSum("AllReduce", x)
	return c.collect("AllReduce", x, x, 0)
}

func (c *comm) ReduceScatter(out, x tensor.Tensor) error {
	dist.CheckSum("ReduceScatter", x)
	dist.CheckScatter("ReduceScatter", out, x, c.Size())
	return c.collect("ReduceScatter", out, x, 0)
}

func (c *comm) AllGather(out, x tensor.Tensor) error {
	dist.CheckScatter("AllGather", x, out, c.Size())
	return c.collect("AllGather", out, x, 0)
}

func (c *comm) Broadcast(x tensor.Tensor, root int) error { return c.collect("Broadcast", x, x, root) }

func (c *comm) Barrier() error { return c.collect("Barrier", tensor.Tensor{}, tensor.Tensor{}, 0) }

// Split exchanges colors with a collective; the first rank of a group to arrive makes its world.
func (c *comm) Split(color int) (dist.Comm, error) {
	n := c.Size()
	mine, all := Floats(1), Floats(n)
	tensor.Host[float32](mine)[0] = float32(color)
	if err := c.AllGather(all, mine); err != nil {
		return nil, err
	}
	size, rank := 0, 0
	for r, x := range tensor.Host[float32](all) {
		if int(x) == color {
			size++
			if r < c.rank {
				rank++
			}
		}
	}
	c.splits++
	w, key := c.w, [2]int{c.splits, color}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.groups[key] == nil {
		w.groups[key] = NewWorld(size, w.opt)
		w.groups[key].root = w.root
	}
	if w.err != nil {
		return nil, w.err
	}
	return w.groups[key].comms[rank], nil
}

func (c *comm) Abort(why error) {
	c.w.root.abort(fmt.Errorf("%w: rank %d: %w", dist.ErrPeer, c.rank, why))
}

// abort ends a world and those split from it.
func (w *World) abort(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = why
		close(w.over)
	}
	for _, g := range w.groups {
		g.abort(why)
	}
}

// collect waits until every rank has joined this collective; the last one performs it for all.
func (c *comm) collect(op string, out, in tensor.Tensor, root int) error {
	w := c.w
	w.mu.Lock()
	if w.err != nil {
		w.mu.Unlock()
		return w.err
	}
	k := w.calls[c.next]
	if k == nil {
		n := len(w.comms)
		k = &call{op: op, root: root, ins: make([]tensor.Tensor, n), outs: make([]tensor.Tensor, n),
			came: make([]bool, n), done: make(chan struct{})}
		w.calls[c.next] = k
	}
	if k.op != op || k.root != root || k.count > 0 && !k.fits(in) {
		k.err = fmt.Errorf("disttest: rank %d comes to collective %d with %s of %v (root %d), others with %s (root %d)",
			c.rank, c.next, op, in, root, k.op, k.root)
	}
	k.ins[c.rank], k.outs[c.rank], k.came[c.rank] = in, out, true
	k.count++
	last := k.count == len(w.comms)
	if last {
		delete(w.calls, c.next)
	}
	w.mu.Unlock()
	number := c.next
	c.next++
	if last {
		if k.err == nil {
			began := time.Now()
			k.perform()
			w.pass(k, began)
		}
		close(k.done)
	}
	return c.wait(k, number)
}

func (c *comm) wait(k *call, number int) error {
	select {
	case <-k.done:
		return k.err
	case <-c.w.over:
		return c.w.err
	case <-time.After(c.w.opt.Timeout):
		c.w.mu.Lock()
		defer c.w.mu.Unlock()
		var late []int
		for r, came := range k.came {
			if !came {
				late = append(late, r)
			}
		}
		return fmt.Errorf("%w: collective %d (%s) is missing ranks %v after %s", dist.ErrPeer, number, k.op, late,
			c.w.opt.Timeout)
	}
}

// fits reports whether in has the shape of the first rank's.
func (k *call) fits(in tensor.Tensor) bool {
	for r, came := range k.came {
		if came {
			return k.ins[r].Type == in.Type && k.ins[r].Len() == in.Len()
		}
	}
	return true
}

// pass waits until a ring of these ranks would be done; time spent on the sums counts.
func (w *World) pass(k *call, began time.Time) {
	if w.opt.Bandwidth == 0 || !k.ins[0].Ok() {
		return
	}
	n := float64(len(w.comms))
	whole := k.ins[0]
	share := (n - 1) / n
	switch k.op {
	case "AllReduce":
		share *= 2
	case "AllGather":
		whole = k.outs[0]
	case "Broadcast":
		share = 1
	}
	d := time.Duration(share * float64(whole.Len()*whole.Type.Size()) / w.opt.Bandwidth * float64(time.Second))
	time.Sleep(time.Until(began.Add(d)))
	w.mu.Lock()
	w.busy += d
	w.mu.Unlock()
}
