package task

import (
	"math"

	"antiphase/data"
	"antiphase/eval"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/tensor"
)

// Segments is the distribution of a query's attention: the first token, the context before the needle, the needle (the
// answer), the context after it, and the question itself.
type Segments struct {
	BOS    float64 `json:"bos"`
	Before float64 `json:"before"`
	Answer float64 `json:"answer"`
	After  float64 `json:"after"`
	Query  float64 `json:"query"`
}

// Noise is the context that is not the answer.
func (s Segments) Noise() float64 { return s.Before + s.After }

// List is the five in their order in a prompt.
func (s Segments) List() []float64 { return []float64{s.BOS, s.Before, s.Answer, s.After, s.Query} }

// Total is their sum.
func (s Segments) Total() float64 { return s.BOS + s.Before + s.Answer + s.After + s.Query }

func (s *Segments) add(o Segments, w float64) {
	s.BOS += w * o.BOS
	s.Before += w * o.Before
	s.Answer += w * o.Answer
	s.After += w * o.After
	s.Query += w * o.Query
}

// over divides by a total; if it is zero there are no shares.
func (s Segments) over(total float64) (out Segments) {
	if total != 0 {
		out.add(s, 1/total)
	}
	return out
}

// segmentProbe sums the last row of every map by segment: one row of T scores at a time, for any T.
type segmentProbe struct {
	bounds [4]int // ends of: first token, context before, needle, context after
	heads  [][]HeadGaze
	maps   int
}

// look runs a prompt up to the token that must produce the answer.
func look(s *eval.Subject, c data.Needle) (Gaze, int, error) {
	ids := question(s, c)
	at := offsets(s, ids)
	from, to := tokenSpan(at, c.Spans[0])
	query, _ := tokenSpan(at, c.QuerySpan)
	p := &segmentProbe{bounds: [4]int{1, from, to, query}}
	if err := s.Model.Inspect(&model.Batch{B: 1, T: len(ids), IDs: ids}, p); err != nil {
		return Gaze{}, 0, err
	}
	return Gaze{Heads: p.heads, Lambda: s.Model.Lambdas(nil)}, p.maps, nil
}

// question returns the ids up to the token that must produce the answer's first digit. Prompts end before the space in
// front of it: if that space is a separate token, as with bytes, it is the query.
func question(s *eval.Subject, c data.Needle) []int32 {
	if len(c.Answers) == 0 {
		return s.Encode(c.Prompt)
	}
	whole := s.Encode(c.Prompt + " " + c.Answers[0])
	digit := len(c.Prompt) + 1
	first, _ := tokenSpan(offsets(s, whole), [2]int{digit, digit + 1})
	return whole[:first]
}

// Attention implements layer.Probe.
func (p *segmentProbe) Attention(v layer.View) {
	T := v.Shape.T
	last := v.RowReader(T)
	defer last.Free()
	p.maps = v.Maps
	norms := v.ValueNorms(0)
	heads := make([]HeadGaze, v.Shape.Heads)
	for h := range heads {
		row := last.Scores(h, 0, T-1)
		magnitude := p.sum(row, math.Abs)
		total := magnitude.Total()
		heads[h].Magnitude, heads[h].Signed = magnitude.over(total), p.sum(row, keepSign).over(total)
		heads[h].Value = p.weighted(row, norms[v.Group(h, 0)])
		heads[h].A1, heads[h].ValueA1 = heads[h].Magnitude, heads[h].Value
		if v.Maps == 2 {
			a1 := last.Map(h, 0, 0, T-1, false)
			heads[h].A1, heads[h].ValueA1 = p.sum(a1, keepSign), p.weighted(a1, norms[v.Group(h, 0)])
			a2 := last.Map(h, 1, 0, T-1, false)
			heads[h].A2, heads[h].ValueA2 = p.sum(a2, keepSign), p.weighted(a2, norms[v.Group(h, 1)])
		}
	}
	p.heads = append(p.heads, heads)
}

// Hidden implements layer.Probe.
func (p *segmentProbe) Hidden(int, tensor.Tensor) {}

func keepSign(x float64) float64 { return x }

func (p *segmentProbe) sum(row []float64, of func(float64) float64) Segments {
	var s Segments
	to := []*float64{&s.BOS, &s.Before, &s.Answer, &s.After, &s.Query}
	k := 0
	for t, x := range row {
		for k < 4 && t >= p.bounds[k] {
			k++
		}
		*to[k] += of(x)
	}
	return s
}

// weighted are the shares of ‖a·v‖: how much of the output's magnitude comes from each segment. A weight on a position
// with a small value has little effect.
func (p *segmentProbe) weighted(row, norms []float64) Segments {
	x := make([]float64, len(row))
	for t := range row {
		x[t] = math.Abs(row[t]) * norms[t]
	}
	s := p.sum(x, keepSign)
	return s.over(s.Total())
}

// offsets returns each token's first byte in the text, and the end; the token before the text has no bytes.
func offsets(s *eval.Subject, ids []int32) []int {
	out := make([]int, len(ids)+1)
	at := 0
	for i, id := range ids {
		out[i] = at
		if _, ok := s.FirstToken(); i > 0 || !ok {
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
