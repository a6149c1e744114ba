package optim

import (
	"antiphase/device"
	"antiphase/model"
	"antiphase/tensor"
)

// ballot is what ranks exchange after a step: the sum of their losses and whether they want to stop. All add the same
// numbers in the same order and so reach the same decision.
type ballot struct {
	dev       device.Device
	ranks     Ranks
	mine, all tensor.Tensor // Stat [1,ballotSize], [1,ballotSize·ranks]
	host      []float32
	stop      bool // a rank wants to stop
	save      bool // a rank wants a checkpoint after this step
}

// A loss is sent as two float32 numbers; the second is the rounding error of the first.
const (
	ballotHigh = iota
	ballotLow
	ballotStop
	ballotSave
	ballotSize
)

func newBallot(d device.Device, r Ranks) *ballot {
	stat := d.Types().Stat
	return &ballot{dev: d, ranks: r, mine: device.Empty(d, stat, 1, ballotSize), all: device.Empty(d, stat, 1,
		ballotSize*r.Size()),
		host: make([]float32, ballotSize*r.Size())}
}

func (b *ballot) free() {
	if b != nil {
		b.dev.Free(b.mine.Buf)
		b.dev.Free(b.all.Buf)
	}
}

// count gathers the votes and returns the loss of all ranks.
func (b *ballot) count(s *Stepper, loss float64) float64 {
	mine := b.host[:ballotSize]
	if s.optim.split.Part() > 0 {
		loss = 0 // another rank has the same rows
	}
	mine[ballotHigh] = float32(loss)
	mine[ballotLow] = float32(loss - float64(mine[ballotHigh]))
	mine[ballotStop], mine[ballotSave] = bit(s.stop), bit(s.save)
	device.WriteFloats(b.dev, b.mine, mine)
	s.optim.fail(b.ranks.AllGather(b.all, b.mine))
	device.ReadFloats(b.dev, b.host, b.all)
	total := 0.0
	b.save = false
	for r := 0; r < len(b.host); r += ballotSize {
		total += float64(b.host[r+ballotHigh]) + float64(b.host[r+ballotLow])
		b.stop = b.stop || b.host[r+ballotStop] != 0
		b.save = b.save || b.host[r+ballotSave] != 0
	}
	return total
}

// own returns this rank's rows of a batch; Check ensures that the batch is divisible.
func (s *Stepper) own(b *model.Batch) *model.Batch {
	r, n := s.optim.ranks.Rank(), s.optim.ranks.Size()
	rows := b.B / n
	from, to := r*rows*b.T, (r+1)*rows*b.T
	s.part = model.Batch{B: rows, T: b.T, IDs: b.IDs[from:to], Targets: b.Targets[from:to]}
	if b.Starts != nil {
		s.part.Starts = b.Starts[from:to]
	}
	return &s.part
}

func bit(b bool) float32 {
	if b {
		return 1
	}
	return 0
}

// Vote sets, before a step, whether this process wants to stop after it, or to save. After the step, Stopping and
// Saving report whether any rank does; they agree on all ranks.
func (s *Stepper) Vote(stop, save bool) { s.stop, s.save = stop, save }

// Stopping reports whether a rank wants to stop.
func (s *Stepper) Stopping() bool { return s.ballot != nil && s.ballot.stop }

// Saving reports whether a rank wants a checkpoint of this step.
func (s *Stepper) Saving() bool { return s.ballot != nil && s.ballot.save }
