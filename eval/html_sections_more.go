package eval

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// tasksOf are the names of the first model's tasks of a group.
func tasksOf(e *Evaluation, group string) []string {
	var out []string
	if len(e.Models) > 0 {
		for _, r := range e.Models[0].Results {
			if r.Group == group {
				out = append(out, r.Task)
			}
		}
	}
	return out
}

// iclSection is accuracy over growing shots, with the paper's stable means for reference.
func iclSection(e *Evaluation) (section, error) {
	s := section{Title: "Many-shot learning", Lead: "Accuracy of classification as the examples before the question grow. Dashed: where the paper's models level off, at 64K tokens."}
	for _, task := range tasksOf(e, "icl") {
		var list []series
		for i := range e.Models {
			d, ok, err := detailOf[ICLDetail](&e.Models[i], task)
			if err != nil {
				return s, err
			}
			if !ok || len(d.Shots) == 0 {
				continue
			}
			x := series{name: e.Models[i].Name, class: sideClass(i), dots: true, format: "%.2f"}
			for k, n := range d.Shots[:min(len(d.Shots), len(d.Acc))] {
				x.line = append(x.line, [2]float64{float64(max(n, 1)), d.Acc[k].Value})
			}
			list = append(list, x)
		}
		if list == nil {
			continue
		}
		x, _ := around(list)
		x.log = true
		set := strings.TrimPrefix(task, "icl_")
		for _, p := range paperICL {
			if p.set == set {
				list = append(list,
					series{name: "T paper", class: "quiet", dashed: true, format: "%.2f", line: [][2]float64{{x.lo, p.base}, {x.hi, p.base}}},
					series{name: "DIFF paper", class: "quiet", dashed: true, format: "%.2f", line: [][2]float64{{x.lo, p.diff}, {x.hi, p.diff}}})
			}
		}
		s.Figures = append(s.Figures, lineFigure(task, set, "", "examples", "accuracy", x, scale{lo: 0, hi: 1}, list))
	}
	return s, nil
}

// orderSection is box plots of the accuracy over orders of the same examples.
func orderSection(e *Evaluation) (section, error) {
	s := section{Title: "Robustness to the order of examples", Lead: "Accuracy over orders of the same examples: quartiles, median, worst and best."}
	for _, task := range tasksOf(e, "icl_order") {
		var boxes []box
		rows := [][]string{{"model", "order", "seed", "accuracy"}}
		for i := range e.Models {
			d, ok, err := detailOf[OrderDetail](&e.Models[i], task)
			if err != nil {
				return s, err
			}
			if !ok {
				continue
			}
			for _, kind := range slices.Sorted(maps.Keys(d.Acc)) {
				boxes = append(boxes, box{e.Models[i].Name + ", " + kind, sideClass(i), d.Acc[kind]})
				for seed, x := range d.Acc[kind] {
					rows = append(rows, []string{e.Models[i].Name, kind, fmt.Sprint(seed), value(x)})
				}
			}
		}
		if boxes == nil {
			continue
		}
		set := strings.TrimPrefix(task, "icl_order_")
		note := ""
		for _, p := range paperICL {
			if p.set == set {
				note = fmt.Sprintf("spread of the paper's models over ten random orders, in points: Transformer %.0f, DIFF %.0f", 100*p.baseSpread, 100*p.diffSpread)
			}
		}
		s.Figures = append(s.Figures, figure{ID: task, Title: set, Note: note, SVG: boxChart("accuracy over orders, "+set, boxes), rows: rows})
	}
	return s, nil
}

// outlierSection is bars of the largest magnitudes.
func outlierSection(e *Evaluation) (section, error) {
	s := section{Title: "Largest activations", Lead: "Magnitudes by rank on a logarithmic scale: attention logits before the softmax, and each block's output."}
	kinds := []struct {
		id, title string
		of        func(OutlierResult) Extreme
	}{
		{"outliers-logits", "Attention logits", func(r OutlierResult) Extreme { return r.Logits }},
		{"outliers-hidden", "Hidden states", func(r OutlierResult) Extreme { return r.Hidden }},
	}
	for _, k := range kinds {
		var groups []barGroup
		for i := range e.Models {
			d, ok, err := detailOf[OutlierResult](&e.Models[i], "outliers")
			if err != nil {
				return s, err
			}
			if ok {
				groups = append(groups, barGroup{e.Models[i].Name, sideClass(i), k.of(d)})
			}
		}
		if groups == nil {
			continue
		}
		theirs := []barGroup{{paperBase, "s0", k.of(paperOutliers.base)}, {paperDiff, "s1", k.of(paperOutliers.diff)}}
		s.Figures = append(s.Figures, outlierFigure(k.id, k.title, groups), outlierFigure(k.id+"-paper", k.title+", the paper", theirs))
	}
	return s, nil
}

// lowbitSection is a task's score by bits.
func lowbitSection(e *Evaluation) (section, error) {
	s := section{Title: "Few bits"}
	for _, of := range []struct{ key, title string }{{"logits", "Attention logits"}, {"cache", "Keys and values"}} {
		var list []series
		for i := range e.Models {
			d, ok, err := detailOf[LowbitDetail](&e.Models[i], "lowbit")
			if err != nil {
				return s, err
			}
			if !ok {
				continue
			}
			s.Lead = fmt.Sprintf("%s of %s with numbers of few bits; 16 stands for exact. Logits share a scale per %s.", d.Metric, d.Task, d.Per)
			x := series{name: e.Models[i].Name, class: sideClass(i), dots: true, format: "%.3f", line: [][2]float64{{16, d.Exact.Value}}}
			for _, r := range d.Rows {
				if r.Of == of.key {
					x.line = append(x.line, [2]float64{float64(r.Bits), r.Score.Value})
				}
			}
			if len(x.line) > 1 {
				slices.SortFunc(x.line, func(a, b [2]float64) int { return int(a[0] - b[0]) })
				list = append(list, x)
			}
		}
		if list == nil {
			continue
		}
		x, y := around(list)
		s.Figures = append(s.Figures, lineFigure("lowbit-"+of.key, of.title, "", "bits", "score", x, y, list))
	}
	if s.Figures != nil {
		base, diff := series{name: baseName, class: "s0", dots: true, format: "%.3f"}, series{name: diffName, class: "s1", dots: true, format: "%.3f"}
		for i := len(paperLowbit.bits) - 1; i >= 0; i-- {
			base.line = append(base.line, [2]float64{float64(paperLowbit.bits[i]), paperLowbit.base[i]})
			diff.line = append(diff.line, [2]float64{float64(paperLowbit.bits[i]), paperLowbit.diff[i]})
		}
		x, y := around([]series{base, diff})
		s.Figures = append(s.Figures, lineFigure("lowbit-paper", "Attention logits, the paper", "zero-shot HellaSwag", "bits", "accuracy", x, y, []series{base, diff}))
	}
	return s, nil
}

// geometrySection is spectra by layer.
func geometrySection(e *Evaluation) (section, error) {
	s := section{Title: "Geometry", Lead: "Of the map that is applied to the values, and of the token representations behind each layer. Rank is the exponential of the entropy of singular values; gap is 1 − σ2/σ1."}
	pick := []struct {
		id, title string
		of        func(GeometryLayer) float64
	}{
		{"geometry-map-rank", "Effective rank of maps", func(l GeometryLayer) float64 { return l.applied().Rank }},
		{"geometry-map-gap", "Spectral gap of maps", func(l GeometryLayer) float64 { return l.applied().Gap }},
		{"geometry-hidden-rank", "Effective rank of representations", func(l GeometryLayer) float64 { return l.HiddenRank }},
		{"geometry-hidden-gap", "Spectral gap of representations", func(l GeometryLayer) float64 { return l.HiddenGap }},
		{"geometry-sparsity", "Sparsity of maps (Hoyer)", func(l GeometryLayer) float64 { return l.applied().Sparsity }},
		{"geometry-negative", "Share of negative mass", func(l GeometryLayer) float64 { return l.applied().Negative }},
	}
	for _, k := range pick {
		var list []series
		for i := range e.Models {
			d, ok, err := detailOf[GeometryDetail](&e.Models[i], "geometry")
			if err != nil {
				return s, err
			}
			if !ok {
				continue
			}
			x := series{name: e.Models[i].Name, class: sideClass(i), dots: true, format: "%.2f"}
			for l, g := range d.Layers {
				x.line = append(x.line, [2]float64{float64(l + 1), k.of(g)})
			}
			list = append(list, x)
		}
		if list == nil {
			continue
		}
		x, y := around(list)
		x.whole = true
		s.Figures = append(s.Figures, lineFigure(k.id, k.title, "", "layer", k.title, x, y, list))
	}
	return s, nil
}

// applied is the map that multiplies the values.
func (l *GeometryLayer) applied() GeometryMap {
	if len(l.Maps) == 0 {
		return GeometryMap{}
	}
	return l.Maps[len(l.Maps)-1]
}

// throughputSection is speeds, and what each model loses to the first.
func throughputSection(e *Evaluation) (section, error) {
	s := section{Title: "Speed", Lead: "Tokens per second; in brackets the difference to the first model."}
	g := grid{ID: "throughput", Rows: [][]string{{"model", "length", "batch", "forward", "forward and backward"}}}
	var first []ThroughputRow
	for i := range e.Models {
		d, ok, err := detailOf[ThroughputDetail](&e.Models[i], "throughput")
		if err != nil {
			return s, err
		}
		if !ok {
			continue
		}
		if first == nil {
			first = d.Rows
		}
		for k, r := range d.Rows {
			rate := func(m, base Mean) string {
				out := count(m.Value)
				if i > 0 && base.Value > 0 {
					out += show(" (%+.1f %%)", 100*(m.Value/base.Value-1))
				}
				return out
			}
			var base ThroughputRow
			if k < len(first) {
				base = first[k]
			}
			g.Rows = append(g.Rows, []string{e.Models[i].Name, fmt.Sprint(r.Length), fmt.Sprint(r.Batch), rate(r.Forward, base.Forward), rate(r.ForwardBackward, base.ForwardBackward)})
		}
	}
	if len(g.Rows) == 1 {
		return s, nil
	}
	paper := grid{ID: "throughput-paper", Title: "The paper, H100", Rows: [][]string{{"model", "forward", "DIFF", "forward and backward", "DIFF"}}}
	for _, p := range paperThroughput {
		with := func(base, diff float64) string { return count(diff) + show(" (%+.1f %%)", 100*(diff/base-1)) }
		paper.Rows = append(paper.Rows, []string{p.model, count(p.baseForward), with(p.baseForward, p.diffForward), count(p.baseBoth), with(p.baseBoth, p.diffBoth)})
	}
	s.Tables = []grid{g, paper}
	return s, nil
}
