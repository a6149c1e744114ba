package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/tensor"
)

// together is a device that takes rows of one sequence together, from two on.
type together struct{ device.Device }

func (together) ChunkRows() int { return 2 }

// prompts runs two sequences in steps of mixed rows, a single one first, then chunks from the beginning and later ones,
// and gives all logits.
func prompts(t *testing.T, d device.Device, c Config, drop ...layer.Recompute) (out []float32) {
	t.Helper()
	m := newModel(t, d, c)
	for _, r := range drop {
		m.Recompute(r)
	}
	defer m.Free()
	cache := m.NewCache(12, 3, 3, 6)
	defer cache.Free()
	for page := range 12 {
		cache.Assign(page%2*2, page/2, int32(11-page))
	}
	r := rand.New(rand.NewPCG(1, 2))
	at := [3]int32{}
	for _, step := range [][][2]int{ // slot, rows
		{{2, 1}}, {{0, 5}}, {{0, 1}, {2, 4}}, {{2, 1}, {0, 3}, {2, 2}}, {{0, 1}, {2, 1}}, {{0, 2}},
		{{0, 1}, {2, 6}, {0, 1}},
	} {
		var x Rows
		for _, s := range step {
			for range s[1] {
				x.IDs, x.Slots = append(x.IDs, int32(r.IntN(c.Vocab))), append(x.Slots, int32(s[0]))
				x.Pos, x.Want = append(x.Pos, at[s[0]]), append(x.Want, int32(len(x.IDs)-1))
				at[s[0]]++
			}
		}
		y := make([]float32, len(x.IDs)*c.Vocab)
		if err := cache.Step(x, y); err != nil {
			t.Fatal(err)
		}
		out = append(out, y...)
	}
	return out
}

// Rows that attend together give the logits of rows that attend one by one, in whatever company.
func TestChunksEqualRows(t *testing.T) {
	for name, c := range configs(t) {
		want, got := prompts(t, ref.New(), c), prompts(t, together{ref.New()}, c)
		for i := range want {
			if !(math.Abs(float64(got[i]-want[i])) <= 1e-6) {
				t.Fatalf("%s: logit %d of row %d is %g together, %g one by one", name, i%c.Vocab, i/c.Vocab,
					got[i], want[i])
			}
		}
	}
	mixed := device.Types{Act: tensor.BF16, Stat: tensor.F32}
	prompts(t, together{ref.NewTypes(mixed)}, configs(t)["diff2/norm-affine"]) // dtypes of every copy
}

// So they do in models of any depth, whatever training passes would drop.
func TestChunksOfAnyDepth(t *testing.T) {
	for _, layers := range []int{1, 3, 6} {
		c := configs(t)["diff/base"]
		c.Layers = layers
		want := prompts(t, ref.New(), c)
		for _, r := range layer.Recomputes {
			for i, y := range prompts(t, together{ref.New()}, c, r) {
				if !(math.Abs(float64(y-want[i])) <= 1e-6) {
					t.Fatalf("%d layers, dropping %s: logit %d is %g together, %g one by one", layers, r, i, y, want[i])
				}
			}
		}
	}
}

// A few rows after a long past attend one by one, and so do rows that are not consecutive.
func TestChunksThatPay(t *testing.T) {
	m := newModel(t, together{ref.New()}, configs(t)["diff/base"])
	c := m.NewCache(8, 64, 2, 4)
	defer c.Free()
	for i := range 8 {
		c.Assign(i%2, i/2, int32(7-i))
	}
	rows := func(list ...[2]int32) *Rows {
		r := &Rows{}
		for _, x := range list {
			r.IDs, r.Slots, r.Pos = append(r.IDs, 0), append(r.Slots, x[0]), append(r.Pos, x[1])
		}
		return r
	}
	for _, x := range []struct {
		rows *Rows
		want int
	}{
		{rows([2]int32{0, 126}, [2]int32{0, 127}), 1}, {rows([2]int32{0, 127}, [2]int32{0, 128}), 0},
		{rows([2]int32{0, 5}, [2]int32{1, 6}), 0}, {rows([2]int32{0, 5}, [2]int32{0, 7}), 0},
		{rows([2]int32{1, 5}, [2]int32{0, 0}, [2]int32{0, 1}, [2]int32{1, 6}, [2]int32{1, 7}), 2},
	} {
		got := c.chunks.find(c, x.rows)
		if len(got) != x.want {
			t.Errorf("slots %v, positions %v: %d chunks, want %d", x.rows.Slots, x.rows.Pos, len(got), x.want)
		}
		for i, ch := range got {
			slot, table, keys := x.rows.Slots[ch.From], make([]int32, 4), make([]int32, ch.Keys.Len())
			device.ReadI32(m.dev, table, c.chunks.table.RowRange(i, i+1))
			device.ReadI32(m.dev, keys, ch.Keys)
			if !slices.Equal(table, []int32{int32(ch.From), int32(ch.To), x.rows.Pos[ch.From], slot}) ||
				ch.Past != int(x.rows.Pos[ch.From]) || len(keys) != ch.Past+ch.To-ch.From {
				t.Errorf("chunk %d is %+v, in the table %v, with %d keys", i, ch, table, len(keys))
			}
			for pos, at := range keys {
				if page := 7 - (2*(pos/64) + int(slot)); at != int32(64*page+pos%64) {
					t.Fatalf("chunk %d: position %d of slot %d is cache row %d", i, pos, slot, at)
				}
			}
		}
	}
}
