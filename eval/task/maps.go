package task

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"antiphase/data"
	"antiphase/eval"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/tensor"
)

// The maps of one head on a needle prompt, for viewing.
func init() {
	register(45, eval.Task{
		Name: "maps", Version: 1, Shots: -1, Inside: true, Slow: true,
		Doc:      "attention maps of one head over a short needle prompt, to be looked at",
		Measures: []eval.Measure{{Name: "head_answer", Label: "attention of that head to the answer, %"}},
		Settings: []eval.Setting{
			{Key: "layer", Default: 0, Rule: eval.AtLeast(0),
				Doc: "counted from 1; 0: the one that looks most at the answer"},
			{Key: "head", Default: 0, Rule: eval.AtLeast(0),
				Doc: "counted from 1; 0: the one that looks most at the answer"},
			{Key: "bytes", Default: 320, Rule: eval.AtLeast(1), Doc: "length of the prompt"},
		},
		Prepare: prepareMaps,
	})
}

func prepareMaps(ctx context.Context, p *eval.Plan) (*eval.Job, error) {
	c := data.NewNeedle(rand.New(rand.NewPCG(p.Seed, 21)),
		data.NeedleOptions{Needles: 2, Depth: 0.5, Bytes: p.Int("bytes")})
	want := headChoice{layer: p.Int("layer") - 1, head: p.Int("head") - 1}
	j := eval.NewJob([]string{c.Prompt}, 1)
	j.Ask = func(ctx context.Context, lm eval.LM, _ []int) ([]eval.Answer, error) {
		x, err := mapsOf(ctx, lm.(*eval.Subject), c, want)
		if err != nil {
			return nil, err
		}
		a := eval.Answer{Values: map[string]float64{"head_answer": x.Share}}
		return []eval.Answer{a}, a.SetDetail(x)
	}
	j.Finish = func(r *eval.Result) error {
		r.Detail = r.Answers[0].Detail
		return nil
	}
	return j, nil
}

// MapUnits is the maximum number of rows of a shown map: more could not be distinguished on a page.
const MapUnits = 64

// MapExample is the maps of one head over one prompt: A, or A1, A2 and A1 − λA2.
//
// Rows and columns are tokens, or words if there are more than MapUnits tokens: then an entry is the attention summed
// over the key word and averaged over the tokens of the query word, so that row sums are preserved.
type MapExample struct {
	Layer  int      `json:"layer"` // counted from 1
	Head   int      `json:"head"`
	Share  float64  `json:"share"`  // share of the last row's magnitude on the answer, with its sign
	Lambda float64  `json:"lambda"` // of the last row; 0 without λ
	Units  []string `json:"units"`  // text of each row and column
	Words  bool     `json:"words"`  // units are words
	Answer [2]int   `json:"answer"` // range of units that hold the needle
	Query  int      `json:"query"`  // first unit of the question
	Maps   []Matrix `json:"maps"`   // the last is what the head applies to its values
}

// Matrix is a causal map: row i has entries for columns 0 to i.
type Matrix struct {
	Name string      `json:"name"`
	Rows [][]float64 `json:"rows"`
}

// mapsOf shows one head of a model on a needle prompt.
func mapsOf(ctx context.Context, s *eval.Subject, c data.Needle, choice headChoice) (*MapExample, error) {
	if cfg := s.Model.Config; choice.layer < -1 || choice.layer >= cfg.Layers || choice.head < -1 ||
		choice.head >= cfg.Heads {
		return nil, fmt.Errorf("maps of layer %d, head %d: there are %d layers of %d heads", choice.layer+1,
			choice.head+1, cfg.Layers, cfg.Heads)
	}
	ids := question(s, c)
	at := offsets(s, ids)
	parts, words := units(s, ids)
	if len(parts) > MapUnits {
		return nil, fmt.Errorf("maps of %d words: a page has room for %d, take a shorter prompt", len(parts), MapUnits)
	}
	x := &MapExample{Words: words}
	for _, u := range parts {
		x.Units = append(x.Units, unitTextOf(s, ids, u))
	}
	from, to := tokenSpan(at, c.Spans[0])
	query, _ := tokenSpan(at, c.QuerySpan)
	x.Answer = [2]int{unitOf(parts, from), unitOf(parts, to-1) + 1}
	x.Query = unitOf(parts, query)

	g, _, err := look(s, c)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	x.Share = math.Inf(-1)
	for l, heads := range g.Heads {
		for h := range heads {
			if share := heads[h].Signed.Answer; choice.allows(l, h) && share > x.Share {
				x.Layer, x.Head, x.Share = l+1, h+1, share
			}
		}
	}
	return x, s.Model.Inspect(&model.Batch{B: 1, T: len(ids), IDs: ids}, &mapReader{units: parts, out: x})
}

// units splits a prompt into the rows of a map: tokens, or words if there are too many. A word begins with its space.
func units(s *eval.Subject, ids []int32) (units [][2]int, words bool) {
	words = len(ids) > MapUnits
	space := false
	for i, id := range ids {
		b := s.Tokenizer.TokenBytes(id)
		blank := len(b) > 0 && strings.IndexByte(" \n\t", b[0]) >= 0
		if !words || i < 2 || blank && !space {
			units = append(units, [2]int{i, i})
		}
		units[len(units)-1][1] = i + 1
		space = blank && len(b) == 1
	}
	return units, words
}

// unitTextOf is the text of a unit's tokens.
func unitTextOf(s *eval.Subject, ids []int32, u [2]int) string {
	var b []byte
	for _, id := range ids[u[0]:u[1]] {
		if s.Tokenizer.Special(id) {
			b = append(b, s.Tokenizer.Token(id)...)
		} else {
			b = append(b, s.Tokenizer.TokenBytes(id)...)
		}
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// unitOf finds the unit that holds a token.
func unitOf(units [][2]int, token int) int {
	for i, u := range units {
		if token < u[1] {
			return i
		}
	}
	return len(units)
}

// headChoice is a layer and a head, from 0; −1: any.
type headChoice struct{ layer, head int }

// allows says whether a head may be chosen.
func (c headChoice) allows(layer, head int) bool {
	return (c.layer < 0 || c.layer == layer) && (c.head < 0 || c.head == head)
}

// mapReader reads the chosen head's maps.
type mapReader struct {
	units [][2]int
	out   *MapExample
}

// Attention implements layer.Probe.
func (p *mapReader) Attention(v layer.View) {
	if v.Layer != p.out.Layer-1 {
		return
	}
	T, h := v.Shape.T, p.out.Head-1
	r := v.RowReader(T)
	defer r.Free()
	if v.Maps == 1 {
		p.out.Maps = []Matrix{p.matrix("A", func(t int) []float64 { return r.Map(h, 0, 0, t, false) })}
		return
	}
	p.out.Lambda = r.Lambda(T-1, h)
	p.out.Maps = []Matrix{
		p.matrix("A1", func(t int) []float64 { return r.Map(h, 0, 0, t, false) }),
		p.matrix("A2", func(t int) []float64 { return r.Map(h, 1, 0, t, false) }),
		p.matrix("A1 − λA2", func(t int) []float64 { return r.Scores(h, 0, t) }),
	}
}

// Hidden implements layer.Probe.
func (p *mapReader) Hidden(int, tensor.Tensor) {}

// matrix sums rows over key units and averages them over query units, with five decimals, more than a colour can show.
func (p *mapReader) matrix(name string, row func(t int) []float64) Matrix {
	m := Matrix{Name: name}
	for i, q := range p.units {
		sum := make([]float64, i+1)
		for t := q[0]; t < q[1]; t++ {
			x := row(t)
			for j := range sum {
				for k := p.units[j][0]; k < p.units[j][1]; k++ {
					sum[j] += x[k]
				}
			}
		}
		for j := range sum {
			sum[j] = math.Round(1e5*sum[j]/float64(q[1]-q[0])) / 1e5
		}
		m.Rows = append(m.Rows, sum)
	}
	return m
}
