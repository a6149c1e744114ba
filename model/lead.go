package model

import (
	"errors"
	"fmt"
)

// lead sends one rank's cache operations to the other ranks that hold parts of the model. All ranks must take the same
// steps in the same order: one rank decides them and sends them as words.
type lead struct {
	send   func(words []int32) error
	err    error // the first error of send
	caches int32 // made so far
	words  []int32
}

// Messages begin with one of these. A cache is named by the number of caches made before it. The lists of a step follow
// its counts: changes, ids, slots, positions, wanted rows.
const (
	wordCache  = iota // pages, page size, slots, pages of a slot
	wordFree          // cache
	wordStep          // cache, first and end of the page table's changes, rows, wanted rows; lists
	wordCommit        // cache
)

// Lead makes m send all further cache operations to the ranks that hold its other parts: send delivers words to each of
// them, and each must pass them to Obey in this order. Passes over batches are then refused.
func (m *Model) Lead(send func(words []int32) error) { m.lead = &lead{send: send} }

// ErrParts is returned for operations that are not sent to the other ranks.
var ErrParts = errors.New(
	"ranks that hold a model together generate text and nothing else; this needs the whole model in one process")

// tell sends words, unless an earlier send failed.
func (l *lead) tell(words ...int32) {
	if l.err == nil {
		l.err = l.send(words)
	}
}

// tellStep sends a step with the page table's changes since the last one.
func (l *lead) tellStep(c *Cache, r *Rows) error {
	w := append(l.words[:0], wordStep, c.id, int32(c.lo), int32(c.hi), int32(len(r.IDs)), int32(len(r.Want)))
	for _, list := range [...][]int32{c.pages[c.lo:c.hi], r.IDs, r.Slots, r.Pos, r.Want} {
		w = append(w, list...)
	}
	l.words = w
	l.tell(w...)
	return l.err
}

// Obey executes a message from the leading rank.
func (m *Model) Obey(words []int32) error {
	bad := fmt.Errorf("model: %d words that no rank sends", len(words))
	if len(words) < 2 {
		return bad
	}
	switch op, rest := words[0], words[1:]; op {
	case wordCache:
		if len(rest) != 4 {
			return bad
		}
		m.told = append(m.told, m.NewCache(int(rest[0]), int(rest[1]), int(rest[2]), int(rest[3])))
		return nil
	case wordFree, wordStep, wordCommit:
		at := int(rest[0])
		if at < 0 || at >= len(m.told) || m.told[at] == nil {
			return bad
		}
		c := m.told[at]
		switch op {
		case wordFree:
			c.Free()
			m.told[at] = nil
			return nil
		case wordCommit:
			c.Commit()
			return nil
		}
		return c.obey(rest[1:], bad)
	}
	return bad
}

// obey runs the step that tellStep sent.
func (c *Cache) obey(words []int32, bad error) error {
	if len(words) < 4 {
		return bad
	}
	lo, hi, n, want := int(words[0]), int(words[1]), int(words[2]), int(words[3])
	if words = words[4:]; lo < 0 || hi < lo || hi > len(c.pages) || n < 0 || want < 0 || len(words) != hi-lo+3*n+want {
		return bad
	}
	take := func(k int) (out []int32) {
		out, words = words[:k], words[k:]
		return out
	}
	copy(c.pages[lo:hi], take(hi-lo))
	c.lo, c.hi = lo, hi
	return c.Run(Rows{IDs: take(n), Slots: take(n), Pos: take(n), Want: take(want)})
}
