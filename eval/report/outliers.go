package report

import (
	"antiphase/eval/task"
)

// Largest activations (the paper's Table 5).
func init() { register(80, outlierSection) }

func outlierSection(p *Page) (section, error) {
	s := section{Title: "Largest activations",
		Lead: "Magnitudes by rank on a logarithmic scale: attention logits before the softmax, and each block's " +
			"output."}
	kinds := []struct {
		id, title string
		of        func(task.OutlierResult) task.Extreme
	}{
		{"outliers-logits", "Attention logits", func(r task.OutlierResult) task.Extreme { return r.Logits }},
		{"outliers-hidden", "Hidden states", func(r task.OutlierResult) task.Extreme { return r.Hidden }},
	}
	e := p.evaluation()
	titles := titles(e)
	for _, q := range e.Of("outliers") {
		models, err := detailsOf[task.OutlierResult](e, q.Question)
		if err != nil {
			return s, err
		}
		for _, k := range kinds {
			var groups []barGroup
			for _, m := range models {
				groups = append(groups, barGroup{m.Name, m.Class, k.of(m.Detail)})
			}
			if groups == nil {
				continue
			}
			f := outlierFigure(slug(k.id+" "+titles[q.Question]), k.title, groups)
			f.Note = count(float64(models[0].Detail.Tokens)) + " tokens"
			s.Figures = append(s.Figures, f)
		}
	}
	if s.Figures != nil {
		for _, k := range kinds {
			f := outlierFigure(k.id+"-paper", k.title+", the paper",
				[]barGroup{{paperBase, "s0", k.of(paperOutliers.base)}, {paperDiff, "s1", k.of(paperOutliers.diff)}})
			f.Note = "3B models, 400,000 tokens"
			s.Figures = append(s.Figures, f)
		}
	}
	return s, nil
}
