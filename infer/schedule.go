package infer

import "slices"

// reap releases the sequences whose owners have left.
func (e *Engine) reap() {
	for i := len(e.batch) - 1; i >= 0; i-- {
		if e.batch[i].leave {
			e.release(e.batch[i])
		}
	}
	for i := len(e.queue) - 1; i >= 0; i-- {
		if e.queue[i].leave {
			e.release(e.queue[i])
		}
	}
}

// release ends a sequence's turn. A session keeps its pages and becomes idle; pages of any other sequence are freed.
func (e *Engine) release(s *seq) {
	e.remove(s)
	if s.keep {
		e.resting = append(e.resting, s)
	} else {
		e.drop(s)
	}
	s.state = idle
}

// remove takes s out of the batch or the queue.
func (e *Engine) remove(s *seq) {
	switch s.state {
	case running:
		e.batch = without(e.batch, s)
		e.slots = append(e.slots, s.slot)
	case waiting:
		e.queue = without(e.queue, s)
	}
}

// drop frees all pages of s; their contents must be recomputed.
func (e *Engine) drop(s *seq) {
	e.pool.give(s.pages)
	s.pages, s.cached, s.shared = s.pages[:0], 0, 0
}

// trim keeps the pages of the first n positions.
func (e *Engine) trim(s *seq, n int) {
	s.cached = min(s.cached, n)
	used := e.pool.count(s.cached)
	if used < len(s.pages) {
		e.pool.give(s.pages[used:])
		s.pages = s.pages[:used]
	}
}

func without(list []*seq, s *seq) []*seq {
	if i := slices.Index(list, s); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}

// enqueue appends s to the queue.
func (e *Engine) enqueue(s *seq) {
	e.resting = without(e.resting, s)
	// The last token is run again if necessary, for its logits; an echo needs the logits of all.
	s.cached = min(s.cached, len(s.tokens)-1)
	if s.sampling.Echo {
		s.cached = 0
	}
	s.state = waiting
	e.queue = append(e.queue, s)
}

// admit moves waiting sequences into the batch while there is a slot and, besides what the batch still needs for its
// prompts, room for the next one's tokens and one more. The queue is strictly first in, first out, so no sequence
// starves.
func (e *Engine) admit() {
	promised := 0
	for _, s := range e.batch {
		promised += max(0, e.pool.count(len(s.tokens))-len(s.pages))
	}
	for len(e.queue) > 0 && len(e.slots) > 0 {
		s := e.queue[0]
		e.reuse(s)
		need := e.pool.count(min(len(s.tokens)+1, s.end)) - len(s.pages) + promised
		for e.pool.available() < need && e.evict(s) {
		}
		if e.pool.available() < need {
			return
		}
		promised = need
		e.queue = slices.Delete(e.queue, 0, 1)
		s.slot = e.slots[len(e.slots)-1]
		e.slots = e.slots[:len(e.slots)-1]
		s.state = running
		e.reserve(s)
		e.batch = append(e.batch, s)
		for i, p := range s.pages {
			e.cache.Assign(int(s.slot), i, p)
		}
	}
}

// evict takes the pages of a sequence that is not in the batch: the session idle longest, or else the last in the queue
// other than s. Their owners notice only the time to recompute them.
func (e *Engine) evict(s *seq) bool {
	for len(e.resting) > 0 {
		r := e.resting[0]
		e.resting = slices.Delete(e.resting, 0, 1)
		if len(r.pages) > 0 {
			e.drop(r)
			e.stats.Evicted++
			return true
		}
	}
	for i := len(e.queue) - 1; i >= 0; i-- {
		if q := e.queue[i]; q != s && len(q.pages) > 0 {
			e.drop(q)
			e.stats.Evicted++
			return true
		}
	}
	return false
}

// preempt requeues the batch's youngest sequence at the front, without its pages.
func (e *Engine) preempt() *seq {
	s := e.batch[len(e.batch)-1]
	e.remove(s)
	e.drop(s)
	s.state = waiting
	e.queue = slices.Insert(e.queue, 0, s)
	e.stats.Preempted++
	return s
}

// grow gives s pages for n positions; older sequences take from younger ones. It is false if s itself was the youngest
// and was preempted. The oldest always succeeds: no sequence larger than the cache is admitted.
func (e *Engine) grow(s *seq, n int) bool {
	for len(s.pages) < e.pool.count(n) {
		page, ok := e.pool.take()
		if ok {
			e.cache.Assign(int(s.slot), len(s.pages), page)
			s.pages = append(s.pages, page)
		} else if !e.evict(s) && e.preempt() == s {
			return false
		}
	}
	return true
}

// plan collects the rows of the next step: one for every sequence that lacks a single position, and as many tokens of
// longer ones (prompts) as PrefillChunk allows, oldest first.
func (e *Engine) plan() {
	r := &e.rows
	r.IDs, r.Slots, r.Pos, r.Want = r.IDs[:0], r.Slots[:0], r.Pos[:0], r.Want[:0]
	budget, echo := e.opt.PrefillChunk, e.echoRows
	for i := 0; i < len(e.batch); i++ {
		s := e.batch[i]
		n := len(s.tokens) - s.cached
		if n > 1 {
			n = min(n, budget)
			if s.sampling.Echo {
				n = min(n, echo)
				echo -= n
			}
			budget -= n
		}
		if !e.grow(s, s.cached+n) {
			return // s was the last
		}
		e.planRows(s, n)
	}
}

// planRows adds the next n positions of s and marks the logits it needs.
func (e *Engine) planRows(s *seq, n int) {
	r := &e.rows
	s.want, s.echo = len(r.Want), 0
	for range n {
		if s.sampling.Echo && s.cached >= s.scored && s.cached+1 < s.prompt {
			r.Want = append(r.Want, int32(len(r.IDs)))
			s.echo++
		}
		r.IDs = append(r.IDs, s.tokens[s.cached])
		r.Slots = append(r.Slots, s.slot)
		r.Pos = append(r.Pos, int32(s.cached))
		s.cached++
	}
	if s.last = s.cached == len(s.tokens); s.last {
		r.Want = append(r.Want, int32(len(r.IDs)-1))
	}
}
