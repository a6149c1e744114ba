package optim

import (
	"errors"

	"antiphase/device"
	"antiphase/model"
)

// Stepper takes optimiser steps: every micro-batch adds its gradient of the step's mean loss, then one update follows.
// If the device can record work, steps of one shape are a single call after the second. After its first steps it
// allocates nothing.
type Stepper struct {
	model  *model.Model
	optim  *AdamW
	micro  int // sequences per micro-batch
	feed   model.Feed
	losses []float32

	shape  shape
	work   func()
	repeat device.Repeat

	part   model.Batch // this rank's rows
	ballot *ballot     // nil for a single process
	stop   bool        // this process wants to stop
	save   bool        // this process wants a checkpoint
}

// shape is what the recorded work depends on besides the contents of device memory.
type shape struct {
	b, t  int
	apart bool    // documents are isolated
	scale float64 // factor on the loss: one over the number of scored tokens
	model int     // model version
}

// NewStepper returns a stepper for m and o that runs micro sequences at a time.
func NewStepper(m *model.Model, o *AdamW, micro int) *Stepper {
	s := &Stepper{model: m, optim: o, micro: micro}
	s.work = s.run
	if o.ranks != nil {
		s.ballot = newBallot(m.Device(), o.world)
	}
	return s
}

// Free releases device memory; call it before the model and the optimiser are freed.
func (s *Stepper) Free() {
	s.repeat.Forget()
	s.feed.Free()
	s.ballot.free()
}

// Recorded reports whether the next step of the same shape is one call, and if not, the error that prevented it (nil if
// none).
func (s *Stepper) Recorded() (bool, error) { return s.repeat.Recorded() }

// Step is optimiser step number n ≥ 1 on a whole batch; each of several ranks computes its own rows. It returns the
// mean loss of the scored tokens and the gradient norm, which are the same on all ranks. If the norm is not finite, the
// weights do not change.
func (s *Stepper) Step(b *model.Batch, n int, lr float64) (loss, norm float64, err error) {
	count := 0
	for _, id := range b.Targets {
		if id >= 0 {
			count++
		}
	}
	count = max(count, 1)
	if s.ballot != nil {
		b = s.own(b)
	}
	if err := s.model.Put(&s.feed, b, s.micro); err != nil {
		return 0, 0, err
	}
	if now := (shape{b.B, b.T, b.Starts != nil, 1 / float64(count), s.model.Version()}); now != s.shape {
		s.repeat.Forget()
		s.shape = now
	}
	s.optim.SetRate(n, lr)
	if s.model.ByHost() {
		s.run()
	} else {
		s.repeat.Run(s.model.Device(), s.work)
	}
	if len(s.losses) != len(b.IDs) {
		s.losses = make([]float32, len(b.IDs))
	}
	s.model.Losses(s.losses)
	for _, x := range s.losses {
		loss += float64(x)
	}
	if s.ballot != nil {
		loss = s.ballot.count(s, loss)
	}
	norm = s.optim.Norm()
	err = errors.Join(s.optim.err, s.model.Split().Err(), s.model.Device().Sync())
	return loss / float64(count), norm, err
}

// run is the device's part of a step. If recording fails it runs again, and errors of the recording are dropped.
func (s *Stepper) run() {
	s.optim.err = nil
	s.model.Split().Forget()
	s.model.Gradient(&s.feed, s.shape.scale, s.optim.ready)
	if s.optim.ranks != nil {
		s.optim.fail(s.optim.reduced.wait())
	}
	s.optim.Step()
}
