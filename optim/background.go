package optim

import (
	"antiphase/device"
	"antiphase/internal/fault"
)

// background runs collectives while the caller continues computing. If the device is asynchronous, or the caller asks
// for it, the caller issues them in stream order instead.
type background struct {
	do    func(i int) error
	queue chan int // nil if the caller issues the calls
	done  chan error
	begun int
	err   error
}

func newBackground(d device.Device, n int, do func(i int) error, here bool) *background {
	b := &background{do: do}
	if _, async := d.(device.Recorder); async || here {
		return b
	}
	b.queue, b.done = make(chan int, n), make(chan error, n)
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
	if b.queue == nil {
		if err := b.do(i); b.err == nil {
			b.err = err
		}
		return
	}
	b.begun++
	b.queue <- i
}

// wait returns when all started calls are done, with the first error.
func (b *background) wait() error {
	for ; b.begun > 0; b.begun-- {
		if err := <-b.done; err != nil && b.err == nil {
			b.err = err
		}
	}
	err := b.err
	b.err = nil
	return err
}

// close ends the goroutine, after wait.
func (b *background) close() {
	if b != nil && b.queue != nil {
		close(b.queue)
	}
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
