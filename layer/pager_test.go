package layer_test

import (
	"math"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/model/modeltest"
	"antiphase/tensor"
)

// pager is a device that computes all chunks of a pass in one op, row by row; it may refuse.
type pager struct {
	device.Device
	t       *testing.T
	refuses bool
	calls   *int
}

func (pager) ChunkRows() int { return 2 }

// each calls f for every chunk's rows, with the slots and positions that they have.
func (p pager) each(chunks tensor.Tensor, longest int, f func(from, to int, slot, pos tensor.Tensor)) bool {
	device.CheckChunks(chunks)
	if *p.calls++; p.refuses {
		return false
	}
	list := make([]int32, chunks.Len())
	device.ReadI32(p.Device, list, chunks)
	most := 0
	for ; len(list) > 0; list = list[4:] {
		from, to := int(list[0]), int(list[1])
		most = max(most, to-from)
		slot, pos := device.Empty(p.Device, tensor.I32, 1, to-from), device.Empty(p.Device, tensor.I32, 1, to-from)
		for i := range to - from {
			device.WriteI32(p.Device, slot.Columns(i, i+1), []int32{list[3]})
			device.WriteI32(p.Device, pos.Columns(i, i+1), []int32{list[2] + int32(i)})
		}
		f(from, to, slot, pos)
	}
	if most != longest {
		p.t.Errorf("the longest chunk has %d rows, %d were announced", most, longest)
	}
	return true
}

func (p pager) AttentionChunks(a *device.Attn, c *device.Cache, chunks tensor.Tensor, longest int) bool {
	return p.each(chunks, longest, func(from, to int, slot, pos tensor.Tensor) {
		part := *a
		part.Q, part.Out, part.Raw, part.Rstd = a.Q.RowRange(from, to), a.Out.RowRange(from, to), tensor.Tensor{},
			tensor.Tensor{}
		p.AttentionCached(&part, c, slot, pos)
	})
}

func (p pager) DiffAttentionChunks(a *device.DiffAttn, c *device.Cache, chunks tensor.Tensor, longest int) bool {
	return p.each(chunks, longest, func(from, to int, slot, pos tensor.Tensor) {
		part := *a
		part.Q, part.Out, part.Raw, part.Rstd = a.Q.RowRange(from, to), a.Out.RowRange(from, to), tensor.Tensor{},
			tensor.Tensor{}
		if a.Lam.Len() > 1 {
			part.Lam = a.Lam.RowRange(from, to)
		}
		p.DiffAttentionCached(&part, c, slot, pos)
	})
}

// Chunks of several sequences, with single rows before, between and after them, have the logits of rows one by one,
// whether the device takes all chunks at once, refuses, or takes each alone.
func TestChunksBetweenRows(t *testing.T) {
	for _, a := range layer.Archs() {
		run := func(d device.Device) (out []float32) {
			m := modeltest.New(t, d, modeltest.Tiny(a.Name, 20, 16), layer.Memory{}, 5)
			defer m.Free()
			c := m.NewCache(16, 3, 4, 4)
			defer c.Free()
			for i := range 16 {
				c.Assign(i%4, i/4, int32(15-i))
			}
			at := [4]int32{}
			for _, step := range [][][2]int{{{0, 1}, {1, 3}, {2, 1}, {3, 5}, {0, 1}}, {{1, 2}, {3, 1}},
				{{3, 1}, {1, 4}}, {{2, 6}, {0, 2}, {1, 1}}} { // slot, rows
				var r model.Rows
				for _, s := range step {
					for range s[1] {
						r.IDs, r.Slots = append(r.IDs, (7*at[s[0]]+int32(s[0]))%20), append(r.Slots, int32(s[0]))
						r.Pos, r.Want = append(r.Pos, at[s[0]]), append(r.Want, int32(len(r.Want)))
						at[s[0]]++
					}
				}
				y := make([]float32, len(r.IDs)*20)
				if err := c.Step(r, y); err != nil {
					t.Fatal(err)
				}
				out = append(out, y...)
			}
			return out
		}
		want := run(ref.New())
		for _, refuses := range []bool{false, true} {
			calls := 0
			for i, x := range run(pager{ref.New(), t, refuses, &calls}) {
				if !(math.Abs(float64(x-want[i])) <= 1e-5) {
					t.Fatalf("%s, refuses %v: logit %d of row %d is %g, want %g", a.Name, refuses, i%20,
						i/20, x, want[i])
				}
			}
			if calls != 2*4 { // layers and steps
				t.Errorf("%s: %d calls", a.Name, calls)
			}
		}
	}
}
