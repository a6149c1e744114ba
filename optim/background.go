package optim

import (
	"antiphase/device"
	"antiphase/internal/fault"
)

// background makes collectives while the caller goes on computing. On a device whose work is asynchronous anyway
// they are started in its own order, by the caller; so they are where the caller asks for it.
type background struct {
	do    func(i int) error
	queue chan int // nil where the caller makes the calls
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

// start begins call i; calls are made in the order in which they begin.
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

// wait returns when all calls that have begun are done, with the first error.
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

// ready starts the buckets that a part of the model completes.
func (b *background) ready(all []bucket) func(part int) {
	return func(part int) {
		for i := range all {
			if all[i].part == part {
				b.start(i)
			}
		}
	}
}
