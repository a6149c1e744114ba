package eval

import (
	"context"
	"math"

	"antiphase/data"
	"antiphase/device"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/tensor"
)

// Segments is where a query's attention goes: the first token, the context before the needle, the needle (the answer),
// the context behind it, and the question itself. The five sum to 1.
type Segments struct {
	BOS    float64 `json:"bos"`
	Before float64 `json:"before"`
	Answer float64 `json:"answer"`
	After  float64 `json:"after"`
	Query  float64 `json:"query"`
}

// Noise is the context that is not the answer.
func (s Segments) Noise() float64 { return s.Before + s.After }

func (s *Segments) add(o Segments, w float64) {
	s.BOS += w * o.BOS
	s.Before += w * o.Before
	s.Answer += w * o.Answer
	s.After += w * o.After
	s.Query += w * o.Query
}

func (s Segments) total() float64 { return s.BOS + s.Before + s.Answer + s.After + s.Query }

func (s Segments) normalised() Segments {
	var out Segments
	if t := s.total(); t != 0 {
		out.add(s, 1/t)
	}
	return out
}

// AttentionResult is the paper's Table 3 and Figure 1: attention to the answer and attention noise by depth.
//
// The paper's formula is not public; it averages over all heads and layers. Our choices: the query is the prompt's last
// token, the one that must produce the answer; a differential head's scores are A1 − λA2, summed with their sign
// (Signed) or by magnitude (Absolute); the segment sums are averaged over samples, layers and heads and then divided
// by their total. For an ordinary head both are the same.
type AttentionResult struct {
	Depths   []float64    `json:"depths"`
	Signed   []Segments   `json:"signed"`
	Absolute []Segments   `json:"absolute"`
	ByLayer  [][]Segments `json:"by_layer"` // [depth][layer], absolute
}

// Attention measures where the last token of a needle prompt looks.
func Attention(ctx context.Context, s *Subject, opt NeedleOptions) (AttentionResult, error) {
	r := AttentionResult{Depths: opt.Depths}
	for i, depth := range opt.Depths {
		p := &segmentProbe{dev: s.Model.Device(), layers: make([]Segments, s.Model.Config.Layers)}
		for _, c := range needles(opt, depth, uint64(i)) {
			if err := ctx.Err(); err != nil {
				return r, err
			}
			if err := p.look(s, c); err != nil {
				return r, err
			}
		}
		r.Signed = append(r.Signed, p.signed.normalised())
		r.Absolute = append(r.Absolute, p.absolute.normalised())
		layers := make([]Segments, len(p.layers))
		for l, x := range p.layers {
			layers[l] = x.normalised()
		}
		r.ByLayer = append(r.ByLayer, layers)
	}
	return r, nil
}

// segmentProbe sums the last row of every map by segment.
type segmentProbe struct {
	dev              device.Device
	bounds           [4]int // first token, needle from, needle to, question from
	signed, absolute Segments
	layers           []Segments
}

func (p *segmentProbe) look(s *Subject, c data.Needle) error {
	ids := s.encode(c.Prompt)
	offsets := s.offsets(ids)
	from, to := tokenSpan(offsets, c.Spans[0])
	query, _ := tokenSpan(offsets, c.QuerySpan)
	p.bounds = [4]int{1, from, to, query}
	return s.Model.Inspect(&model.Batch{B: 1, T: len(ids), IDs: ids}, p)
}

// Attention implements layer.Probe.
func (p *segmentProbe) Attention(v layer.View) {
	T := v.Shape.T
	last := v.RowReader(T)
	defer last.Free()
	for h := range v.Shape.Heads {
		row := last.Scores(h, 0, T-1)
		signed, absolute := p.sum(row, false), p.sum(row, true)
		p.signed.add(signed, 1)
		p.absolute.add(absolute, 1)
		p.layers[v.Layer].add(absolute, 1)
	}
}

// Hidden implements layer.Probe.
func (p *segmentProbe) Hidden(int, tensor.Tensor) {}

func (p *segmentProbe) sum(row []float64, magnitude bool) Segments {
	var s Segments
	to := []*float64{&s.BOS, &s.Before, &s.Answer, &s.After, &s.Query}
	k := 0
	for t, x := range row {
		for k < 4 && t >= p.bounds[k] {
			k++
		}
		if magnitude {
			x = math.Abs(x)
		}
		*to[k] += x
	}
	return s
}

// offsets gives each token's first byte in the text, and the end; the token before the text has none of it.
func (s *Subject) offsets(ids []int32) []int {
	out := make([]int, len(ids)+1)
	at := 0
	for i, id := range ids {
		out[i] = at
		if _, ok := s.first(); i > 0 || !ok {
			at += len(s.Tokenizer.TokenBytes(id))
		}
	}
	out[len(ids)] = at
	return out
}

// tokenSpan is the range of tokens that touch a span of bytes.
func tokenSpan(offsets []int, span [2]int) (from, to int) {
	n := len(offsets) - 1
	for from < n && offsets[from+1] <= span[0] {
		from++
	}
	for to = from; to < n && offsets[to] < span[1]; {
		to++
	}
	return from, to
}
