package eval

import (
	"context"
	"fmt"
	"math"
	"strings"

	"antiphase/data"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/tensor"
)

// MapUnits is the most rows a shown map has: more could not be told apart on a page.
const MapUnits = 64

// MapOptions choose what Maps shows. Both are counted from 1; 0 takes the layer and head that look most at the answer.
type MapOptions struct{ Layer, Head int }

// MapExample is the maps of one head over one prompt: A, or A1, A2 and A1 − λA2.
//
// Rows and columns are tokens, or words where there are more than MapUnits tokens: then an entry is the attention
// summed over the word looked at and averaged over the tokens of the word that looks, so that rows keep their sums.
type MapExample struct {
	Layer  int      `json:"layer"` // counted from 1
	Head   int      `json:"head"`
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

// Maps shows one head of a model at work on a needle prompt.
func Maps(ctx context.Context, s *Subject, c data.Needle, opt MapOptions) (MapExample, error) {
	if cfg := s.Model.Config; opt.Layer < 0 || opt.Layer > cfg.Layers || opt.Head < 0 || opt.Head > cfg.Heads {
		return MapExample{}, fmt.Errorf("eval: maps of layer %d, head %d: there are %d layers of %d heads", opt.Layer, opt.Head, cfg.Layers, cfg.Heads)
	}
	ids := s.question(c)
	offsets := s.offsets(ids)
	x := MapExample{Layer: opt.Layer, Head: opt.Head}
	units, words := s.units(ids)
	if len(units) > MapUnits {
		return x, fmt.Errorf("eval: maps of %d words: a page has room for %d, take a shorter prompt", len(units), MapUnits)
	}
	x.Words = words
	for _, u := range units {
		x.Units = append(x.Units, s.text(ids, u))
	}
	from, to := tokenSpan(offsets, c.Spans[0])
	query, _ := tokenSpan(offsets, c.QuerySpan)
	x.Answer = [2]int{unitOf(units, from), unitOf(units, to-1) + 1}
	x.Query = unitOf(units, query)

	batch := &model.Batch{B: 1, T: len(ids), IDs: ids}
	choice := &headChoice{want: opt, from: from, to: to, best: math.Inf(-1)}
	if err := s.Model.Inspect(batch, choice); err != nil {
		return x, err
	}
	if err := ctx.Err(); err != nil {
		return x, err
	}
	x.Layer, x.Head = choice.layer+1, choice.head+1
	return x, s.Model.Inspect(batch, &mapReader{units: units, out: &x})
}

// units splits a prompt into the rows of a map: tokens, or words when those are too many. A word begins with its space.
func (s *Subject) units(ids []int32) (units [][2]int, words bool) {
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

// text is what a unit's tokens stand for.
func (s *Subject) text(ids []int32, u [2]int) string {
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

// headChoice finds the head whose last row has the largest part of its magnitude on the answer. Dividing by the
// magnitude makes heads of different λ comparable.
type headChoice struct {
	want        MapOptions
	from, to    int
	best        float64
	layer, head int
}

// Attention implements layer.Probe.
func (p *headChoice) Attention(v layer.View) {
	T := v.Shape.T
	r := v.RowReader(T)
	defer r.Free()
	for h := range v.Shape.Heads {
		if p.want.Layer > 0 && v.Layer != p.want.Layer-1 || p.want.Head > 0 && h != p.want.Head-1 {
			continue
		}
		answer, all := 0.0, 0.0
		for t, x := range r.Scores(h, 0, T-1) {
			all += math.Abs(x)
			if t >= p.from && t < p.to {
				answer += x
			}
		}
		if share := answer / all; share > p.best {
			p.best, p.layer, p.head = share, v.Layer, h
		}
	}
}

// Hidden implements layer.Probe.
func (p *headChoice) Hidden(int, tensor.Tensor) {}

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

// matrix sums rows over key units and averages them over query units. Five decimals are more than a colour can show.
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
