package infer

import "antiphase/model"

// store is the KV cache: the device's memory, the pages it is divided into and the prefixes that they hold. The
// engine's lock protects it.
type store struct {
	cache    *model.Cache
	pool     pages
	prefixes prefixes
	stats    *Stats
}

// init allocates a cache for a model.
func (t *store) init(m *model.Model, opt *Options, stats *Stats) {
	t.pool = newPages((opt.CacheTokens+opt.PageSize-1)/opt.PageSize, opt.PageSize)
	t.prefixes = newPrefixes(&t.pool)
	t.cache = m.NewCache(t.pool.total, opt.PageSize, opt.Slots, t.pool.count(m.Config.Context))
	t.stats = stats
}

// drop frees all pages of s; their contents must be recomputed.
func (t *store) drop(s *seq) {
	t.pool.give(s.pages)
	s.pages, s.cached, s.shared = s.pages[:0], 0, 0
}

// trim keeps the pages of the first n positions.
func (t *store) trim(s *seq, n int) {
	s.cached = min(s.cached, n)
	used := t.pool.count(s.cached)
	if used < len(s.pages) {
		t.pool.give(s.pages[used:])
		s.pages = s.pages[:used]
	}
}

// enter makes the pages of s those of its slot.
func (t *store) enter(s *seq) {
	for i, p := range s.pages {
		t.cache.Assign(int(s.slot), i, p)
	}
}

// extend gives s one more page; it is false if none is free.
func (t *store) extend(s *seq) bool {
	page, ok := t.pool.take()
	if ok {
		t.cache.Assign(int(s.slot), len(s.pages), page)
		s.pages = append(s.pages, page)
	}
	return ok
}
