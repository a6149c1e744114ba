package data

import (
	"fmt"
	"slices"
)

// Orders of rows.
const (
	OrderRandom = "random" // a random sample of the corpus, see [NewLoader]
	OrderStream = "stream" // documents shuffled, rows one after the other, see [NewStream]
)

// Loader fills rows of T tokens from a split, endlessly unless the split was mixed with a bound on its epochs.
//
// The order decides which row comes when. In every order row i is a pure function of (set, split, seed, T, i), and
// batches take rows one by one: two batches of B rows hold the same tokens as one of 2B, as gradient accumulation
// requires. A loader is not safe for concurrent use.
type Loader struct {
	split *Split
	order order
	b, t  int
	seed  uint64
}

// order decides the content of the next row.
type order interface {
	row(inputs, targets, starts []int32)
	skip(rows uint64) // moves on without reading
	left() uint64     // rows that may still be taken
	epoch() float64   // passes over all tokens so far, including the fraction
	epochs(dst []float64) []float64
	position(p *Position)   // fills the order's own fields
	seek(p *Position) error // moves there; on error the position is unchanged
}

// Position is the state of a loader: everything its future depends on. The fields after Seed belong to one order each.
type Position struct {
	Dataset string `json:"dataset"` // Manifest.Hash
	Split   string `json:"split"`
	Seed    uint64 `json:"seed"`

	// Stream: the next token. It does not depend on B or T, so a run may continue with another batch size.
	Epoch  uint64 `json:"epoch,omitempty"`  // completed passes
	Index  uint64 `json:"index,omitempty"`  // index in the epoch's shuffled order of documents
	Offset uint64 `json:"offset,omitempty"` // tokens of that document already consumed
	Tokens uint64 `json:"tokens,omitempty"` // tokens of the epoch already consumed

	// Random: rows drawn from each component. Order is absent for a stream, as before there was a choice.
	Order   string   `json:"order,omitempty"`
	T       int      `json:"t,omitempty"`
	Mixture []Share  `json:"mixture,omitempty"` // absent: one component, all sources together
	Rows    []uint64 `json:"rows,omitempty"`
}

func newLoader(sp *Split, B, T int, seed uint64) *Loader {
	if B < 1 || T < 1 {
		// Sizes come from a checked recipe.
		panic(fmt.Sprintf("data: loader of B=%d rows of T=%d tokens, want both positive", B, T))
	}
	return &Loader{split: sp, b: B, t: T, seed: seed}
}

// Next fills the next B rows, each slice B*T long:
//
//	inputs[b*T+t]   the token
//	targets[b*T+t]  the token after it; -1 (ignore) where a document ends and the vocabulary has no end-of-text id
//	starts[b*T+t]   the place in row b where the document of position t begins, 0 if it began in an earlier row
//
// After an end-of-text id the target is the next document's first token: the id also serves as beginning-of-text, and
// the next document begins with it. Next must not be called if [Loader.Left] is below B.
func (l *Loader) Next(inputs, targets, starts []int32) {
	if n := l.b * l.t; len(inputs) != n || len(targets) != n || len(starts) != n {
		// The caller allocated the slices for this loader.
		panic(fmt.Sprintf("data: Next(inputs[%d], targets[%d], starts[%d]), want B*T = %d*%d = %d each",
			len(inputs), len(targets), len(starts), l.b, l.t, n))
	}
	for at := 0; at < len(inputs); at += l.t {
		l.order.row(inputs[at:at+l.t], targets[at:at+l.t], starts[at:at+l.t])
	}
}

// Skip advances by that many rows as if they had been taken.
func (l *Loader) Skip(rows uint64) { l.order.skip(rows) }

// Left is the number of rows that may still be taken; [math.MaxUint64] if unbounded.
func (l *Loader) Left() uint64 { return l.order.left() }

// Epoch is the number of passes over all tokens so far, including the fraction.
func (l *Loader) Epoch() float64 { return l.order.epoch() }

// Epochs appends the passes over each component of a mixed split; nothing if the split is not mixed.
func (l *Loader) Epochs(dst []float64) []float64 { return l.order.epochs(dst) }

// Position returns the loader's state between two calls of Next.
func (l *Loader) Position() (p Position) {
	l.position(&p)
	return p
}

// position is Position into p's memory.
func (l *Loader) position(p *Position) {
	p.Dataset, p.Split, p.Seed = l.split.hash, l.split.name, l.seed
	l.order.position(p)
}

// clone returns a deep copy.
func (p Position) clone() Position {
	p.Rows = slices.Clone(p.Rows)
	return p
}

// Seek moves to a position in constant time. It rejects a position taken with other data, another split, another seed
// or another order, because other batches would follow.
func (l *Loader) Seek(p Position) error {
	switch {
	case p.Dataset != l.split.hash:
		return fmt.Errorf("data: position belongs to data set %.12q, this one is %.12q: build the set from the same "+
			"sources and tokenizer",
			p.Dataset, l.split.hash)
	case p.Split != l.split.name:
		return fmt.Errorf("data: position belongs to split %q, this loader reads %q", p.Split, l.split.name)
	case p.Seed != l.seed:
		return fmt.Errorf("data: position was taken with seed %d, this loader has seed %d", p.Seed, l.seed)
	}
	return l.order.seek(&p)
}
