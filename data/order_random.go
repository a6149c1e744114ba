package data

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// random takes the rows of each component in a random order, epoch after epoch.
//
// A component of N tokens repeats endlessly. Row k holds tokens [kT, kT+T) of that repetition as inputs and the tokens
// one further as targets. The rows of epoch e are k = ⌊eN/T⌋ … ⌊(e+1)N/T⌋−1, so every epoch is cut at other places, and
// the tail that fills no row goes to the next one. Rows are visited in the order of a permutation keyed by (seed, e,
// component), which needs no table: memory does not grow with the corpus.
type random struct {
	t      uint64
	seed   uint64
	parts  []part
	shares []Share // nil: one part, all sources together
	walk   walk
}

// part is a component with its share of the rows.
type part struct {
	component
	weight float64
	drawn  uint64 // rows taken so far
	limit  uint64 // total rows that may be taken
	epoch  uint64 // of perm
	base   uint64 // first row of that epoch
	perm   permutation
}

// NewLoader returns a loader in the order [OrderRandom], at its beginning, that fills B rows of T tokens at a time. A
// batch is a random sample of the split, and over an epoch every row occurs once. In a mixed split each component
// contributes rows in proportion to its weight.
func NewLoader(sp *Split, B, T int, seed uint64) *Loader {
	l := newLoader(sp, B, T, seed)
	r := &random{t: uint64(T), seed: seed, shares: sp.shares}
	for i, c := range sp.parts {
		p := part{component: c, weight: 1, limit: math.MaxUint64}
		if sp.shares != nil {
			p.weight, p.limit = sp.shares[i].Weight, sp.shares[i].rows(c.tokens(), r.t)
		}
		r.parts = append(r.parts, p)
	}
	l.order = r
	return l
}

func (r *random) row(inputs, targets, starts []int32) {
	i := r.pick()
	if i < 0 {
		// The caller checks Left first.
		panic("data: a row more than the epochs of all sources allow")
	}
	p := &r.parts[i]
	r.walk.at(&p.component, p.place(r.t, r.seed, uint64(i)))
	p.drawn++
	pack(&r.walk, p.eos, inputs, targets, starts)
}

// pick chooses the component of the next row: the one furthest below its share of the rows drawn from the components
// that remain. It depends only on the counts. -1 if none may give a row.
func (r *random) pick() int {
	var drawn, weight float64
	for i := range r.parts {
		if p := &r.parts[i]; p.drawn < p.limit {
			drawn, weight = drawn+float64(p.drawn), weight+p.weight
		}
	}
	best, most := -1, math.Inf(-1)
	for i := range r.parts {
		p := &r.parts[i]
		if p.drawn >= p.limit {
			continue
		}
		// The conversion prevents fusing the product with the subtraction, which would round differently between
		// machines.
		if lag := float64(p.weight*(drawn+1)/weight) - float64(p.drawn); lag > most {
			best, most = i, lag
		}
	}
	return best
}

// place is the first token of the component's next row.
func (p *part) place(t, seed, component uint64) uint64 {
	n := p.tokens()
	epoch := ((p.drawn+1)*t - 1) / n
	if p.perm.n == 0 || epoch != p.epoch {
		p.epoch, p.base = epoch, mulDiv(epoch, n, t)
		// mix64(0) is 0: the first component is keyed by the seed itself.
		p.perm = newPermutation(mulDiv(epoch+1, n, t)-p.base, seed^mix64(component), epoch)
	}
	return (p.base + p.perm.at(p.drawn-p.base)) * t % n
}

// mulDiv is ⌊ab/c⌋, which must fit.
func mulDiv(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	q, _ := bits.Div64(hi, lo, c)
	return q
}

func (r *random) skip(rows uint64) {
	if len(r.parts) == 1 {
		r.parts[0].drawn += min(rows, r.left())
		return
	}
	for ; rows > 0; rows-- {
		i := r.pick()
		if i < 0 {
			return
		}
		r.parts[i].drawn++
	}
}

func (r *random) left() (n uint64) {
	for i := range r.parts {
		p := &r.parts[i]
		if p.limit == math.MaxUint64 {
			return p.limit
		}
		n += p.limit - p.drawn
	}
	return n
}

func (r *random) epoch() float64 {
	var rows, tokens float64
	for i := range r.parts {
		rows, tokens = rows+float64(r.parts[i].drawn), tokens+float64(r.parts[i].tokens())
	}
	return rows * float64(r.t) / tokens
}

func (r *random) epochs(dst []float64) []float64 {
	if r.shares == nil {
		return dst
	}
	for i := range r.parts {
		p := &r.parts[i]
		dst = append(dst, float64(p.drawn)*float64(r.t)/float64(p.tokens()))
	}
	return dst
}

func (r *random) position(p *Position) {
	p.Order, p.T, p.Mixture, p.Rows = OrderRandom, int(r.t), r.shares, p.Rows[:0]
	for i := range r.parts {
		p.Rows = append(p.Rows, r.parts[i].drawn)
	}
}

func (r *random) seek(p *Position) error {
	switch {
	case p.Order == "":
		return fmt.Errorf(
			"data: position was taken in a stream, this loader takes rows in random order: set data.order=%s",
			OrderStream)
	case p.Order != OrderRandom:
		return fmt.Errorf("data: position was taken in %q order, this loader takes rows in %s order",
			p.Order, OrderRandom)
	case p.T != int(r.t):
		return fmt.Errorf("data: position counts rows of %d tokens, this loader has rows of %d: keep train.seq_len=%d",
			p.T, r.t, p.T)
	case !slices.Equal(p.Mixture, r.shares):
		return fmt.Errorf("data: position belongs to a mixture of %s, this one is of %s", shareList(p.Mixture),
			shareList(r.shares))
	case len(p.Rows) != len(r.parts):
		return fmt.Errorf("data: position counts the rows of %d sources, this mixture has %d",
			len(p.Rows), len(r.parts))
	}
	for i, n := range p.Rows {
		if hi, lo := bits.Mul64(n, r.t); hi != 0 || lo > math.MaxInt64 || n > r.parts[i].limit {
			return fmt.Errorf("data: position says %d rows of source %s, more than it gives", n, r.parts[i].name)
		}
	}
	for i, n := range p.Rows {
		r.parts[i].drawn = n
	}
	return nil
}
