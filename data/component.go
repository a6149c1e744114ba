package data

import "sort"

// component is the documents of some sources in stored order, read as an endless repetition of its tokens.
type component struct {
	name   string
	eos    bool
	shards []*Shard
	first  []uint64 // first[i] is the index of shards[i]'s first token; the last entry is the total
}

func newComponent(name string, eos bool, shards []*Shard) component {
	c := component{name: name, eos: eos, shards: shards, first: make([]uint64, 1, len(shards)+1)}
	for i, s := range shards {
		c.first = append(c.first, c.first[i]+s.header.tokens)
	}
	return c
}

func (c *component) tokens() uint64 { return c.first[len(c.first)-1] }

// walk is a position in a component: a token of a document of a shard.
type walk struct {
	c      *component
	shard  int
	number uint64 // index of the document in its shard
	doc    docRef
	offset uint64
}

// at moves to token n of the component by two binary searches, the second in the shard's mapped index.
func (w *walk) at(c *component, n uint64) {
	w.c = c
	w.shard = sort.Search(len(c.shards)-1, func(i int) bool { return n < c.first[i+1] })
	n -= c.first[w.shard]
	sh := c.shards[w.shard]
	lo, hi := uint64(0), sh.header.docs-1
	for lo < hi {
		mid := lo + (hi-lo)/2
		if n < sh.offset(mid+1) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	w.enter(lo)
	w.offset = n - w.doc.lo
}

// enter moves to the beginning of a document of the current shard.
func (w *walk) enter(number uint64) {
	sh := w.c.shards[w.shard]
	w.number, w.offset = number, 0
	w.doc = docRef{sh, sh.offset(number), sh.offset(number + 1)}
}

func (w *walk) here() (*docRef, uint64) { return &w.doc, w.offset }

// advance consumes n tokens of the current document; at its end it moves to the next one, after the last to the first.
func (w *walk) advance(n uint64) {
	if w.offset += n; w.offset < w.doc.len() {
		return
	}
	if w.number+1 < w.c.shards[w.shard].header.docs {
		w.enter(w.number + 1)
		return
	}
	w.shard = (w.shard + 1) % len(w.c.shards)
	w.enter(0)
}
