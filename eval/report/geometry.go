package report

import "antiphase/eval/task"

// Spectra by layer.
func init() { register(110, geometrySection) }

func geometrySection(p *Page) (section, error) {
	s := section{Title: "Geometry", Lead: "Of the map that is applied to the values, and of the token " +
		"representations after each layer. Rank is the exponential of the entropy of singular values; gap is 1 − " +
		"σ2/σ1."}
	pick := []struct {
		id, title string
		of        func(task.GeometryLayer) float64
	}{
		{"geometry-map-rank", "Effective rank of maps", func(l task.GeometryLayer) float64 { return l.Applied().Rank }},
		{"geometry-map-gap", "Spectral gap of maps", func(l task.GeometryLayer) float64 { return l.Applied().Gap }},
		{"geometry-hidden-rank", "Effective rank of representations",
			func(l task.GeometryLayer) float64 { return l.HiddenRank }},
		{"geometry-hidden-gap", "Spectral gap of representations",
			func(l task.GeometryLayer) float64 { return l.HiddenGap }},
		{"geometry-sparsity", "Sparsity of maps (Hoyer)",
			func(l task.GeometryLayer) float64 { return l.Applied().Sparsity }},
		{"geometry-negative", "Share of negative mass",
			func(l task.GeometryLayer) float64 { return l.Applied().Negative }},
	}
	e := p.evaluation()
	titles := titles(e)
	for _, q := range e.Of("geometry") {
		models, err := detailsOf[task.GeometryDetail](e, q.Question)
		if err != nil {
			return s, err
		}
		for _, k := range pick {
			var list []series
			for _, m := range models {
				x := series{name: m.Name, class: m.Class, dots: true, format: "%.2f"}
				for l, g := range m.Detail.Layers {
					x.line = append(x.line, [2]float64{float64(l + 1), k.of(g)})
				}
				list = append(list, x)
			}
			if list == nil {
				continue
			}
			x, y := around(list)
			x.whole = true
			s.Figures = append(s.Figures, lineFigure(slug(k.id+" "+titles[q.Question]), k.title, "", "layer",
				k.title, x, y, list))
		}
	}
	return s, nil
}
