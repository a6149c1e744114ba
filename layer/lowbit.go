package layer

import (
	"fmt"
	"math"
	"slices"

	"antiphase/device"
	"antiphase/tensor"
)

// Lowbit is low-precision attention, for studies. Absmax quantisation turns a group of numbers x into
//
//	x' = s·round(x/s),  s = max|x| / (2^(bits−1) − 1)
//
// Logits quantises the scaled logits of every map before its softmax, excluding masked ones. Keys (after rotation) and
// Values are quantised as a cache of that precision would store them. 0 bits means exact.
type Lowbit struct {
	Logits       int
	Per          Granularity // for Logits
	Keys, Values int
	CachePer     Granularity // for Keys and Values; empty means PerRow
}

// Granularity selects the numbers that share a scale.
type Granularity string

// Granularities, coarsest first. A sequence's rows are those of one pass, so a decoded token has its own scale.
const (
	PerTensor Granularity = "tensor" // all heads and rows of a sequence
	PerHead   Granularity = "head"   // one map, key head or value head of a sequence
	PerRow    Granularity = "row"    // one query's logits; one head of one token's key or value
)

var granularities = []Granularity{PerTensor, PerHead, PerRow}

// Check returns an error that names the wrong field.
func (q Lowbit) Check() error {
	for _, b := range []int{q.Logits, q.Keys, q.Values} {
		if b != 0 && (b < 2 || b > 16) {
			return fmt.Errorf("bits: is %d, must be 0 (exact) or 2 to 16", b)
		}
	}
	if q.Logits != 0 && !slices.Contains(granularities, q.Per) {
		return fmt.Errorf("per: is %q, must be %q, %q or %q", q.Per, PerTensor, PerHead, PerRow)
	}
	if q.CachePer != "" && !slices.Contains(granularities, q.CachePer) {
		return fmt.Errorf("per: is %q for keys and values, must be %q, %q or %q", q.CachePer, PerTensor,
			PerHead, PerRow)
	}
	return nil
}

// Whole reports whether results depend on which rows of a sequence are computed together, because some scale spans
// rows.
func (q Lowbit) Whole() bool {
	return q.Logits > 0 && q.Per != PerRow || q.Keys+q.Values > 0 && q.CachePer != "" && q.CachePer != PerRow
}

// quantise rounds a group to bits, in place.
func quantise(x []float64, bits int, top float64) {
	if top == 0 || math.IsInf(top, 0) || math.IsNaN(top) {
		return
	}
	s := top / float64(int(1)<<(bits-1)-1)
	for i, v := range x {
		x[i] = s * math.RoundToEven(v/s)
	}
}

func absmax(x []float64) float64 {
	m := 0.0
	for _, v := range x {
		m = max(m, math.Abs(v))
	}
	return m
}

// SetLowbit makes the layer's forward passes, with and without a cache, use low precision; the zero value restores
// exact attention. It runs on the host for any device: correct, slow, and not recordable.
func (l *Attention) SetLowbit(q Lowbit) error {
	if err := q.Check(); err != nil {
		return err
	}
	l.low = nil
	if q == (Lowbit{}) {
		return nil
	}
	l.low = &lowbit{q}
	return nil
}

// lowbit applies Lowbit between the layer's steps; a nil lowbit does nothing.
type lowbit struct{ Lowbit }

// logits returns the quantisation of the logits.
func (l *lowbit) logits() Lowbit {
	if l == nil || l.Logits == 0 {
		return Lowbit{}
	}
	return l.Lowbit
}

// keys rounds new keys and values before attention or the cache sees them.
func (l *lowbit) keys(p *Pass, s device.AttnShape, k, v tensor.Tensor) {
	if l == nil {
		return
	}
	for _, t := range []struct {
		tensor.Tensor
		head, bits int
	}{{k, s.D, l.Keys}, {v, s.DV, l.Values}} {
		if t.bits == 0 {
			continue
		}
		x := readAll(p.Dev, t.Tensor)
		for _, rows := range sequenceRows(p) {
			quantiseRows(x[rows[0]*t.Cols:rows[1]*t.Cols], t.Cols, t.head, t.bits, l.CachePer)
		}
		device.WriteFloats(p.Dev, t.Tensor, x)
	}
}

// sequenceRows returns the ranges of a pass's rows, one per sequence.
func sequenceRows(p *Pass) (out [][2]int) {
	if !p.Slot.Ok() {
		for b := range p.B {
			out = append(out, [2]int{b * p.T, (b + 1) * p.T})
		}
		return out
	}
	slots := readInts(p.Dev, p.Slot)
	for from := 0; from < len(slots); {
		to := from + 1
		for to < len(slots) && slots[to] == slots[from] {
			to++
		}
		out = append(out, [2]int{from, to})
		from = to
	}
	return out
}

// quantiseRows rounds one sequence's rows of heads, in place.
func quantiseRows(x []float64, cols, head, bits int, per Granularity) {
	switch per {
	case PerTensor:
		quantise(x, bits, absmax(x))
	case PerHead:
		for h := 0; h < cols; h += head {
			top := 0.0
			for at := h; at < len(x); at += cols {
				top = max(top, absmax(x[at:at+head]))
			}
			for at := h; at < len(x); at += cols {
				quantise(x[at:at+head], bits, top)
			}
		}
	default:
		for at := 0; at < len(x); at += head {
			quantise(x[at:at+head], bits, absmax(x[at:at+head]))
		}
	}
}
