package eval

import (
	"fmt"
	"math"
	"strings"
)

// scalingSection draws the measurements with their curves, the paper's beside ours.
func scalingSection(list []ScalingResult) section {
	s := section{Title: "Scaling"}
	for i := range list {
		r := &list[i]
		unit := "parameters"
		paper := paperScaling()
		if r.By == "tokens" {
			unit, paper = "training tokens", paperTokens()
		}
		s.Figures = append(s.Figures, scalingFigure("scaling-"+r.By, "Held-out loss by "+unit, r))
		if theirs, err := Scaling(r.By, paper, 1); err == nil { // it is fitted in a test
			f := scalingFigure("scaling-"+r.By+"-paper", "The paper", theirs)
			f.Note = paperClaims[r.By] + " By our fit of its points: " + f.Note
			s.Figures = append(s.Figures, f)
		}
	}
	return s
}

func scalingFigure(id, title string, r *ScalingResult) figure {
	var list []series
	f := figure{ID: id, Title: title, rows: [][]string{{"series", r.By, "loss", "fit"}}}
	for i := range r.Curves {
		c := &r.Curves[i]
		dots := series{name: c.Name, class: sideClass(i), dots: true, bare: true}
		line := series{name: c.Name, class: sideClass(i), format: "%.3f"}
		lo, hi := c.Points[0].X, c.Points[len(c.Points)-1].X
		for k := range 41 {
			x := lo * math.Pow(hi/lo, float64(k)/40)
			line.line = append(line.line, [2]float64{x, c.At(x)})
		}
		for _, p := range c.Points {
			dots.line = append(dots.line, [2]float64{p.X, p.Loss})
			f.rows = append(f.rows, []string{c.Name, value(p.X), value(p.Loss), value(c.At(p.X))})
		}
		list = append(list, line, dots)
	}
	f.Note = strings.Join(r.findings(), ". ")
	if f.Note != "" {
		f.Note += ". "
	}
	x, y := around(list)
	x.log, x.tens = true, true
	f.SVG = lineChart(title, r.By, x, y, list)
	return f
}

// short writes a large number with a letter.
func short(x float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "k"}} {
		if x >= u.size {
			return show("%.3g", x/u.size) + u.name
		}
	}
	return show("%.3g", x)
}

// ablationSection is the paper's Table 6 as trained here.
func ablationSection(r *AblationResult) section {
	s := section{Title: "Ablations"}
	if r == nil {
		return s
	}
	g := grid{ID: "ablation", Note: fmt.Sprintf("%s, %d steps, %s tokens each, one run each; the paper: 1.4B, 10B tokens.", r.Size, r.Steps, short(float64(r.Tokens)))}
	g.Rows = [][]string{{"model", "what", "heads", "width", "norm", "loss", "AR-Hit", "others", "loss (paper)", "AR-Hit (paper)", "others (paper)"}}
	for i, x := range r.Rows {
		row := []string{x.Name, x.Arch + ", " + x.Doc, fmt.Sprint(x.Heads), fmt.Sprint(x.HeadDim), fmt.Sprint(x.HeadNorm)}
		g.Rows = append(g.Rows, append(row, x.cells(i)...))
	}
	s.Tables = []grid{g}
	return s
}

// positionSection is the loss of all tokens up to a position.
func positionSection(e *Evaluation) (section, error) {
	s := section{Title: "Loss by length of context", Lead: "Mean held-out loss of all tokens up to a position. Lower at the right means that more context helps."}
	var list []series
	for i := range e.Models {
		d, ok, err := detailOf[LMDetail](&e.Models[i], "lm")
		if err != nil {
			return s, err
		}
		if !ok || len(d.ByPosition) < 2 {
			continue
		}
		x := series{name: e.Models[i].Name, class: sideClass(i), format: "%.3f", dots: true}
		for _, p := range d.ByPosition {
			x.line = append(x.line, [2]float64{float64(p.Position), p.Loss})
		}
		list = append(list, x)
	}
	if list == nil {
		return s, nil
	}
	draw := func(id, title, note string, list []series) {
		x, y := around(list)
		x.log = true
		s.Figures = append(s.Figures, lineFigure(id, title, note, "tokens of context", "nats per token", x, y, list))
	}
	draw("position", "Here", "", list)
	base, diff := series{name: baseName, class: "s0", dots: true, format: "%.3f"}, series{name: diffName, class: "s1", dots: true, format: "%.3f"}
	for i, at := range paperPositions.at {
		base.line = append(base.line, [2]float64{float64(at), paperPositions.base[i]})
		diff.line = append(diff.line, [2]float64{float64(at), paperPositions.diff[i]})
	}
	draw("position-paper", "The paper", "books, 64K models; its axis has no labels, ticks are taken as 2.1 to 2.9", []series{base, diff})
	return s, nil
}

// needleSection is the heat maps side by side.
func needleSection(e *Evaluation) (section, error) {
	s := section{Title: "Retrieval", Lead: "Share of hidden numbers found, in percent, by the depth of the one asked for and the length of the prompt."}
	for i := range e.Models {
		d, ok, err := detailOf[NeedleGrid](&e.Models[i], "needle")
		if err != nil {
			return s, err
		}
		if ok {
			s.Figures = append(s.Figures, needleHeat(fmt.Sprintf("needle-%d", i), e.Models[i].Name, sideClass(i), &d))
		}
	}
	if s.Figures != nil {
		base, diff := paperNeedleGrid()
		s.Figures = append(s.Figures, needleHeat("needle-paper-transformer", paperBase, "s0", &base), needleHeat("needle-paper-diff", paperDiff, "s1", &diff))
	}
	return s, nil
}

// attentionSection is the five segments, the answer's share by layer and head, and λ.
func attentionSection(e *Evaluation) (section, error) {
	s := section{Title: "Where the answer's token looks", Lead: "The five parts of a bar sum to 1; noise is the context that is not the answer. With sign, negative scores lie left of zero."}
	var sides []Side
	var heads []figure
	for i := range e.Models {
		side := Side{Name: e.Models[i].Name, Arch: e.Models[i].Arch}
		d, ok, err := detailOf[AttentionDetail](&e.Models[i], "attention")
		if err != nil {
			return s, err
		}
		if n := len(d.Results); ok && n > 0 { // the longest prompts
			if side.Attention = d.Results[n-1]; len(side.Attention.Signed) != len(side.Attention.Depths) || len(side.Attention.Absolute) != len(side.Attention.Depths) {
				return s, fmt.Errorf("%s: detail of attention: %d depths, %d and %d segments", side.Name, len(side.Attention.Depths), len(side.Attention.Signed), len(side.Attention.Absolute))
			}
			side.Lambda = d.Lambda
			heads = append(heads, headHeat(fmt.Sprintf("attention-heads-%d", i), side.Name, sideClass(i), side.Attention.ByHead))
		}
		sides = append(sides, side)
	}
	if heads == nil {
		return s, nil
	}
	for _, x := range segmentNames {
		s.Key = append(s.Key, segmentView{x.class, x.name})
	}
	for i, p := range attentionPanels(sides) {
		s.Figures = append(s.Figures, figure{ID: fmt.Sprintf("attention-%d", i), Title: p.Side, Note: p.How, Class: p.Class, SVG: p.Chart, rows: segmentRows(sides, p)})
	}
	for i, x := range []Segments{paperSegments.base, paperSegments.diff} {
		name := []string{paperBase, paperDiff}[i]
		one := []Side{{Name: name, Attention: AttentionResult{Depths: []float64{0.5}, Absolute: []Segments{x}, Signed: []Segments{x}}}}
		p := attentionPanels(one)[0]
		s.Figures = append(s.Figures, figure{ID: fmt.Sprintf("attention-paper-%d", i), Title: name, Note: "4K context; whether by magnitude is not said", Class: sideClass(i), SVG: p.Chart, rows: segmentRows(one, p)})
	}
	s.Figures = append(s.Figures, figure{ID: "attention-layers", Title: "By layer", Note: "share of attention on the answer in percent, by magnitude, mean over depths", SVG: answerByLayer(sides), rows: layerRows(sides)})
	s.Figures = append(s.Figures, heads...)
	f := figure{ID: "lambda", Title: "λ by layer", Note: "mean over tokens and heads", SVG: lambdaByLayer(sides), rows: [][]string{{"model", "layer", "lambda"}}}
	for _, side := range sides {
		for l, x := range side.Lambda {
			f.rows = append(f.rows, []string{side.Name, fmt.Sprint(l + 1), value(x)})
		}
	}
	s.Figures = append(s.Figures, f)
	return s, nil
}

// segmentRows are the numbers of a panel.
func segmentRows(sides []Side, p attentionPanel) [][]string {
	out := [][]string{{"model", "how", "depth", "bos", "before", "answer", "after", "query"}}
	for _, side := range sides {
		if side.Name != p.Side {
			continue
		}
		list := side.Attention.Absolute
		if strings.Contains(p.How, "sign") {
			list = side.Attention.Signed
		}
		for d, seg := range list {
			row := []string{side.Name, p.How, value(side.Attention.Depths[d])}
			for _, x := range seg.list() {
				row = append(row, value(x))
			}
			out = append(out, row)
		}
	}
	return out
}

// layerRows are every layer's segments at every depth.
func layerRows(sides []Side) [][]string {
	out := [][]string{{"model", "depth", "layer", "bos", "before", "answer", "after", "query"}}
	for _, side := range sides {
		for d, layers := range side.Attention.ByLayer {
			for l, seg := range layers {
				row := []string{side.Name, fmt.Sprint(d), fmt.Sprint(l + 1)}
				for _, x := range seg.list() {
					row = append(row, value(x))
				}
				out = append(out, row)
			}
		}
	}
	return out
}
