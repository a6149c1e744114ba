package optim

import (
	"antiphase/device"
	"antiphase/model"
)

// Stepper takes optimiser steps: every micro-batch adds its gradient of the step's mean loss, then one update. Where the device
// can record work, steps of one shape are a single call from the third on. It allocates nothing once it has run.
type Stepper struct {
	model  *model.Model
	optim  *AdamW
	micro  int // sequences of a micro-batch
	feed   model.Feed
	losses []float32

	shape  shape
	work   func()
	repeat device.Repeat
}

// shape is what the recorded work depends on besides the contents of device memory.
type shape struct {
	b, t  int
	apart bool    // documents do not see each other
	scale float64 // of the loss: one over the tokens that are scored
	model int     // its version
}

// NewStepper makes steps of m and o, micro sequences at a time.
func NewStepper(m *model.Model, o *AdamW, micro int) *Stepper {
	s := &Stepper{model: m, optim: o, micro: micro}
	s.work = s.run
	return s
}

// Free gives back what it holds on the device, before its model and optimiser are freed.
func (s *Stepper) Free() {
	s.repeat.Forget()
	s.feed.Free()
}

// Recorded says whether the next step of the same shape is one call, and if not, what prevented it (nil where nothing did).
func (s *Stepper) Recorded() (bool, error) { return s.repeat.Recorded() }

// Step is optimiser step number n ≥ 1 on a whole batch. It gives the mean loss of the scored tokens and the gradient's norm; a
// norm that is not finite leaves the weights as they were.
func (s *Stepper) Step(b *model.Batch, n int, lr float64) (loss, norm float64, err error) {
	count := 0
	for _, id := range b.Targets {
		if id >= 0 {
			count++
		}
	}
	count = max(count, 1)
	if err := s.model.Put(&s.feed, b, s.micro); err != nil {
		return 0, 0, err
	}
	if now := (shape{b.B, b.T, b.Starts != nil, 1 / float64(count), s.model.Version()}); now != s.shape {
		s.repeat.Forget()
		s.shape = now
	}
	s.optim.SetRate(n, lr)
	s.repeat.Run(s.model.Device(), s.work)
	if len(s.losses) != len(b.IDs) {
		s.losses = make([]float32, len(b.IDs))
	}
	s.model.Losses(s.losses)
	for _, x := range s.losses {
		loss += float64(x)
	}
	return loss / float64(count), s.optim.Norm(), s.model.Device().Sync()
}

// run is the device's part of a step.
func (s *Stepper) run() {
	s.model.Gradient(&s.feed, s.shape.scale)
	s.optim.Step()
}
