package layer

import (
	"encoding/binary"
	"math"
	"slices"

	"antiphase/device"
	"antiphase/internal/cores"
	"antiphase/tensor"
)

// rework computes on the host what device ops cannot. Heads with quantised logits or a replaced second map are
// recomputed; disabled heads become zero. Without either it does nothing.
func (l *Attention) rework(p *Pass, s device.AttnShape, c *device.Cache, out, q, k, v tensor.Tensor) {
	es := l.cfg.edits
	which := es.recomputed()
	if l.low.logits().Logits > 0 {
		which = which[:0]
		for h := range s.Heads {
			which = append(which, h)
		}
	}
	if len(which) > 0 {
		h := l.host(p, s, q)
		h.which = which
		if p.Slot.Ok() {
			h.attendCache(p, c)
		} else {
			h.attendPass(readAll(p.Dev, k), readAll(p.Dev, v))
		}
		for _, head := range which {
			device.WriteFloats(p.Dev, out.Columns(head*s.DV, (head+1)*s.DV), h.column(head))
		}
	}
	es.knock(p, out, s.DV)
}

// hostAttn is attention on the host: out = HeadNorm(Σ_m w_m·A_m·V), w = 1, −λ. A_m is the softmax of map m's logits,
// which may be quantised, or an intervention's replacement of the second map.
type hostAttn struct {
	device.AttnShape
	q     Lowbit
	cfg   *AttnConfig
	which []int // heads to compute
	maps  int   // per output head
	qs    int   // query heads
	keys  int   // key heads per group

	queries, lam, weight []float64
	starts               []int32
	norm                 device.HeadNorm
	out                  []float64 // [N, H·DV]
}

func (l *Attention) host(p *Pass, s device.AttnShape, q tensor.Tensor) *hostAttn {
	a := l.cfg.Arch
	h := &hostAttn{AttnShape: s, q: l.low.logits(), cfg: &l.cfg, maps: a.Maps,
		qs: a.QueryHeads(s.Heads, s.Groups), keys: a.Keys, queries: readAll(p.Dev, q),
		out: make([]float64, q.Rows*s.Heads*s.DV)}
	used := l.mix.applied()
	h.norm = used.norm
	if used.lam.Ok() {
		h.lam = readAll(p.Dev, used.lam)
	}
	if h.norm.Weight.Ok() {
		h.weight = readAll(p.Dev, h.norm.Weight)
	}
	if p.Start.Ok() {
		h.starts = readInts(p.Dev, p.Start)
	}
	return h
}

// column returns one head's output, [N, DV].
func (h *hostAttn) column(head int) []float64 {
	var out []float64
	for n := range len(h.out) / (h.Heads * h.DV) {
		out = append(out, h.row(n, head)...)
	}
	return out
}

// attendPass computes all rows of a pass without a cache.
func (h *hostAttn) attendPass(keys, values []float64) {
	wk, wv := h.Groups*h.keys*h.D, h.Groups*h.DV
	for b := range h.B {
		first := b * h.T
		h.attend(first, first+h.T, part{keys[first*wk:], values[first*wv:], func(n int) (from, to int) {
			return h.start(n), n - first + 1
		}})
	}
}

// start is the first key visible to row n.
func (h *hostAttn) start(n int) int {
	if h.starts == nil {
		return 0
	}
	return int(h.starts[n])
}

// part is one sequence's keys and values, and the range of them visible to a row.
type part struct {
	k, v []float64
	sees func(n int) (from, to int)
}

// attendCache computes the rows of a cached pass, one sequence at a time: rows of a slot are consecutive, in order of
// position.
func (h *hostAttn) attendCache(p *Pass, c *device.Cache) {
	slots, pos, table := readInts(p.Dev, p.Slot), readInts(p.Dev, p.Pos), readInts(p.Dev, c.Table)
	for _, rows := range sequenceRows(p) {
		from, to := rows[0], rows[1]
		n := int(slices.Max(pos[from:to])) + 1
		keys, values := make([]float64, 0, n*c.K.Cols), make([]float64, 0, n*c.V.Cols)
		for t := 0; t < n; t += c.PageSize {
			at := int(table[int(slots[from])*c.Table.Cols+t/c.PageSize]) * c.PageSize
			end := at + min(c.PageSize, n-t)
			keys, values = append(keys, readAll(p.Dev, c.K.RowRange(at, end))...),
				append(values, readAll(p.Dev, c.V.RowRange(at, end))...)
		}
		h.attend(from, to, part{keys, values, func(n int) (int, int) { return 0, int(pos[n]) + 1 }})
	}
}

// attend computes rows [from,to) of out.
func (h *hostAttn) attend(from, to int, s part) {
	tops := make([]float64, len(h.which)*h.maps) // largest magnitudes that scales are made of
	if h.q.Per == PerTensor || h.q.Per == PerHead {
		h.tops(tops, from, to, s)
	}
	h.eachBlock(from, to, func(i, _, from, to int) {
		for m := range h.maps {
			h.mix(h.which[i], m, from, to, tops[i*h.maps+m], s)
		}
		for n := from; n < to; n++ {
			h.normalise(h.row(n, h.which[i]))
		}
	})
}

// tops fills in the largest magnitude of the logits of each head's maps, or for PerTensor that of all of them.
func (h *hostAttn) tops(tops []float64, from, to int, s part) {
	blocks := blocksOf(from, to)
	found := make([]float64, len(tops)*blocks)
	h.eachBlock(from, to, func(i, block, from, to int) {
		for m := range h.maps {
			found[(i*h.maps+m)*blocks+block] = h.top(h.which[i], m, from, to, s)
		}
	})
	for i := range tops {
		tops[i] = slices.Max(found[i*blocks:][:blocks])
	}
	if h.q.Per == PerTensor {
		top := slices.Max(tops)
		for i := range tops {
			tops[i] = top
		}
	}
}

// hostRows is the number of rows of a head that one goroutine computes at a time.
const hostRows = 32

func blocksOf(from, to int) int { return (to - from + hostRows - 1) / hostRows }

// eachBlock runs f on all cores, for the i-th head to compute and each block of its rows [from,to).
func (h *hostAttn) eachBlock(from, to int, f func(i, block, from, to int)) {
	heads, blocks := len(h.which), blocksOf(from, to)
	cores.Each(heads*blocks, func(at int) {
		block := blocks - 1 - at/heads // the last rows see the most keys: they come first
		first := from + block*hostRows
		f(at%heads, block, first, min(first+hostRows, to))
	})
}

// top is the largest magnitude of a map's logits over rows [from,to).
func (h *hostAttn) top(head, m, from, to int, s part) float64 {
	top, buf := 0.0, []float64(nil)
	for n := from; n < to; n++ {
		buf = h.logits(buf[:0], head, m, n, s)
		top = max(top, absmax(buf))
	}
	return top
}

// mix adds w_m·softmax(·)·V of one map to the head's rows.
func (h *hostAttn) mix(head, m, from, to int, top float64, s part) {
	var buf []float64
	group, width := h.cfg.group(head, m), h.Groups*h.DV
	for n := from; n < to; n++ {
		buf = h.logits(buf[:0], head, m, n, s)
		if h.q.Per == PerRow {
			top = absmax(buf)
		}
		if h.q.Logits > 0 {
			quantise(buf, h.q.Logits, top)
		}
		most, sum := slices.Max(buf), 0.0
		for i, x := range buf {
			buf[i] = math.Exp(x - most)
			sum += buf[i]
		}
		w := h.sign(n, head, m) / sum
		first, end := s.sees(n)
		if m == 1 {
			h.cfg.edits.remap(buf, h.cfg.Layer, head, end-1)
		}
		for i := range buf {
			buf[i] *= w
		}
		addRows(h.row(n, head), buf, s.v[first*width+group*h.DV:], width)
	}
}

// addRows adds Σ_i w[i]·v[i·width:] to out: four rows at a time, so that out is read and written a quarter as often,
// each sum in the order of the rows.
func addRows(out, w, v []float64, width int) {
	i, n := 0, len(out)
	for ; i+4 <= len(w); i += 4 {
		v0, v1, v2, v3 := v[i*width:][:n], v[(i+1)*width:][:n], v[(i+2)*width:][:n], v[(i+3)*width:][:n]
		w0, w1, w2, w3 := w[i], w[i+1], w[i+2], w[i+3]
		for c, x := range out {
			out[c] = x + w0*v0[c] + w1*v1[c] + w2*v2[c] + w3*v3[c]
		}
	}
	for ; i < len(w); i++ {
		for c, x := range v[i*width:][:n] {
			out[c] += w[i] * x
		}
	}
}

// logits appends row n's scaled logits of a map over its visible keys.
func (h *hostAttn) logits(dst []float64, head, m, n int, s part) []float64 {
	group, width := h.cfg.group(head, m), h.Groups*h.keys*h.D
	key := (group*h.keys + min(m, h.keys-1)) * h.D
	q := h.queries[(n*h.qs+h.cfg.QueryHead(head, m))*h.D:][:h.D]
	from, to := s.sees(n)
	at := len(dst)
	dst = slices.Grow(dst, to-from)[:at+to-from]
	dotRows(dst[at:], q, s.k[from*width+key:], width)
	for i := range dst[at:] {
		dst[at+i] *= h.Scale
	}
	return dst
}

// dotRows sets dst[i] to q·k[i·width:]: four rows at a time, so that their sums do not wait for each other, each in
// the order of q.
func dotRows(dst, q, k []float64, width int) {
	i, n := 0, len(q)
	for ; i+4 <= len(dst); i += 4 {
		k0, k1, k2, k3 := k[i*width:][:n], k[(i+1)*width:][:n], k[(i+2)*width:][:n], k[(i+3)*width:][:n]
		a, b, c, d := 0.0, 0.0, 0.0, 0.0
		for j, x := range q {
			a, b, c, d = a+x*k0[j], b+x*k1[j], c+x*k2[j], d+x*k3[j]
		}
		dst[i], dst[i+1], dst[i+2], dst[i+3] = a, b, c, d
	}
	for ; i < len(dst); i++ {
		dst[i] = 0
		for j, x := range k[i*width:][:n] {
			dst[i] += q[j] * x
		}
	}
}

// sign is 1 for the first map and −λ for the second.
func (h *hostAttn) sign(n, head, m int) float64 {
	switch {
	case m == 0:
		return 1
	case len(h.lam) == 1:
		return -h.lam[0]
	}
	return -h.lam[n*h.Heads+head]
}

func (h *hostAttn) row(n, head int) []float64 { return h.out[(n*h.Heads+head)*h.DV:][:h.DV] }

// normalise applies the head norm to one head's row.
func (h *hostAttn) normalise(x []float64) {
	if !h.norm.On {
		return
	}
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	f := h.norm.Scale / math.Sqrt(sum/float64(len(x))+h.norm.Eps)
	for i := range x {
		x[i] *= f
		if h.weight != nil {
			x[i] *= h.weight[i]
		}
	}
}

func readAll(d device.Device, t tensor.Tensor) []float64 {
	x := make([]float64, t.Len())
	device.ReadFloats(d, x, t)
	return x
}

func readInts(d device.Device, t tensor.Tensor) []int32 {
	b, x := make([]byte, 4*t.Len()), make([]int32, t.Len())
	d.Read(b, t)
	for i := range x {
		x[i] = int32(binary.NativeEndian.Uint32(b[4*i:]))
	}
	return x
}
