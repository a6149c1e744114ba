package optim

import (
	"runtime"
	"sync"

	"antiphase/device"
	"antiphase/internal/fault"
)

// overlapper is implemented by Ranks whose collectives can run beside the work of an asynchronous device. See
// dist.Overlapper.
type overlapper interface {
	Beside(f func() error) error
	Join() error
}

// background runs collectives while the caller continues computing: on a goroutine, or beside the stream of an
// asynchronous device. If the caller asks for it, it issues them in order instead.
type background struct {
	do     func(i int) error
	queue  chan int   // nil if the caller issues the calls
	beside overlapper // nil unless they run beside a stream
	done   chan error
	begun  int
	err    error
}

func newBackground(d device.Device, r Ranks, n int, do func(i int) error, here bool) *background {
	b := &background{do: do}
	if here {
		return b
	}
	if _, async := d.(device.Recorder); async {
		b.beside, _ = r.(overlapper)
		return b
	}
	b.queue, b.done = make(chan int, n), make(chan error, n)
	runBeside(+1)
	go func() {
		defer fault.Guard()()
		for i := range b.queue {
			b.done <- b.do(i)
		}
	}()
	return b
}

// start begins call i; calls run in the order in which they are started.
func (b *background) start(i int) {
	switch {
	case b.queue != nil:
		b.begun++
		b.queue <- i
	case b.beside != nil:
		b.keep(b.beside.Beside(func() error { return b.do(i) }))
	default:
		b.keep(b.do(i))
	}
}

// keep stores the first error until wait.
func (b *background) keep(err error) {
	if b.err == nil {
		b.err = err
	}
}

// wait returns when all started calls are done, with the first error.
func (b *background) wait() error {
	for ; b.begun > 0; b.begun-- {
		b.keep(<-b.done)
	}
	if b.beside != nil {
		b.keep(b.beside.Join())
	}
	err := b.err
	b.err = nil
	return err
}

// close ends the goroutine, after wait.
func (b *background) close() {
	if b != nil && b.queue != nil {
		close(b.queue)
		runBeside(-1)
	}
}

var procs sync.Mutex

// runBeside lets n more goroutines run at once. The device's threads occupy all that the runtime allows, and a
// goroutine that wakes up beside them would wait for up to 10 ms, at every step of a collective; the operating system
// lets it in at once.
func runBeside(n int) {
	procs.Lock()
	defer procs.Unlock()
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + n)
}

// ready starts the buckets that a completed part of the model fills.
func (b *background) ready(all []bucket) func(part int) {
	return func(part int) {
		for i := range all {
			if all[i].part == part {
				b.start(i)
			}
		}
	}
}
