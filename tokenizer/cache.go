package tokenizer

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
)

// wordCache remembers the ids of recent words. Each word has one slot and a later word in the same slot takes it over, so
// memory is bounded by slots × (cacheLimit bytes + as many ids) and no lock is needed: entries do not change once stored.
type wordCache struct {
	seed  maphash.Seed
	slots []atomic.Pointer[cacheEntry]
}

type cacheEntry struct {
	word string
	ids  []int32
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

// newCacheEntry copies both: w may be a view of a buffer and ids part of a caller's slice.
func newCacheEntry(w string, ids []int32) *cacheEntry {
	return &cacheEntry{strings.Clone(w), append(make([]int32, 0, len(ids)), ids...)}
}
