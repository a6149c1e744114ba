package eval

import (
	"context"
	"math"

	"antiphase/data"
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
// The paper's formula is not public; it averages over all heads and layers. Our choices: the query is the token that
// must produce the answer's first digit; a differential head's scores are A1 − λA2, summed with their sign (Signed) or
// by magnitude (Absolute); the segment sums are averaged over samples, layers and heads and then divided by their
// total. For an ordinary head both are the same. Signed shares may lie outside 0 to 1.
type AttentionResult struct {
	Depths   []float64    `json:"depths"`
	Signed   []Segments   `json:"signed"`
	Absolute []Segments   `json:"absolute"`
	ByLayer  [][]Segments `json:"by_layer"`          // [depth][layer], absolute
	ByHead   [][]Segments `json:"by_head,omitempty"` // [layer][head], absolute, over all depths

	// Over all depths. The errors are those of a ratio of sums over samples.
	Answer       Mean `json:"answer"` // absolute
	Noise        Mean `json:"noise"`
	SignedAnswer Mean `json:"signed_answer"`
	SignedNoise  Mean `json:"signed_noise"`
}

// Attention measures where a model looks for the answer of a needle prompt.
func Attention(ctx context.Context, s *Subject, opt NeedleOptions) (AttentionResult, error) {
	sum := newAttentionSum(opt.Depths)
	for i, depth := range opt.Depths {
		for _, c := range needles(opt, depth, uint64(i)) {
			if err := ctx.Err(); err != nil {
				return AttentionResult{}, err
			}
			look, err := s.look(c)
			if err != nil {
				return AttentionResult{}, err
			}
			sum.add(i, look)
		}
	}
	return sum.result(), nil
}

// gaze is where one token looks: segment sums by layer and head.
type gaze struct{ signed, absolute [][]Segments }

// total sums over layers and heads.
func total(list [][]Segments) (s Segments) {
	for _, heads := range list {
		for _, h := range heads {
			s.add(h, 1)
		}
	}
	return s
}

// attentionSum gathers gazes into a result.
type attentionSum struct {
	depths                                   []float64
	signed, absolute                         []Segments
	layers                                   [][]Segments
	heads                                    [][]Segments
	answer, noise, signedAnswer, signedNoise ratio
}

func newAttentionSum(depths []float64) *attentionSum {
	n := len(depths)
	return &attentionSum{depths: depths, signed: make([]Segments, n), absolute: make([]Segments, n), layers: make([][]Segments, n)}
}

func (t *attentionSum) add(depth int, g gaze) {
	signed, absolute := total(g.signed), total(g.absolute)
	t.signed[depth].add(signed, 1)
	t.absolute[depth].add(absolute, 1)
	t.answer.add(absolute.Answer, absolute.total())
	t.noise.add(absolute.Noise(), absolute.total())
	t.signedAnswer.add(signed.Answer, signed.total())
	t.signedNoise.add(signed.Noise(), signed.total())
	for l, heads := range g.absolute {
		if l == len(t.layers[depth]) {
			t.layers[depth] = append(t.layers[depth], Segments{})
		}
		t.layers[depth][l].add(total(g.absolute[l:l+1]), 1)
		if l == len(t.heads) {
			t.heads = append(t.heads, make([]Segments, len(heads)))
		}
		for h, x := range heads {
			t.heads[l][h].add(x, 1)
		}
	}
}

func (t *attentionSum) result() AttentionResult {
	r := AttentionResult{Depths: t.depths, Answer: t.answer.mean(), Noise: t.noise.mean(),
		SignedAnswer: t.signedAnswer.mean(), SignedNoise: t.signedNoise.mean()}
	for d := range t.depths {
		r.Signed, r.Absolute = append(r.Signed, t.signed[d].normalised()), append(r.Absolute, t.absolute[d].normalised())
		r.ByLayer = append(r.ByLayer, normalised(t.layers[d]))
	}
	for _, heads := range t.heads {
		r.ByHead = append(r.ByHead, normalised(heads))
	}
	return r
}

func normalised(list []Segments) []Segments {
	out := make([]Segments, len(list))
	for i, s := range list {
		out[i] = s.normalised()
	}
	return out
}

// segmentProbe sums the last row of every map by segment: one row of T scores at a time, whatever T is.
type segmentProbe struct {
	bounds [4]int // ends of: first token, context before, needle, context behind
	gaze
}

// look runs a prompt up to the token that must produce the answer.
func (s *Subject) look(c data.Needle) (gaze, error) {
	ids := s.question(c)
	offsets := s.offsets(ids)
	from, to := tokenSpan(offsets, c.Spans[0])
	query, _ := tokenSpan(offsets, c.QuerySpan)
	p := &segmentProbe{bounds: [4]int{1, from, to, query}}
	err := s.Model.Inspect(&model.Batch{B: 1, T: len(ids), IDs: ids}, p)
	return p.gaze, err
}

// question gives the ids up to the token that must produce the answer's first digit. Prompts end before the space in
// front of it: where that space is a token of its own, bytes for example, it is the space that must look.
func (s *Subject) question(c data.Needle) []int32 {
	if len(c.Answers) == 0 {
		return s.encode(c.Prompt)
	}
	whole := s.encode(c.Prompt + " " + c.Answers[0])
	digit := len(c.Prompt) + 1
	first, _ := tokenSpan(s.offsets(whole), [2]int{digit, digit + 1})
	return whole[:first]
}

// Attention implements layer.Probe.
func (p *segmentProbe) Attention(v layer.View) {
	T := v.Shape.T
	last := v.RowReader(T)
	defer last.Free()
	signed, absolute := make([]Segments, v.Shape.Heads), make([]Segments, v.Shape.Heads)
	for h := range signed {
		row := last.Scores(h, 0, T-1)
		signed[h], absolute[h] = p.sum(row, false), p.sum(row, true)
	}
	p.signed, p.absolute = append(p.signed, signed), append(p.absolute, absolute)
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
