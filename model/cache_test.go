package model

import (
	"math/rand/v2"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/tensor"
)

// Pages assigned in any order, again and again, are in the device's table before the next step; no more is copied than
// the range of what changed.
func TestAssignInAnyOrder(t *testing.T) {
	const slots, each = 3, 4
	m := newModel(t, ref.New(), configs(t)["transformer/base"])
	c := m.NewCache(12, 2, slots, each)
	defer c.Free()
	want, got := make([]int32, slots*each), make([]int32, slots*each)
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 50 {
		lo, hi := slots*each, 0
		for range r.IntN(5) {
			slot, i, page := r.IntN(slots), r.IntN(each), int32(r.IntN(12))
			c.Assign(slot, i, page)
			want[slot*each+i] = page
			lo, hi = min(lo, slot*each+i), max(hi, slot*each+i+1)
		}
		if hi > 0 && (c.lo != lo || c.hi != hi) || hi == 0 && c.lo != c.hi {
			t.Fatalf("round %d: entries %d to %d would be copied, want %d to %d", round, c.lo, c.hi, lo, hi)
		}
		c.flush()
		if device.ReadI32(m.dev, got, c.table); !slices.Equal(got, want) {
			t.Fatalf("round %d: %v, want %v", round, got, want)
		}
	}
}

// bytewise is a device that caches keys and values as bytes.
type bytewise struct{ device.Device }

func (d bytewise) Types() device.Types {
	t := d.Device.Types()
	t.Cache = tensor.I8
	return t
}

// The pages of every architecture are as wide as its key and value heads, with scales where they are bytes, and say how
// many heads of which width they hold.
func TestPagesFitTheHeads(t *testing.T) {
	for _, a := range layer.Archs() {
		config, err := Config{Arch: a.Name, Vocab: 19, Context: 16, Layers: 2, Dim: 8, Heads: 4, KVHeads: 2, HeadDim: 6,
			FFN: 8}.Complete()
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range []device.Device{ref.New(), bytewise{ref.New()}} {
			m := newModel(t, d, config)
			kv, groups := d.Types().Cache, m.Config.KVHeads
			c := m.NewCache(5, 3, 2, 4)
			bytes := 0
			for l, x := range c.layers {
				k, v := device.CacheCols(kv, groups*a.Keys, 6), device.CacheCols(kv, groups, 6*a.Values)
				if x.K.Cols != k || x.V.Cols != v || x.K.Rows != 15 || x.V.Rows != 15 || x.K.Type != kv ||
					x.V.Type != kv {
					t.Errorf("%s, layer %d: keys %v, values %v; want %d and %d wide", a.Name, l, x.K, x.V, k, v)
				}
				if x.KHeads != groups*a.Keys || x.VHeads != groups || x.D != 6 || x.DV != 6*a.Values ||
					x.PageSize != 3 {
					t.Errorf("%s, layer %d: %d key heads of %d, %d value heads of %d", a.Name, l, x.KHeads, x.D,
						x.VHeads, x.DV)
				}
				bytes += (k + v) * kv.Size()
			}
			if len(c.layers) != 2 || m.CacheBytes() != bytes {
				t.Errorf("%s: %d layers, %d bytes, want %d", a.Name, len(c.layers), m.CacheBytes(), bytes)
			}
			c.Free()
		}
	}
}
