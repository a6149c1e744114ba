package layer

import (
	"fmt"

	"antiphase/device"
	"antiphase/tensor"
)

// Team is the ranks that hold one model together; see dist.Comm for the contract.
type Team interface {
	Rank() int
	Size() int
	AllReduce(x tensor.Tensor) error
	AllGather(out, x tensor.Tensor) error
}

// Split is one rank's part of a model (tensor parallel): whole heads with their keys and values, columns of the MLP, and
// rows of the vocabulary. A head's two maps stay together, so that differential attention costs no message of its own.
// Products of a rank's columns are added up over ranks; the residual stream is the same on all of them.
//
// A nil Split is a model in one piece.
type Split struct {
	team Team
	err  error // the first of a collective
}

// NewSplit is this rank's part of a model that team holds; nil for a team of one.
func NewSplit(team Team) *Split {
	if team == nil || team.Size() == 1 {
		return nil
	}
	return &Split{team: team}
}

// Parts is the number of ranks that hold the model.
func (s *Split) Parts() int {
	if s == nil {
		return 1
	}
	return s.team.Size()
}

// Part is this rank's.
func (s *Split) Part() int {
	if s == nil {
		return 0
	}
	return s.team.Rank()
}

// Err is the first fault of a collective. What was computed since is worth nothing.
func (s *Split) Err() error {
	if s == nil {
		return nil
	}
	return s.err
}

// Forget drops the fault: what it belongs to is done again.
func (s *Split) Forget() {
	if s != nil {
		s.err = nil
	}
}

// share is this rank's part of n, which the configuration's check has found to be divisible.
func (s *Split) share(n int) int { return n / s.Parts() }

// run is this rank's part of n rows or columns that begin at another one.
func (s *Split) run(at, n int) Run {
	k := s.share(n)
	return Run{at + s.Part()*k, at + (s.Part()+1)*k}
}

// Local turns an id into the row of this rank's part of a vocabulary of n, or into other where another rank has it.
// Negative ids stay.
func (s *Split) Local(id int32, n int, other int32) int32 {
	k := int32(s.share(n))
	switch at := id - int32(s.Part())*k; {
	case id < 0:
		return id
	case at >= 0 && at < k:
		return at
	}
	return other
}

// sum adds x up over the ranks; x is dense and Stat.
func (s *Split) sum(x tensor.Tensor) {
	if s.err == nil {
		s.err = s.team.AllReduce(x)
	}
}

// Sum is sum for tensors that outlive passes.
func (s *Split) Sum(x tensor.Tensor) { s.sum(x) }

// gather collects the ranks' x one after the other.
func (s *Split) gather(out, x tensor.Tensor) {
	if s.err == nil {
		s.err = s.team.AllGather(out, x)
	}
}

// begin is where to compute this rank's share of y: y itself, or memory that can be sent and rounds less.
func (s *Split) begin(p *Pass, y tensor.Tensor) tensor.Tensor {
	if s == nil || y.Type == p.Dev.Types().Stat && y.Dense() {
		return y
	}
	return p.stat(y.Rows, y.Cols)
}

// end makes y the sum of all ranks' shares.
func (s *Split) end(p *Pass, y, share tensor.Tensor) {
	if s == nil {
		return
	}
	s.sum(share)
	device.Wrote(p.Dev, share)
	if share != y {
		p.Dev.Copy(y, share)
	}
}

// add makes y, an activation of which each rank has a share, their sum.
func (s *Split) add(p *Pass, y tensor.Tensor) {
	if s == nil {
		return
	}
	m := p.Arena.Mark()
	share := s.begin(p, y)
	if share != y {
		p.Dev.Copy(share, y)
	}
	s.end(p, y, share)
	p.Arena.Release(m)
}

// CheckSplit says why parts ranks cannot hold this attention layer, and how many could.
func (c *AttnConfig) CheckSplit(parts int) error {
	what := "heads"
	if c.Arch.Maps == 2 {
		what = "heads (pairs, whose two maps stay on one rank)"
	}
	if c.Pairing == PairingAcross && parts > 1 {
		return fmt.Errorf("pairing: %q takes the two maps of a head from different groups, which no two ranks can share: tp=1", c.Pairing)
	}
	for _, f := range []struct {
		name string
		n    int
	}{{what, c.Heads}, {"kv_heads", c.Groups}} {
		if f.n%parts != 0 {
			return fmt.Errorf("tp=%d does not divide %s = %d; tp may be %v", parts, f.name, f.n, divisors(c.Heads, c.Groups))
		}
	}
	return nil
}

// divisors are the numbers that divide all of n.
func divisors(n ...int) (out []int) {
next:
	for d := 1; d <= n[0]; d++ {
		for _, x := range n {
			if x%d != 0 {
				continue next
			}
		}
		out = append(out, d)
	}
	return out
}
