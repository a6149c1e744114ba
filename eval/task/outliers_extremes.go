package task

import (
	"math"
	"slices"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/tensor"
)

// OutlierResult is the largest magnitudes of attention logits (before the softmax, scaled, both maps pooled) and of
// hidden states (each block's output, after both residual adds), as in the paper's Table 5.
type OutlierResult struct {
	Tokens int     `json:"tokens"`
	Logits Extreme `json:"attention_logits"`
	Hidden Extreme `json:"hidden_states"`
}

// Extreme are the k-th largest values (0 if there were fewer) and the median. The median comes from a histogram and is
// accurate to 1 %.
type Extreme struct {
	Top1   float64 `json:"top1"`
	Top2   float64 `json:"top2"`
	Top3   float64 `json:"top3"`
	Top10  float64 `json:"top10"`
	Top100 float64 `json:"top100"`
	Median float64 `json:"median"`
}

type outlierProbe struct {
	dev            device.Device
	logits, hidden extremes
	parts          []*extremes // of logits, by goroutine
	buf            []float32
}

// Attention implements layer.Probe.
func (p *outlierProbe) Attention(v layer.View) {
	r := v.TileReader()
	defer r.Free()
	for len(p.parts) < r.Workers() {
		p.parts = append(p.parts, &extremes{})
	}
	for seq := range v.Shape.B {
		for h := range v.Shape.Heads {
			for m := range v.Maps {
				r.Each(h, m, seq, true, func(worker, _ int, row []float64) {
					for _, x := range row {
						p.parts[worker].add(math.Abs(x))
					}
				})
			}
		}
	}
	for _, e := range p.parts {
		p.logits.absorb(e)
	}
}

// Hidden implements layer.Probe.
func (p *outlierProbe) Hidden(_ int, x tensor.Tensor) {
	p.buf = slices.Grow(p.buf[:0], x.Len())[:x.Len()]
	device.ReadFloats(p.dev, p.buf, x)
	for _, v := range p.buf {
		p.hidden.add(math.Abs(float64(v)))
	}
}

// extremes streams magnitudes: the hundred largest in a sorted list, all in a histogram over powers of two.
type extremes struct {
	top  []float64 // ascending
	bins [bins]int
	n    int
}

const (
	keepTop      = 100
	perOct       = 64 // bins per factor of two: 0.8 to 1.6 % wide
	octaves      = 128
	bins         = octaves * perOct
	oneBin       = bins / 2             // bin of 1
	mantissaRest = 52 - 6               // bits of a number after those that determine its bin
	firstBin     = 1023*perOct - oneBin // the number's own bin index of the first bin
)

func (e *extremes) add(x float64) {
	e.n++
	e.bins[binOf(x)]++
	if len(e.top) == keepTop && x <= e.top[0] {
		return
	}
	at, _ := slices.BinarySearch(e.top, x)
	e.top = slices.Insert(e.top, at, x)
	if len(e.top) > keepTop {
		e.top = e.top[1:]
	}
}

// magnitude is extremes as stored in an answer: the largest, and the non-empty bins.
type magnitude struct {
	Top  []float64 `json:"top"`
	Bins []int     `json:"bins"` // pairs of index and count
}

// kept returns what has been seen.
func (e *extremes) kept() magnitude {
	m := magnitude{Top: e.top}
	for i, n := range e.bins {
		if n > 0 {
			m.Bins = append(m.Bins, i, n)
		}
	}
	return m
}

// merge adds another's values.
func (e *extremes) merge(o magnitude) {
	for i := 0; i+1 < len(o.Bins); i += 2 {
		if k := o.Bins[i]; k >= 0 && k < bins {
			e.bins[k] += o.Bins[i+1]
			e.n += o.Bins[i+1]
		}
	}
	e.top = append(e.top, o.Top...)
	slices.Sort(e.top)
	e.top = e.top[max(0, len(e.top)-keepTop):]
}

// absorb adds another's values, and empties it.
func (e *extremes) absorb(o *extremes) {
	for i, n := range o.bins {
		e.bins[i] += n
	}
	e.n += o.n
	e.top = append(e.top, o.top...)
	slices.Sort(e.top)
	e.top = e.top[max(0, len(e.top)-keepTop):]
	*o = extremes{top: o.top[:0]}
}

// binOf is the bin of a magnitude: the exponent and the first six bits of the mantissa, taken from the bits of the
// number. It is called for every logit, so it must not compute a logarithm.
func binOf(x float64) int {
	return min(max(int(math.Float64bits(x)>>mantissaRest)-firstBin, 0), bins-1)
}

func (e *extremes) result() Extreme {
	kth := func(k int) float64 {
		if len(e.top) < k {
			return 0
		}
		return e.top[len(e.top)-k]
	}
	return Extreme{kth(1), kth(2), kth(3), kth(10), kth(100), e.median()}
}

func (e *extremes) median() float64 {
	seen := 0
	for i, n := range e.bins {
		if seen += n; 2*seen > e.n {
			return math.Float64frombits(uint64(i+firstBin)<<mantissaRest + 1<<(mantissaRest-1)) // its middle
		}
	}
	return 0
}
