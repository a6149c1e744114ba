package model

import "antiphase/device"

// CacheBytes is the size of one position in a KV cache, over all layers.
func (m *Model) CacheBytes() int {
	n, kv := 0, m.dev.Types().Cache
	for _, b := range m.blocks {
		keys, values, d, dv := b.Attn.CacheHeads()
		n += device.CacheCols(kv, keys, d) + device.CacheCols(kv, values, dv)
	}
	return n * kv.Size()
}
