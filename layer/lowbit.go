package layer

import (
	"fmt"
	"math"
	"slices"

	"antiphase/device"
	"antiphase/tensor"
)

// Lowbit is attention computed with few bits, for studies of precision: with absmax quantisation a group of numbers x becomes
//
//	x' = s·round(x/s),  s = max|x| / (2^(bits−1) − 1)
//
// Logits quantises the scaled logits of every map before its softmax, masked ones left out; Cache quantises keys and values, a
// group being the head of one token, as a cache of that precision would hold them. 0 bits leaves exact.
type Lowbit struct {
	Logits int
	Per    Granularity // of Logits
	Cache  int
}

// Granularity is which logits share a scale.
type Granularity string

// Granularities of a layer's logits, from the coarsest. A sequence's rows are those of one pass: a decoded token has its own scale.
const (
	PerTensor Granularity = "tensor" // all heads and rows of a sequence
	PerHead   Granularity = "head"   // one map of a sequence
	PerRow    Granularity = "row"    // one query
)

// Check says what is wrong.
func (q Lowbit) Check() error {
	for _, b := range []int{q.Logits, q.Cache} {
		if b != 0 && (b < 2 || b > 16) {
			return fmt.Errorf("bits: is %d, must be 0 (exact) or 2 to 16", b)
		}
	}
	if q.Logits != 0 && !slices.Contains([]Granularity{PerTensor, PerHead, PerRow}, q.Per) {
		return fmt.Errorf("per: is %q, must be %q, %q or %q", q.Per, PerTensor, PerHead, PerRow)
	}
	return nil
}

// quantise rounds a group to bits in place.
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

// SetLowbit makes the layer's forward passes, with and without a cache, compute with few bits; the zero value makes them exact
// again. Work moves through the host, on any device: right, but slow, and not to be recorded.
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

// lowbit is what a layer does between its own steps; a nil one does nothing.
type lowbit struct{ Lowbit }

// logits is how the logits are quantised.
func (l *lowbit) logits() Lowbit {
	if l == nil || l.Logits == 0 {
		return Lowbit{}
	}
	return l.Lowbit
}

// keys rounds new keys and values, before attention or the cache sees them.
func (l *lowbit) keys(p *Pass, s device.AttnShape, k, v tensor.Tensor) {
	if l == nil || l.Cache == 0 {
		return
	}
	for _, t := range []struct {
		tensor.Tensor
		head int
	}{{k, s.D}, {v, s.DV}} {
		x := readAll(p.Dev, t.Tensor)
		for at := 0; at < len(x); at += t.head {
			quantise(x[at:at+t.head], l.Cache, absmax(x[at:at+t.head]))
		}
		device.WriteFloats(p.Dev, t.Tensor, x)
	}
}
