package infer

import "slices"

// scheduler decides which sequences run: it queues them, admits them to the batch, and takes pages from some for
// others. The engine's lock protects it.
type scheduler struct {
	store   *store
	stats   *Stats
	queue   []*seq  // waiting, in order of arrival
	batch   []*seq  // running, in order of admission
	resting []*seq  // sessions between turns that hold pages
	slots   []int32 // free ones
}

// init makes all slots free.
func (c *scheduler) init(slots int, st *store, stats *Stats) {
	c.store, c.stats = st, stats
	for i := range slots {
		c.slots = append(c.slots, int32(slots-1-i))
	}
}

// reap releases the sequences whose owners have left.
func (c *scheduler) reap() {
	for i := len(c.batch) - 1; i >= 0; i-- {
		if c.batch[i].leave {
			c.release(c.batch[i])
		}
	}
	for i := len(c.queue) - 1; i >= 0; i-- {
		if c.queue[i].leave {
			c.release(c.queue[i])
		}
	}
}

// release ends a sequence's turn. A session keeps its pages and becomes idle; pages of any other sequence are freed.
func (c *scheduler) release(s *seq) {
	c.remove(s)
	if s.keep {
		c.resting = append(c.resting, s)
	} else {
		c.store.drop(s)
	}
	s.state = idle
}

// remove takes s out of the batch or the queue.
func (c *scheduler) remove(s *seq) {
	switch s.state {
	case running:
		c.batch = without(c.batch, s)
		c.slots = append(c.slots, s.slot)
	case waiting:
		c.queue = without(c.queue, s)
	}
}

func without(list []*seq, s *seq) []*seq {
	if i := slices.Index(list, s); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}

// enqueue appends s to the queue.
func (c *scheduler) enqueue(s *seq) {
	c.resting = without(c.resting, s)
	// The last token is run again if necessary, for its logits; an echo needs the logits of all.
	s.cached = min(s.cached, len(s.tokens)-1)
	if s.sampling.Echo {
		s.cached = 0
	}
	s.state = waiting
	c.queue = append(c.queue, s)
}

// admit moves waiting sequences into the batch while there is a slot and, besides what the batch still needs for its
// prompts, room for the next one's tokens and one more. The queue is strictly first in, first out, so no sequence
// starves.
func (c *scheduler) admit() {
	promised := 0
	for _, s := range c.batch {
		promised += max(0, c.store.pool.count(len(s.tokens))-len(s.pages))
	}
	for len(c.queue) > 0 && len(c.slots) > 0 {
		s := c.queue[0]
		c.store.reuse(s)
		need := c.store.pool.count(min(len(s.tokens)+1, s.end)) - len(s.pages) + promised
		for c.store.pool.available() < need && c.evict(s) {
		}
		if c.store.pool.available() < need {
			return
		}
		promised = need
		c.queue = slices.Delete(c.queue, 0, 1)
		s.slot = c.slots[len(c.slots)-1]
		c.slots = c.slots[:len(c.slots)-1]
		s.state = running
		c.reserve(s)
		c.batch = append(c.batch, s)
		c.store.enter(s)
		c.store.found(s)
	}
}

// evict takes the pages of a sequence that is not in the batch: the session idle longest, or else the last in the queue
// other than s. Their owners notice only the time to recompute them.
func (c *scheduler) evict(s *seq) bool {
	for len(c.resting) > 0 {
		r := c.resting[0]
		c.resting = slices.Delete(c.resting, 0, 1)
		if len(r.pages) > 0 {
			c.store.drop(r)
			c.stats.Evicted++
			return true
		}
	}
	for i := len(c.queue) - 1; i >= 0; i-- {
		if q := c.queue[i]; q != s && len(q.pages) > 0 {
			c.store.drop(q)
			c.stats.Evicted++
			return true
		}
	}
	return false
}

// preempt requeues the batch's youngest sequence at the front, without its pages.
func (c *scheduler) preempt() *seq {
	s := c.batch[len(c.batch)-1]
	c.remove(s)
	c.store.drop(s)
	s.state = waiting
	c.queue = slices.Insert(c.queue, 0, s)
	c.stats.Preempted++
	return s
}

// grow gives s pages for n positions; older sequences take from younger ones. It is false if s itself was the youngest
// and was preempted. The oldest always succeeds: no sequence larger than the cache is admitted.
func (c *scheduler) grow(s *seq, n int) bool {
	for len(s.pages) < c.store.pool.count(n) {
		if !c.store.extend(s) && !c.evict(s) && c.preempt() == s {
			return false
		}
	}
	return true
}

// reserve allocates what s needs up to its end, so that steps allocate nothing. Waiting sequences are not reserved:
// there may be a thousand in one request, of which only as many as there are slots run.
func (c *scheduler) reserve(s *seq) {
	s.tokens = slices.Grow(s.tokens, s.end-len(s.tokens))
	s.pages = slices.Grow(s.pages, max(0, c.store.pool.count(s.end)-len(s.pages)))
	s.hist.reserve(s.end)
}
