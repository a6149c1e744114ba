package infer

// pages is the pool of KV pages. A page may be used by several sequences that share a prefix. A page without users is
// free. It is either blank or kept: a kept page still holds a prefix that a later prompt may begin with (prefix.go).
// Blank pages are handed out first, last in first out, because the last one is most likely in the processor's cache;
// then the least recently used kept page.
type pages struct {
	blank []int32
	uses  []int32 // by page
	total int
	size  int // positions per page

	kept   order                 // free pages that hold a prefix, oldest first
	holds  func(page int32) bool // whether a page holds a prefix
	forget func(page int32)      // tells the prefix table that a page was reassigned
}

func newPages(n, size int) pages {
	p := pages{blank: make([]int32, n), uses: make([]int32, n), total: n, size: size, kept: newOrder(n)}
	for i := range p.blank {
		p.blank[i] = int32(n - 1 - i) // page 0 on top
	}
	return p
}

// available is the number of free pages.
func (p *pages) available() int { return len(p.blank) + p.kept.n }

// take hands out a page; ok is false if none is free.
func (p *pages) take() (page int32, ok bool) {
	if n := len(p.blank); n > 0 {
		page = p.blank[n-1]
		p.blank = p.blank[:n-1]
	} else if page, ok = p.kept.first(); ok {
		p.kept.remove(page)
		p.forget(page)
	} else {
		return 0, false
	}
	p.uses[page] = 1
	return page, true
}

// share adds a user to a page that holds a prefix.
func (p *pages) share(page int32) {
	if p.uses[page] == 0 {
		p.kept.remove(page)
	}
	p.uses[page]++
}

// give removes one use of each page. The last of the list is evicted first, because a shorter prefix is more valuable.
func (p *pages) give(list []int32) {
	for i := len(list) - 1; i >= 0; i-- {
		page := list[i]
		if p.uses[page]--; p.uses[page] > 0 {
			continue
		}
		if p.holds != nil && p.holds(page) {
			p.kept.append(page)
		} else {
			p.blank = append(p.blank, page)
		}
	}
}

// count is the number of pages that n positions need.
func (p *pages) count(n int) int { return (n + p.size - 1) / p.size }

// tokens is the number of positions in all pages.
func (p *pages) tokens() int { return p.total * p.size }

// order is a list that holds each page at most once; all operations take constant time.
type order struct {
	next, prev []int32 // by page; entry total is the list's head
	n          int
}

func newOrder(total int) order {
	o := order{next: make([]int32, total+1), prev: make([]int32, total+1)}
	o.next[total], o.prev[total] = int32(total), int32(total)
	return o
}

func (o *order) first() (int32, bool) { return o.next[len(o.next)-1], o.n > 0 }

func (o *order) append(page int32) {
	head := int32(len(o.next) - 1)
	last := o.prev[head]
	o.next[last], o.prev[page], o.next[page], o.prev[head] = page, last, head, page
	o.n++
}

func (o *order) remove(page int32) {
	o.next[o.prev[page]], o.prev[o.next[page]] = o.next[page], o.prev[page]
	o.n--
}
