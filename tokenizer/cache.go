package tokenizer

import (
	"hash/maphash"
	"sync/atomic"
)

// wordCache caches the ids of recent words. Each word has one slot, and a later word in the same slot replaces it, so
// memory is bounded by 72 bytes per slot. No lock is needed: entries are immutable.
type wordCache struct {
	seed  maphash.Seed
	slots []atomic.Pointer[cacheEntry]
}

// Longer words, and words of more ids, are not cached.
const (
	cacheBytes = 30
	cacheIDs   = 8
)

// cacheEntry fills one cache line.
type cacheEntry struct {
	size, n uint8
	word    [cacheBytes]byte
	ids     [cacheIDs]int32
}

// newWordCache sizes the cache by the vocabulary: 1,024 to 65,536 slots.
func newWordCache(vocab int) wordCache {
	n := 1 << 10
	for n < vocab && n < 1<<16 {
		n *= 2
	}
	return wordCache{seed: maphash.MakeSeed(), slots: make([]atomic.Pointer[cacheEntry], n)}
}

func (c *wordCache) slot(w string) *atomic.Pointer[cacheEntry] {
	return &c.slots[maphash.String(c.seed, w)&uint64(len(c.slots)-1)]
}

func (e *cacheEntry) is(w string) bool { return e != nil && string(e.word[:e.size]) == w }

// newCacheEntry returns an entry for a word of up to cacheBytes, or nil if it has too many ids.
func newCacheEntry(w string, ids []int32) *cacheEntry {
	if len(ids) > cacheIDs {
		return nil
	}
	e := &cacheEntry{size: uint8(len(w)), n: uint8(len(ids))}
	copy(e.word[:], w)
	copy(e.ids[:], ids)
	return e
}
