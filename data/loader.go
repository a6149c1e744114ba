package data

import (
	"fmt"
	"math/bits"
)

// Loader packs a split's documents into rows of T tokens, endlessly.
//
// The stream is every document of epoch 0 in that epoch's shuffled order, then every document of epoch 1 in another,
// and so on, each followed directly by the next. Row i holds stream tokens [iT, iT+T) as inputs and [iT+1, iT+T+1)
// as targets, so every token is an input once and a target once per epoch, and row i is a pure function of (set,
// split, seed, T, i). Batches take rows in order: two batches of B rows hold the same tokens as one of 2B, which is
// what gradient accumulation needs. A loader is not safe for concurrent use.
type Loader struct {
	split  *Split
	b, t   int
	seed   uint64
	perm   permutation // of the current epoch
	doc    docRef      // the document the next token comes from
	epoch  uint64
	index  uint64 // place in the epoch's order
	offset uint64 // next token of doc; always below its length
	tokens uint64 // consumed in this epoch
}

// Position is where a loader stands: all that its future depends on. It does not depend on B or T, so a run may
// go on with another batch size from the same token.
type Position struct {
	Dataset string `json:"dataset"` // Manifest.Hash
	Split   string `json:"split"`
	Seed    uint64 `json:"seed"`
	Epoch   uint64 `json:"epoch"`  // whole passes done
	Index   uint64 `json:"index"`  // place in the epoch's shuffled order of documents
	Offset  uint64 `json:"offset"` // tokens of that document already consumed
	Tokens  uint64 `json:"tokens"` // tokens of the epoch already consumed
}

// NewLoader returns a loader at the beginning of epoch 0 that fills B rows of T tokens at a time.
func NewLoader(sp *Split, B, T int, seed uint64) *Loader {
	if B < 1 || T < 1 {
		// Sizes come from a checked recipe.
		panic(fmt.Sprintf("data: loader of B=%d rows of T=%d tokens, want both positive", B, T))
	}
	l := &Loader{split: sp, b: B, t: T, seed: seed}
	l.enter(0, 0)
	return l
}

// enter goes to the beginning of the index-th document of an epoch.
func (l *Loader) enter(epoch, index uint64) {
	if l.perm.n == 0 || epoch != l.epoch {
		l.perm = newPermutation(l.split.docs(), l.seed, epoch)
	}
	l.epoch, l.index, l.offset = epoch, index, 0
	l.doc = l.split.locate(l.perm.at(index))
}

// Next fills the next B rows, each slice B*T long:
//
//	inputs[b*T+t]   the token
//	targets[b*T+t]  the token after it; -1 (ignore) where a document ends and the vocabulary has no end-of-text id
//	starts[b*T+t]   the place in row b where the document of position t begins, 0 if it began in an earlier row
//
// After an end-of-text id the target is the next document's first token: the id serves as beginning-of-text too, and the
// document behind it begins with it.
func (l *Loader) Next(inputs, targets, starts []int32) {
	if n := l.b * l.t; len(inputs) != n || len(targets) != n || len(starts) != n {
		// The caller allocated the slices for this loader.
		panic(fmt.Sprintf("data: Next(inputs[%d], targets[%d], starts[%d]), want B*T = %d*%d = %d each",
			len(inputs), len(targets), len(starts), l.b, l.t, n))
	}
	for at := 0; at < len(inputs); at += l.t {
		l.row(inputs[at:at+l.t], targets[at:at+l.t], starts[at:at+l.t])
	}
}

func (l *Loader) row(inputs, targets, starts []int32) {
	for at := 0; at < len(inputs); {
		n := int(min(uint64(len(inputs)-at), l.doc.len()-l.offset))
		seg := inputs[at : at+n]
		l.doc.read(seg, l.offset)
		start := at
		if at > 0 && l.split.eos != nil { // a new document, behind an end-of-text id
			start--
		}
		for i := range seg {
			starts[at+i] = int32(start)
		}
		copy(targets[at:], seg[1:])
		at += n
		l.advance(uint64(n))
		targets[at-1] = l.peek()
	}
}

// advance consumes n tokens of the current document and moves on where it ends.
func (l *Loader) advance(n uint64) {
	l.offset += n
	l.tokens += n
	if l.offset < l.doc.len() {
		return
	}
	if l.index+1 < l.split.docs() {
		l.enter(l.epoch, l.index+1)
		return
	}
	l.tokens = 0
	l.enter(l.epoch+1, 0)
}

// peek is the target of the token just consumed.
func (l *Loader) peek() int32 {
	if l.offset == 0 && l.split.eos == nil {
		return -1
	}
	var id [1]int32
	l.doc.read(id[:], l.offset)
	return id[0]
}

// Position returns where the loader stands, between two calls of Next.
func (l *Loader) Position() Position {
	return Position{Dataset: l.split.hash, Split: l.split.name, Seed: l.seed,
		Epoch: l.epoch, Index: l.index, Offset: l.offset, Tokens: l.tokens}
}

// Seek goes to a position in constant time. It refuses one taken on other data, another split or another seed,
// because other batches would follow.
func (l *Loader) Seek(p Position) error {
	switch {
	case p.Dataset != l.split.hash:
		return fmt.Errorf("data: position belongs to data set %.12q, this one is %.12q: build the set from the same sources and tokenizer", p.Dataset, l.split.hash)
	case p.Split != l.split.name:
		return fmt.Errorf("data: position belongs to split %q, this loader reads %q", p.Split, l.split.name)
	case p.Seed != l.seed:
		return fmt.Errorf("data: position was taken with seed %d, this loader has seed %d", p.Seed, l.seed)
	case p.Index >= l.split.docs():
		return fmt.Errorf("data: position index %d, split %q has %d documents", p.Index, l.split.name, l.split.docs())
	}
	if hi, _ := bits.Mul64(p.Epoch, l.split.tokens); hi != 0 {
		return fmt.Errorf("data: position epoch %d is beyond any run", p.Epoch)
	}
	perm := newPermutation(l.split.docs(), l.seed, p.Epoch)
	doc := l.split.locate(perm.at(p.Index))
	if p.Offset >= doc.len() {
		return fmt.Errorf("data: position offset %d, its document has %d tokens", p.Offset, doc.len())
	}
	// Every earlier document has at least one token, and this one's rest and every later one's are still to come.
	if p.Tokens < p.Index+p.Offset || p.Tokens > l.split.tokens-(doc.len()-p.Offset) {
		return fmt.Errorf("data: position says %d tokens consumed, impossible at document %d, offset %d of an epoch of %d tokens", p.Tokens, p.Index, p.Offset, l.split.tokens)
	}
	l.perm, l.doc = perm, doc
	l.epoch, l.index, l.offset, l.tokens = p.Epoch, p.Index, p.Offset, p.Tokens
	return nil
}

// Epoch is the number of passes done, fraction included.
func (l *Loader) Epoch() float64 {
	return float64(l.epoch) + float64(l.tokens)/float64(l.split.tokens)
}
