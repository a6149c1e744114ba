package infer

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// pageLists is the pool by its definition: plain lists of the blank and the kept pages, and the users of each page.
type pageLists struct {
	blank, kept []int32
	uses        map[int32]int
	holds       map[int32]bool
}

// take is the page that comes next, and whether it was a kept one; −1 if none is free.
func (l *pageLists) take() (page int32, kept bool) {
	page = -1
	if k := len(l.blank); k > 0 {
		page, l.blank = l.blank[k-1], l.blank[:k-1]
	} else if len(l.kept) > 0 {
		page, l.kept, kept = l.kept[0], l.kept[1:], true
	}
	if page >= 0 {
		l.uses[page] = 1
	}
	return page, kept
}

func (l *pageLists) share(page int32) {
	l.uses[page]++
	l.kept = slices.DeleteFunc(l.kept, func(k int32) bool { return k == page })
}

// give takes pages back, the last first.
func (l *pageLists) give(list []int32) {
	for _, page := range slices.Backward(list) {
		if l.uses[page]--; l.uses[page] > 0 {
			continue
		}
		if l.holds[page] {
			l.kept = append(l.kept, page)
		} else {
			l.blank = append(l.blank, page)
		}
	}
}

// TestPagesByDefinition: random calls on the pool against plain lists: blank pages first, the last given back on top;
// then the kept page that was not used for longest, which is forgotten; a page is free when its last user gives it
// back.
func TestPagesByDefinition(t *testing.T) {
	g := rand.New(rand.NewPCG(4, 2))
	const n = 7
	p := newPages(n, 4)
	l := &pageLists{blank: []int32{6, 5, 4, 3, 2, 1, 0}, uses: map[int32]int{}, holds: map[int32]bool{}}
	var forgotten []int32
	p.holds = func(page int32) bool { return l.holds[page] }
	p.forget = func(page int32) { forgotten = append(forgotten, page); delete(l.holds, page) }
	for range 4000 {
		switch g.IntN(3) {
		case 0:
			page, ok := p.take()
			want, kept := l.take()
			if kept && (len(forgotten) == 0 || forgotten[len(forgotten)-1] != want) {
				t.Fatalf("page %d is handed out and not forgotten", want)
			}
			if ok != (want >= 0) || ok && page != want {
				t.Fatalf("took %d, %v; want %d", page, ok, want)
			}
			if ok {
				l.holds[page] = g.IntN(2) == 0
			}
		case 1: // share one that holds a prefix
			for page := range int32(n) {
				if l.holds[page] && (l.uses[page] > 0 || slices.Contains(l.kept, page)) && g.IntN(2) == 0 {
					p.share(page)
					l.share(page)
					break
				}
			}
		case 2: // give some back, the last first
			var list []int32
			for page := range int32(n) {
				if l.uses[page] > 0 && g.IntN(2) == 0 {
					list = append(list, page)
				}
			}
			g.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			p.give(list)
			l.give(list)
		}
		if got, want := p.available(), len(l.blank)+len(l.kept); got != want {
			t.Fatalf("%d pages are free, want %d", got, want)
		}
	}
}

// Pages of four positions, as many as a number of positions needs.
func TestPagesOfPositions(t *testing.T) {
	p := newPages(7, 4)
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
