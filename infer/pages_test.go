package infer

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPagesByDefinition: random calls on the pool against plain lists: blank pages first, the last given back on top;
// then the kept page that was not used for longest, which is forgotten; a page is free when its last user gives it
// back.
func TestPagesByDefinition(t *testing.T) {
	g := rand.New(rand.NewPCG(4, 2))
	const n = 7
	p := newPages(n, 4)
	holds, forgotten := map[int32]bool{}, []int32(nil)
	p.holds = func(page int32) bool { return holds[page] }
	p.forget = func(page int32) { forgotten = append(forgotten, page); delete(holds, page) }
	blank, kept, uses := []int32{6, 5, 4, 3, 2, 1, 0}, []int32(nil), map[int32]int{}
	for range 4000 {
		switch g.IntN(3) {
		case 0:
			page, ok := p.take()
			want, from := int32(-1), forgotten
			if k := len(blank); k > 0 {
				want, blank = blank[k-1], blank[:k-1]
			} else if len(kept) > 0 {
				want, kept = kept[0], kept[1:]
				if len(from) == 0 || from[len(from)-1] != want {
					t.Fatalf("page %d is handed out and not forgotten", want)
				}
			}
			if ok != (want >= 0) || ok && page != want {
				t.Fatalf("took %d, %v; want %d", page, ok, want)
			}
			if ok {
				uses[page] = 1
				holds[page] = g.IntN(2) == 0
			}
		case 1: // share one that holds a prefix
			for page := range int32(n) {
				if holds[page] && (uses[page] > 0 || slices.Contains(kept, page)) && g.IntN(2) == 0 {
					p.share(page)
					uses[page]++
					kept = slices.DeleteFunc(kept, func(k int32) bool { return k == page })
					break
				}
			}
		case 2: // give some back, the last first
			var list []int32
			for page := range int32(n) {
				if uses[page] > 0 && g.IntN(2) == 0 {
					list = append(list, page)
				}
			}
			g.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			p.give(list)
			for _, page := range slices.Backward(list) {
				if uses[page]--; uses[page] > 0 {
					continue
				}
				if holds[page] {
					kept = append(kept, page)
				} else {
					blank = append(blank, page)
				}
			}
		}
		if got, want := p.available(), len(blank)+len(kept); got != want {
			t.Fatalf("%d pages are free, want %d", got, want)
		}
	}
	for positions, want := range map[int]int{0: 0, 1: 1, 4: 1, 5: 2, 8: 2} {
		if got := p.count(positions); got != want {
			t.Errorf("%d positions need %d pages, want %d", positions, got, want)
		}
	}
	if p.tokens() != 28 {
		t.Errorf("%d positions in all", p.tokens())
	}
}

// TestWhoGivesWay: first in, first out; pages are taken from the session that is idle for longest, then from the end of
// the queue, then from the youngest of the batch, which comes back to the front of the queue.
func TestWhoGivesWay(t *testing.T) {
	e := engine(t, tiny(t, newCPU(t), "diff"), nil, Options{Slots: 2, PageSize: 4, CacheTokens: 32})
	c := &scheduler{}
	var stats Stats
	c.init(2, &e.store, &stats)
	waiter := func(n, end int, keep bool) *seq {
		return &seq{tokens: slices.Repeat([]int32{1}, n), end: end, keep: keep}
	}
	a, b, d := waiter(4, 8, true), waiter(4, 8, true), waiter(3, 4, false)
	for _, s := range []*seq{a, b, d} {
		c.enqueue(s)
	}
	if c.admit(); !slices.Equal(c.batch, []*seq{a, b}) || !slices.Equal(c.queue, []*seq{d}) || a.slot == b.slot {
		t.Fatalf("%d run and %d wait", len(c.batch), len(c.queue))
	}
	if !c.grow(a, 8) || !c.grow(b, 4) || len(a.pages) != 2 || len(b.pages) != 1 {
		t.Fatalf("pages %v and %v", a.pages, b.pages)
	}
	c.release(b) // idle before a
	c.release(a)
	if c.admit(); !slices.Equal(c.batch, []*seq{d}) || len(c.resting) != 2 {
		t.Fatalf("%d run, %d rest", len(c.batch), len(c.resting))
	}
	if !c.evict(d) || len(b.pages) != 0 || len(a.pages) != 2 || stats.Evicted != 1 {
		t.Error("pages were not taken from the session that was idle for longest")
	}
	if c.evict(d); len(a.pages) != 0 || stats.Evicted != 2 {
		t.Error("pages were not taken from the other session")
	}
	if c.evict(d) {
		t.Error("there was nobody left to take from")
	}
	young := waiter(4, 32, false)
	c.enqueue(young)
	c.admit()
	c.grow(young, 24)
	if !c.grow(d, 20) || !slices.Equal(c.queue, []*seq{young}) || len(young.pages) != 0 || young.state != waiting ||
		stats.Preempted != 1 {
		t.Errorf("the youngest did not give way: %d wait", len(c.queue))
	}
	late := waiter(2, 4, false)
	c.enqueue(late)
	if !slices.Equal(c.queue, []*seq{young, late}) {
		t.Error("the queue is not in order of arrival")
	}
	if c.grow(d, 36) {
		t.Error("more than the cache has")
	}
}
