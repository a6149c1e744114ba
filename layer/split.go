package layer

import (
	"fmt"

	"antiphase/device"
	"antiphase/tensor"
)

// Team is the set of ranks that hold one model together; see dist.Comm for the contract.
type Team interface {
	Rank() int
	Size() int
	AllReduce(x tensor.Tensor) error
	AllGather(out, x tensor.Tensor) error
}

// Split is one rank's part of a model (tensor parallel): whole heads with their keys and values, columns of the MLP,
// and rows of the vocabulary. Both maps of a head stay on one rank, so differential attention sends no messages of its
// own. Partial products are summed over ranks; the residual stream is the same on all of them.
//
// A nil Split is a model that is not split.
type Split struct {
	team Team
	err  error // the first error of a collective
}

// NewSplit returns this rank's part of a model held by team; nil for a team of one.
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

// Part is the index of this rank.
func (s *Split) Part() int {
	if s == nil {
		return 0
	}
	return s.team.Rank()
}

// Err returns the first error of a collective. Results computed after it are invalid.
func (s *Split) Err() error {
	if s == nil {
		return nil
	}
	return s.err
}

// Forget clears the error, because the work it belongs to is repeated.
func (s *Split) Forget() {
	if s != nil {
		s.err = nil
	}
}

// share is this rank's part of n; the configuration's check ensures that n is divisible.
func (s *Split) share(n int) int { return n / s.Parts() }

// run is this rank's part of the n rows or columns that begin at at.
func (s *Split) run(at, n int) Run {
	k := s.share(n)
	return Run{at + s.Part()*k, at + (s.Part()+1)*k}
}

// Local turns an id into a row of this rank's part of a vocabulary of n, or into other if another rank has it. Negative
// ids are unchanged.
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

// sum adds x over the ranks; x is dense and Stat.
func (s *Split) sum(x tensor.Tensor) {
	if s.err == nil {
		s.err = s.team.AllReduce(x)
	}
}

// Sum is sum for tensors that outlive passes.
func (s *Split) Sum(x tensor.Tensor) { s.sum(x) }

// gather concatenates the ranks' x.
func (s *Split) gather(out, x tensor.Tensor) {
	if s.err == nil {
		s.err = s.team.AllGather(out, x)
	}
}

// begin returns memory for this rank's share of y: y itself, or a buffer of higher precision that can be sent.
func (s *Split) begin(p *Pass, y tensor.Tensor) tensor.Tensor {
	if s == nil || y.Type == p.Dev.Types().Stat && y.Dense() {
		return y
	}
	return p.stat(y.Rows, y.Cols)
}

// end sets y to the sum of all ranks' shares.
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

// add replaces y, of which each rank has a share, by the sum.
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

// CheckSplit reports why this attention layer cannot be split over parts ranks, and which numbers work.
func (c *AttnConfig) CheckSplit(parts int) error {
	what := "heads"
	if c.Arch.Maps == 2 {
		what = "heads (pairs, whose two maps stay on one rank)"
	}
	if c.Pairing == PairingAcross && parts > 1 {
		return fmt.Errorf(
			"pairing: %q takes the two maps of a head from different groups, which no two ranks can share: tp=1",
			c.Pairing)
	}
	for _, f := range []struct {
		name string
		n    int
	}{{what, c.Heads}, {"kv_heads", c.Groups}} {
		if f.n%parts != 0 {
			return fmt.Errorf("tp=%d does not divide %s = %d; tp may be %v", parts, f.name, f.n,
				divisors(c.Heads, c.Groups))
		}
	}
	return nil
}

// divisors returns the common divisors of n.
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
