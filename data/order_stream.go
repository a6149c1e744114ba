package data

import (
	"fmt"
	"math"
	"math/bits"
)

// stream is every document of epoch 0 in that epoch's shuffled order, then every document of epoch 1 in another, and so
// on, without gaps. Row i holds stream tokens [iT, iT+T) as inputs and [iT+1, iT+T+1) as targets, so a long document
// fills many consecutive rows and a step sees few documents.
type stream struct {
	split *Split
	t     uint64
	seed  uint64
	perm  permutation // of the current epoch
	doc   docRef      // the document the next token comes from
	at    streamPlace
}

// streamPlace is the next token: an offset below its document's length.
type streamPlace struct {
	epoch, index, offset uint64
	tokens               uint64 // consumed in this epoch
}

// NewStream returns a loader in the order [OrderStream], at the beginning of epoch 0, that fills B rows of T tokens at
// a time.
func NewStream(sp *Split, B, T int, seed uint64) *Loader {
	l := newLoader(sp, B, T, seed)
	s := &stream{split: sp, t: uint64(T), seed: seed}
	s.enter(0, 0)
	l.order = s
	return l
}

// enter moves to the beginning of the index-th document of an epoch.
func (s *stream) enter(epoch, index uint64) {
	if s.perm.n == 0 || epoch != s.at.epoch {
		s.perm = newPermutation(s.split.docs(), s.seed, epoch)
	}
	s.at.epoch, s.at.index, s.at.offset = epoch, index, 0
	s.doc = s.split.locate(s.perm.at(index))
}

func (s *stream) row(inputs, targets, starts []int32) {
	pack(s, s.split.eos != nil, inputs, targets, starts)
}

func (s *stream) here() (*docRef, uint64) { return &s.doc, s.at.offset }

func (s *stream) advance(n uint64) {
	s.at.offset += n
	s.at.tokens += n
	if s.at.offset < s.doc.len() {
		return
	}
	if s.at.index+1 < s.split.docs() {
		s.enter(s.at.epoch, s.at.index+1)
		return
	}
	s.at.tokens = 0
	s.enter(s.at.epoch+1, 0)
}

func (s *stream) skip(rows uint64) {
	for n := rows * s.t; n > 0; {
		step := min(n, s.doc.len()-s.at.offset)
		s.advance(step)
		n -= step
	}
}

func (s *stream) left() uint64 { return math.MaxUint64 }

func (s *stream) epoch() float64 {
	return float64(s.at.epoch) + float64(s.at.tokens)/float64(s.split.tokens)
}

func (s *stream) epochs(dst []float64) []float64 { return dst }

func (s *stream) position(p *Position) {
	p.Epoch, p.Index, p.Offset, p.Tokens = s.at.epoch, s.at.index, s.at.offset, s.at.tokens
}

func (s *stream) seek(p *Position) error {
	switch {
	case p.Order != "":
		return fmt.Errorf("data: position was taken in %s order, this loader reads a stream: set data.order=%s",
			p.Order, p.Order)
	case p.Index >= s.split.docs():
		return fmt.Errorf("data: position index %d, split %q has %d documents", p.Index, s.split.name, s.split.docs())
	}
	if hi, _ := bits.Mul64(p.Epoch, s.split.tokens); hi != 0 {
		return fmt.Errorf("data: position epoch %d is beyond any run", p.Epoch)
	}
	perm := newPermutation(s.split.docs(), s.seed, p.Epoch)
	doc := s.split.locate(perm.at(p.Index))
	if p.Offset >= doc.len() {
		return fmt.Errorf("data: position offset %d, its document has %d tokens", p.Offset, doc.len())
	}
	// Every earlier document has at least one token, and the rest of this one and every later one are still to come.
	if p.Tokens < p.Index+p.Offset || p.Tokens > s.split.tokens-(doc.len()-p.Offset) {
		return fmt.Errorf(
			"data: position says %d tokens consumed, impossible at document %d, offset %d of an epoch of %d tokens",
			p.Tokens, p.Index, p.Offset, s.split.tokens)
	}
	s.perm, s.doc = perm, doc
	s.at = streamPlace{p.Epoch, p.Index, p.Offset, p.Tokens}
	return nil
}
