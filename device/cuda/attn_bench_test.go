package cuda

import (
	"fmt"
	"math"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// BenchmarkAttention times forward and backward of 32,768 tokens: plain attention, DIFF V1 (half the heads, values
// twice as wide) and DIFF V2 (pairs of query heads that share keys and values), as in the table of the design. One
// after the other: what ran before changes a time. TestHopperTimes compares kernels in turns.
func BenchmarkAttention(b *testing.B) {
	const tokens = 32768
	d := gpu(b, nil)
	for _, s := range []struct{ width, head, t int }{{2048, 128, 2048}, {2048, 128, 8192}, {2048, 128, 32768},
		{768, 64, 2048}, {768, 64, 8192}} {
		heads := s.width / s.head
		for _, k := range []struct {
			name  string
			heads int
			shape attnShape
		}{
			{"plain", heads, attnShape{1, 1, s.head, s.head}},
			{"diff", heads / 2, attnShape{2, 2, s.head, 2 * s.head}},
			{"diff2", heads, attnShape{2, 1, s.head, s.head}},
		} {
			c := benchCall(b, d, k.shape, tokens/s.t, s.t, k.heads)
			cells := float64(tokens) * float64(s.t+1) / 2 * float64(k.heads)
			forward := 2 * cells * float64(k.shape.maps*(s.head+k.shape.dv))
			backward := 2 * cells * float64(k.shape.maps*3*s.head+2*k.shape.dv)
			name := fmt.Sprintf("%d/%d/T%d/%s", s.width, s.head, s.t, k.name)
			b.Run(name+"/forward", func(b *testing.B) { report(b, d, forward, 0, func() { d.attend(c) }) })
			b.Run(name+"/backward", func(b *testing.B) { report(b, d, backward, 0, func() { d.attendBackward(c) }) })
			// dOut and raw; with two maps Out2, with the norm the gradient.
			room, tensors := c.room(s.t, k.shape.stats(), 0), 2
			if k.shape.maps == 2 {
				tensors++
			}
			if c.norm.On {
				tensors++
			}
			b.Run(name+"/prepare", func(b *testing.B) {
				report(b, d, 0, float64(2*tensors*tokens*k.heads*k.shape.dv), func() { d.prepare(c, &room) })
			})
			for _, x := range []tensor.Tensor{c.q, c.k, c.v, c.out, c.raw, c.out2, c.dout, c.dq, c.dk, c.dv} {
				if x.Ok() {
					d.Free(x.Buf)
				}
			}
		}
	}
}

// spread is noise for large tensors: a first block of rows from the host, the others copies of it on the GPU.
func spread(b testing.TB, d *Device, rows, cols int) tensor.Tensor {
	x, done := act(d, rows, cols), min(rows, max(1, 1<<17/cols))
	fill(d, x.RowRange(0, done), uint64(rows+cols), 0, 1)
	for ; done < rows; done *= 2 {
		n := min(done, rows-done)
		d.Copy(x.RowRange(done, done+n), x.RowRange(0, n))
	}
	return x
}

// benchCall is a call of one shape without documents; DIFF V1 with its norm.
func benchCall(b testing.TB, d *Device, s attnShape, batch, t, heads int) *attnCall {
	n := batch * t
	c := &attnCall{maps: s.maps, keys: s.keys}
	c.AttnShape = device.AttnShape{B: batch, T: t, Heads: heads, Groups: heads, D: s.d, DV: s.dv,
		Scale: 1 / math.Sqrt(float64(s.d))}
	c.q, c.k, c.v = spread(b, d, n, heads*s.maps*s.d), spread(b, d, n, heads*s.keys*s.d), spread(b, d, n, heads*s.dv)
	c.out, c.lse, c.dout = act(d, n, heads*s.dv), stat(d, n, heads*s.maps), spread(b, d, n, heads*s.dv)
	c.dq, c.dk, c.dv = act(d, n, heads*s.maps*s.d), act(d, n, heads*s.keys*s.d), act(d, n, heads*s.dv)
	if s.maps == 2 {
		c.lam, c.out2, c.dlam = fill(d, stat(d, 1, 1), 1, 0.5, 0), act(d, n, heads*s.dv), stat(d, n, heads)
	}
	if s.keys == 2 {
		c.norm, c.raw, c.rstd = device.HeadNorm{On: true, Eps: 1e-5, Scale: 0.2}, act(d, n, heads*s.dv),
			stat(d, n, heads)
	}
	return c
}

// BenchmarkCached times one decoding step's attention of a layer, in bytes of K and V: DIFF V1 of the 830m model.
func BenchmarkCached(b *testing.B) {
	const heads, head, page, context = 6, 128, 64, 4096
	d := gpu(b, nil)
	for _, rows := range []int{1, 16, 64} {
		pages := context / page
		cache := &device.Cache{K: spread(b, d, rows*context, heads*2*head), V: spread(b, d, rows*context, heads*2*head),
			Table: on(d, tensor.I32, rows, pages, pages), PageSize: page}
		table, slot, pos := make([]int32, rows*pages), make([]int32, rows), make([]int32, rows)
		for i := range table {
			table[i] = int32((i*7919 + 13) % len(table))
		}
		for i := range slot {
			slot[i], pos[i] = int32(i), context-1
		}
		device.WriteI32(d, cache.Table, table)
		where, last := ints(d, rows), ints(d, rows)
		device.WriteI32(d, where, slot)
		device.WriteI32(d, last, pos)
		a := &device.DiffAttn{AttnShape: device.AttnShape{Heads: heads, Groups: heads, D: head, DV: 2 * head,
			Scale: 0.1}, Keys: 2, Norm: device.HeadNorm{On: true, Eps: 1e-5, Scale: 0.2},
			Q:   spread(b, d, rows, heads*2*head),
			Lam: fill(d, stat(d, 1, 1), 1, 0.5, 0), Out: act(d, rows, heads*2*head)}
		b.Run(fmt.Sprintf("830m/batch%d", rows), func(b *testing.B) {
			report(b, d, 0, float64(rows*context*heads*4*head*2),
				func() { d.DiffAttentionCached(a, cache, where, last) })
		})
		for _, x := range []tensor.Tensor{cache.K, cache.V, cache.Table} {
			d.Free(x.Buf)
		}
	}
}
