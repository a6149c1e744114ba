package task

import (
	"context"
	"fmt"
	"math"

	"antiphase/device"
	"antiphase/eval"
	"antiphase/layer"
	"antiphase/tensor"
)

// The geometry of attention and of its outputs: questions that the paper leaves open.
func init() {
	var measures []eval.Measure
	for _, m := range [][2]string{{"map_gap", "spectral gap of maps"}, {"map_rank", "effective rank of maps"},
		{"hidden_gap", "spectral gap of representations"}, {"hidden_rank", "effective rank of representations"},
		{"collapse", "distance from collapse"}, {"sparsity", "sparsity of maps (Hoyer)"},
		{"near_zero", "entries near zero, %"}, {"negative", "negative mass, %"}} {
		measures = append(measures, eval.Measure{Name: m[0], Label: m[1]})
	}
	register(60, eval.Task{
		Name: "geometry", Version: 2, Shots: -1, Inside: true,
		Doc: "spectral gap and effective rank of attention maps and token representations, sparsity and " +
			"negative mass",
		Measures: measures,
		Settings: append(textSettings(128),
			eval.Setting{Key: "samples", Default: 4, Rule: eval.AtLeast(1), Doc: "sequences"}),
		Valid:   validGeometry,
		Prepare: prepareGeometry,
	})
}

// GeometryDetail is the table of the task geometry: a row per layer.
type GeometryDetail struct {
	Length int             `json:"length"` // tokens: the rank that maps and representations could have
	Layers []GeometryLayer `json:"layers"`
}

// GeometryLayer is one layer, mean over sequences (and heads).
type GeometryLayer struct {
	Maps []GeometryMap `json:"maps"` // A; or A1, A2 and A1 − λA2
	// Of the token representations after the layer, X [T,C].
	HiddenGap  float64 `json:"hidden_gap"`
	HiddenRank float64 `json:"hidden_rank"`
	Collapse   float64 `json:"collapse"` // ‖X − 1x̄ᵀ‖/‖X‖, x̄ the mean token: 0 where all tokens are the same
}

// GeometryMap is one kind of map. Gap and rank use its singular values, because the eigenvalues of a causal map are its
// diagonal and say nothing about its rank.
type GeometryMap struct {
	Name     string  `json:"name"`
	Gap      float64 `json:"gap"`
	Rank     float64 `json:"rank"`
	Sparsity float64 `json:"sparsity"`  // Hoyer's, of rows: (√n − ‖a‖₁/‖a‖₂)/(√n − 1), 0 uniform, 1 one entry
	NearZero float64 `json:"near_zero"` // share of entries below a hundredth of their row's largest magnitude
	Negative float64 `json:"negative"`  // share of magnitude that is below zero
}

// validGeometry rejects lengths whose spectra take too long. A length beyond the context is shortened to it, because
// the default is one.
func validGeometry(p *eval.Plan) error {
	const most = 1024
	if n := min(sequenceLength(p), p.Context); n > most {
		return eval.BadSetting("length is %d; spectra of maps that large take too long, %d is the most", n, most)
	}
	return nil
}

func prepareGeometry(ctx context.Context, p *eval.Plan) (*eval.Job, error) {
	if n := p.Int("length"); n == 0 || n > p.Context {
		p.Values["length"] = p.Context
	}
	texts, length, source, err := sequences(ctx, p, p.Limited(p.Int("samples")))
	if err != nil {
		return nil, err
	}
	j := eval.NewJob(texts, 1)
	j.Config["source"] = source
	j.Ask = func(ctx context.Context, lm eval.LM, which []int) ([]eval.Answer, error) {
		s := lm.(*eval.Subject)
		out := make([]eval.Answer, len(which))
		for i, w := range which {
			b := read(s, texts[w], length)
			if b.T < 2 {
				return nil, fmt.Errorf("text %d has %d tokens; maps need two", w, b.T)
			}
			g := &geometryProbe{ctx: ctx, dev: s.Model.Device()}
			if err := s.Model.Inspect(b, g); err != nil {
				return nil, err
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if out[i], err = g.answer(); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	j.Finish = func(r *eval.Result) error { return finishGeometry(r, length) }
	return j, nil
}

// geometryProbe measures one sequence.
type geometryProbe struct {
	ctx    context.Context
	dev    device.Device
	layers []GeometryLayer
}

// Attention implements layer.Probe: maps are T×T, and T is small here.
func (p *geometryProbe) Attention(v layer.View) {
	r := v.TileReader()
	defer r.Free()
	kinds := []mapKind{{"A", func(h int, f func(int, []float64)) { r.Map(h, 0, 0, false, f) }}}
	if v.Maps == 2 {
		kinds[0].name = "A1"
		kinds = append(kinds,
			mapKind{"A2", func(h int, f func(int, []float64)) { r.Map(h, 1, 0, false, f) }},
			mapKind{appliedMap, func(h int, f func(int, []float64)) {
				r.Scores(h, 0, func(t int, row []float64, _ float64) { f(t, row) })
			}})
	}
	var l GeometryLayer
	for _, k := range kinds {
		mean := GeometryMap{Name: k.name}
		for h := range v.Shape.Heads {
			if p.ctx.Err() != nil {
				break
			}
			rows := make([][]float64, 0, v.Shape.T)
			k.read(h, func(t int, row []float64) {
				full := make([]float64, v.Shape.T)
				copy(full, row)
				rows = append(rows, full)
			})
			mean.add(mapGeometry(rows), 1/float64(v.Shape.Heads))
		}
		l.Maps = append(l.Maps, mean)
	}
	p.layers = append(p.layers, l)
}

// mapKind is a map and how its rows are read.
type mapKind struct {
	name string
	read func(head int, f func(t int, row []float64))
}

const appliedMap = "A1 − λA2"

// Hidden implements layer.Probe.
func (p *geometryProbe) Hidden(l int, x tensor.Tensor) {
	all := make([]float64, x.Len())
	device.ReadFloats(p.dev, all, x)
	rows := make([][]float64, x.Rows)
	for t := range rows {
		rows[t] = all[t*x.Cols : (t+1)*x.Cols]
	}
	g := &p.layers[l]
	if p.ctx.Err() == nil {
		sigma := spectrum(rows)
		g.HiddenGap, g.HiddenRank, g.Collapse = spectralGap(sigma), effectiveRank(sigma), collapse(rows)
	}
}

// collapse measures how far rows are from being equal, relative to their size.
func collapse(rows [][]float64) float64 {
	mean, all, rest := make([]float64, len(rows[0])), 0.0, 0.0
	for _, r := range rows {
		for c, x := range r {
			mean[c] += x / float64(len(rows))
		}
	}
	for _, r := range rows {
		for c, x := range r {
			all += x * x
			rest += (x - mean[c]) * (x - mean[c])
		}
	}
	if all == 0 {
		return 0
	}
	return math.Sqrt(rest / all)
}

// mapGeometry measures one causal map, its masked entries being 0. Row 0 has one entry and no sparsity.
func mapGeometry(rows [][]float64) GeometryMap {
	sigma := spectrum(rows)
	g := GeometryMap{Gap: spectralGap(sigma), Rank: effectiveRank(sigma)}
	magnitude, below, entries, small := 0.0, 0.0, 0, 0
	for t, full := range rows {
		row := full[:t+1]
		one, two, top := 0.0, 0.0, 0.0
		for _, x := range row {
			one += math.Abs(x)
			two += x * x
			top = max(top, math.Abs(x))
			below += max(-x, 0)
		}
		magnitude += one
		for _, x := range row {
			if math.Abs(x) < top/100 {
				small++
			}
		}
		entries += len(row)
		if n := math.Sqrt(float64(len(row))); n > 1 && two > 0 {
			g.Sparsity += (n - one/math.Sqrt(two)) / (n - 1) / float64(len(rows)-1)
		}
	}
	g.NearZero = float64(small) / float64(entries)
	if magnitude > 0 {
		g.Negative = below / magnitude
	}
	return g
}

func (g *GeometryMap) add(o GeometryMap, w float64) {
	g.Gap += w * o.Gap
	g.Rank += w * o.Rank
	g.Sparsity += w * o.Sparsity
	g.NearZero += w * o.NearZero
	g.Negative += w * o.Negative
}

// answer is the means over layers under the task's measures (for maps, the applied ones), and every layer's numbers.
func (p *geometryProbe) answer() (eval.Answer, error) {
	n := float64(len(p.layers))
	var sum GeometryLayer
	var applied GeometryMap
	for i := range p.layers {
		g := &p.layers[i]
		sum.HiddenGap += g.HiddenGap / n
		sum.HiddenRank += g.HiddenRank / n
		sum.Collapse += g.Collapse / n
		applied.add(g.Applied(), 1/n)
	}
	a := eval.Answer{Values: map[string]float64{
		"hidden_gap": sum.HiddenGap, "hidden_rank": sum.HiddenRank, "collapse": sum.Collapse,
		"map_gap": applied.Gap, "map_rank": applied.Rank, "sparsity": applied.Sparsity, "near_zero": applied.NearZero,
		"negative": applied.Negative,
	}}
	err := a.SetDetail(p.layers)
	return a, err
}

// Applied is the map that multiplies the values.
func (l *GeometryLayer) Applied() GeometryMap {
	if len(l.Maps) == 0 {
		return GeometryMap{}
	}
	return l.Maps[len(l.Maps)-1]
}

func finishGeometry(r *eval.Result, length int) error {
	list, err := eval.Details[[]GeometryLayer](r.Answers)
	if err != nil {
		return err
	}
	d := GeometryDetail{Length: length, Layers: list[0]}
	w := 1 / float64(len(list))
	for l := range d.Layers {
		mean := GeometryLayer{}
		for _, layers := range list {
			g := layers[l]
			mean.HiddenGap += w * g.HiddenGap
			mean.HiddenRank += w * g.HiddenRank
			mean.Collapse += w * g.Collapse
			for k, m := range g.Maps {
				if k == len(mean.Maps) {
					mean.Maps = append(mean.Maps, GeometryMap{Name: m.Name})
				}
				mean.Maps[k].add(m, w)
			}
		}
		d.Layers[l] = mean
	}
	return r.SetDetail(d)
}
