package model

import "antiphase/device"

// CacheBytes is the size of one position in a KV cache, over all layers.
func (n *network) CacheBytes() int {
	size, kv := 0, n.dev.Types().Cache
	for _, b := range n.blocks {
		keys, values, d, dv := b.Attn.CacheHeads()
		size += device.CacheCols(kv, keys, d) + device.CacheCols(kv, values, dv)
	}
	return size * kv.Size()
}
