package infer

import "encoding/binary"

// prefixes implements prefix reuse. Every full page of a sequence with a scope is entered into a table under its tokens
// and the previous page, so that a page is found only after the same whole prefix, by exact comparison and not by a
// hash. Pages stay in the table without users until the pool needs them. The first page's entry includes the scope:
// what one scope has computed is invisible to another, in results and in time.
//
// Only whole pages are shared, and never the one with the prompt's last token, which must be run for its logits. So no
// sequence writes to a page that others read.
type prefixes struct {
	table map[prefix]held
	of    map[int32]prefix // the entry of each page that is in the table
	last  uint64           // entries are numbered: a page entered again gets a new number
}

// prefix is a page's content: its tokens, and the entry before it.
type prefix struct {
	before uint64 // number of the entry before; 0 for a first page
	tokens string // for a first page prefixed with the scope
}

// held locates a prefix's last page.
type held struct {
	page   int32
	number uint64
}

func newPrefixes(pool *pages) prefixes {
	t := prefixes{table: map[prefix]held{}, of: map[int32]prefix{}}
	pool.holds = func(page int32) bool { _, ok := t.of[page]; return ok }
	pool.forget = func(page int32) {
		delete(t.table, t.of[page])
		delete(t.of, page)
	}
	return t
}

// key is the table's key of page i of s, which follows entry before.
func (t *store) key(s *seq, i int, before uint64) prefix {
	var b []byte
	if i == 0 {
		b = append(b, s.scope...)
		b = append(b, 0)
	}
	for _, id := range s.tokens[i*t.pool.size : (i+1)*t.pool.size] {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
	}
	return prefix{before, string(b)}
}

// reuse gives a sequence that is about to be admitted the pages of its longest known prefix.
func (t *store) reuse(s *seq) {
	if s.scope == "" || s.sampling.Echo || len(s.pages) > 0 {
		return
	}
	var before uint64
	for i := 0; (i+1)*t.pool.size < len(s.tokens); i++ {
		h, ok := t.prefixes.table[t.key(s, i, before)]
		if !ok {
			break
		}
		t.pool.share(h.page)
		s.pages = append(s.pages, h.page)
		before = h.number
	}
	s.shared, s.before = len(s.pages), before
	s.cached = len(s.pages) * t.pool.size
}

// found counts what a sequence has found when it is first admitted. What it finds after it was preempted is its own.
func (t *store) found(s *seq) {
	if s.scope == "" || s.ran {
		return
	}
	s.ran, s.hit = true, s.cached
	t.stats.Hits += s.hit
}

// remember enters the pages of s that became full since the last call. If another sequence has already entered the same
// prefix, that entry stays, and s appends to it.
func (t *store) remember(s *seq) {
	if s.scope == "" || s.sampling.Echo {
		return
	}
	for ; (s.shared+1)*t.pool.size <= s.cached && s.shared < len(s.pages); s.shared++ {
		k := t.key(s, s.shared, s.before)
		h, ok := t.prefixes.table[k]
		if !ok {
			t.prefixes.last++
			h = held{s.pages[s.shared], t.prefixes.last}
			t.prefixes.table[k], t.prefixes.of[h.page] = h, k
		}
		s.before = h.number
	}
}

// disown takes all pages of a sequence that has failed out of the table, also those that it found there. A position
// that is not finite may have spoiled those before it, which attention computed in the same tile, and others must not
// begin with them.
func (t *store) disown(s *seq) {
	for _, page := range s.pages {
		if t.pool.holds(page) {
			t.pool.forget(page)
		}
	}
}
