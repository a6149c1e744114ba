package data

import (
	"errors"
	"fmt"

	"antiphase/internal/fault"
)

// Prefetcher is a loader whose next batch is gathered by a goroutine while the caller works on the last one, because
// random rows of a mapped file may have to be read from disk. It is not safe for concurrent use.
type Prefetcher struct {
	loader     *Loader
	before, at Position // beginning and end of the batch last returned by Next
	epoch      float64
	used       []float64 // passes over each component

	batch   struct{ inputs, targets, starts []int32 } // owned by the goroutine until it sends on ready
	want    chan struct{}
	ready   chan error
	pending bool // a batch is being gathered, or is ready
}

// Prefetch takes ownership of a loader; it must not be used directly until Close. Gathering begins with the first Next.
func Prefetch(l *Loader) *Prefetcher {
	n := l.b * l.t
	p := &Prefetcher{loader: l, want: make(chan struct{}), ready: make(chan error, 1)}
	p.batch.inputs, p.batch.targets, p.batch.starts = make([]int32, n), make([]int32, n), make([]int32, n)
	p.note()
	go p.serve()
	return p
}

// note records the loader's position while nothing is in flight.
func (p *Prefetcher) note() {
	p.before, p.at = p.at, p.before
	p.loader.position(&p.at)
	p.epoch, p.used = p.loader.Epoch(), p.loader.Epochs(p.used[:0])
}

func (p *Prefetcher) serve() {
	defer fault.Guard()() // a mapped file that is truncated meanwhile faults; gather turns that into an error
	for range p.want {
		p.ready <- p.gather()
	}
	close(p.ready)
}

func (p *Prefetcher) gather() (err error) {
	defer func() {
		if x := recover(); x != nil {
			err = &CorruptError{File: p.loader.split.dir,
				Fault: fmt.Sprintf("reading a batch failed, the files changed or are damaged: %v", x)}
		}
	}()
	p.loader.Next(p.batch.inputs, p.batch.targets, p.batch.starts)
	return nil
}

// start requests the next batch, if there is one.
func (p *Prefetcher) start() {
	if p.loader.Left() >= uint64(p.loader.b) {
		p.pending = true
		p.want <- struct{}{}
	}
}

// Next is [Loader.Next] with the gathered batch, and requests the next one.
func (p *Prefetcher) Next(inputs, targets, starts []int32) error {
	if !p.pending {
		p.start()
	}
	if !p.pending {
		return fmt.Errorf("data: the sources' epochs allow no further batch of %d rows", p.loader.b)
	}
	err := <-p.ready
	p.pending = false
	if err != nil {
		return err
	}
	copy(inputs, p.batch.inputs)
	copy(targets, p.batch.targets)
	copy(starts, p.batch.starts)
	p.note()
	p.start()
	return nil
}

// Position is the end of the batches consumed so far; a batch being gathered does not count.
func (p *Prefetcher) Position() Position { return p.at.clone() }

// Before is the position at which the batch last returned by Next begins.
func (p *Prefetcher) Before() Position { return p.before.clone() }

// Epoch is [Loader.Epoch] at that position.
func (p *Prefetcher) Epoch() float64 { return p.epoch }

// Epochs is [Loader.Epochs] at that position.
func (p *Prefetcher) Epochs(dst []float64) []float64 { return append(dst, p.used...) }

// Seek is [Loader.Seek].
func (p *Prefetcher) Seek(to Position) error {
	p.wait()
	err := p.loader.Seek(to)
	if err != nil {
		to = p.at // the current position: a batch in flight had moved it
		err = errors.Join(err, p.loader.Seek(to))
	}
	p.note()
	return err
}

// wait waits for a batch in flight and drops it.
func (p *Prefetcher) wait() {
	if p.pending {
		<-p.ready
		p.pending = false
	}
}

// Close ends the goroutine and waits for it.
func (p *Prefetcher) Close() {
	p.wait()
	close(p.want)
	for range p.ready {
	}
}
