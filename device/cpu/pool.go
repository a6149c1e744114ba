package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"antiphase/internal/fault"
)

// task is one op in progress: tile i is done by the given worker. The result must not depend on which worker gets a
// tile.
type task interface{ tile(i, worker int) }

// pool is a fixed set of workers; number 0 is the caller of run itself.
//
// The gate is one word: the number of the run, an open bit, and how many workers are inside. A worker enters by adding
// itself while the gate is open and leaves when no tile is left; the caller works too, closes the gate when no tiles
// are left and waits until no worker is inside. So a worker that wakes late costs nothing: it finds the gate closed.
type pool struct {
	gate   atomic.Uint64
	shares shares
	paces  paces
	task   task

	ahead  span // the next weight, at this turn
	turns  int
	errand errand // of the caller

	helpers []helper
	done    sync.WaitGroup
	stop    atomic.Bool
}

// helper is a worker other than the caller.
type helper struct {
	wake   chan struct{}
	parked atomic.Bool
	errand errand
	_      [64]byte // helpers do not share cache lines
}

const (
	gateOpen   = 1 << 32
	gateRun    = 1 << 33
	gateInside = gateOpen - 1

	// spins of a helper before it parks: tens of microseconds, longer than the gaps between the ops of a step.
	spins = 20000
)

func newPool(threads int) *pool {
	p := &pool{helpers: make([]helper, threads-1), shares: newShares(threads), paces: newPaces(threads, mixedCores())}
	for i := range p.helpers {
		p.helpers[i].wake = make(chan struct{}, 1)
		p.done.Add(1)
		go p.help(i)
	}
	return p
}

// run does tiles 0…n−1 of t and returns when all are done.
func (p *pool) run(n int, t task) {
	if n <= 1 || len(p.helpers) == 0 {
		for i := range n {
			t.tile(i, 0)
		}
		return
	}
	p.task = t
	p.shares.cut(n)
	p.gate.Store(p.gate.Load()&^(gateRun-1) + gateRun | gateOpen)
	for i := range min(len(p.helpers), n-1) {
		if h := &p.helpers[i]; h.parked.CompareAndSwap(true, false) {
			h.wake <- struct{}{}
		}
	}
	p.work(0)
	p.errand.look(p, 0)
	for i, g := 1, p.gate.And(^uint64(gateOpen)); g&gateInside != 0; i++ {
		if i%1024 == 0 {
			runtime.Gosched() // a helper may be waiting for this processor
		}
		p.errand.step()
		g = p.gate.Load()
	}
	if p.paces.on {
		p.settle()
	}
	p.task = nil
}

func (p *pool) work(worker int) {
	if p.paces.on {
		p.workPaced(worker)
		return
	}
	for i, ok := p.shares.claim(worker); ok; i, ok = p.shares.claim(worker) {
		p.task.tile(i, worker)
	}
}

// workPaced is work if cores differ.
func (p *pool) workPaced(worker int) {
	for !p.paces.yields(worker, p.shares.left()) {
		i, ok := p.shares.claim(worker)
		if !ok {
			return
		}
		begin := time.Now()
		p.task.tile(i, worker)
		p.paces.took(worker, time.Since(begin))
	}
}

// settle does the share of a worker that never came, and updates the speeds after a run.
func (p *pool) settle() {
	for i, ok := p.shares.claim(0); ok; i, ok = p.shares.claim(0) {
		p.task.tile(i, 0)
	}
	p.paces.learn()
}

// help is the loop of helper i: wait for a new run, enter, work, leave.
func (p *pool) help(i int) {
	defer fault.Guard()()
	defer p.done.Done()
	h := &p.helpers[i]
	last := uint64(0)
	for !p.stop.Load() {
		g := p.await(h, last)
		last = g / gateRun
		for g&gateOpen != 0 && g/gateRun == last {
			if p.gate.CompareAndSwap(g, g+1) {
				h.errand.look(p, i+1)
				p.work(i + 1)
				p.gate.Add(^uint64(0))
				break
			}
			g = p.gate.Load()
		}
	}
}

// await spins until a run newer than last is at the gate, then parks.
func (p *pool) await(h *helper, last uint64) uint64 {
	for {
		for range spins {
			if g := p.gate.Load(); g/gateRun != last {
				return g
			}
			h.errand.step()
		}
		h.parked.Store(true)
		// A run that began before the flag was set would not wake this helper: check again.
		if g := p.gate.Load(); (g/gateRun != last || p.stop.Load()) && h.parked.CompareAndSwap(true, false) {
			return g
		}
		<-h.wake
		if p.stop.Load() {
			return p.gate.Load()
		}
	}
}

// close ends the helpers.
func (p *pool) close() {
	p.stop.Store(true)
	for i := range p.helpers {
		if h := &p.helpers[i]; h.parked.CompareAndSwap(true, false) {
			h.wake <- struct{}{}
		}
	}
	p.done.Wait()
}
