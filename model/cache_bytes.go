package model

// CacheBytes is the memory that one position takes in a KV cache, over all layers.
func (m *Model) CacheBytes() int {
	n := 0
	for _, b := range m.blocks {
		k, v := b.Attn.CacheWidths()
		n += k + v
	}
	return n * m.dev.Types().Cache.Size()
}
