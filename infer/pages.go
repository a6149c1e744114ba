package infer

// pages is the free list of KV pages. The last page returned is the first to be used again: it is the
// likeliest to be in the processor's cache.
type pages struct {
	free  []int32
	total int
	size  int // positions per page
}

func newPages(n, size int) pages {
	p := pages{free: make([]int32, n), total: n, size: size}
	for i := range p.free {
		p.free[i] = int32(n - 1 - i) // page 0 on top
	}
	return p
}

// take removes one page from the list; ok is false when it is empty.
func (p *pages) take() (page int32, ok bool) {
	n := len(p.free)
	if n == 0 {
		return 0, false
	}
	page = p.free[n-1]
	p.free = p.free[:n-1]
	return page, true
}

// give returns pages to the list.
func (p *pages) give(list []int32) { p.free = append(p.free, list...) }

// count is the number of pages that n positions need.
func (p *pages) count(n int) int { return (n + p.size - 1) / p.size }

// tokens is the number of positions in all pages.
func (p *pages) tokens() int { return p.total * p.size }
