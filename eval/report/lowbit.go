package report

import (
	"fmt"
	"slices"

	"antiphase/eval/task"
)

// A task's score by bits (the paper's Figure 8).
func init() { register(90, lowbitSection) }

func lowbitSection(p *Page) (section, error) {
	s := section{Title: "Few bits"}
	e := p.evaluation()
	titles := titles(e)
	for _, q := range e.Of("lowbit") {
		models, err := detailsOf[task.LowbitDetail](e, q.Question)
		if err != nil {
			return s, err
		}
		for _, of := range []struct{ key, title string }{{"logits", "Attention logits"}, {"cache", "Keys and values"}} {
			var list []series
			note := ""
			for _, m := range models {
				d := &m.Detail
				note = fmt.Sprintf("%s of %s, %d-shot; 16 stands for exact; logits share a scale per %s", d.Metric, d.Task, d.Shots, d.Per)
				if d.StandIn {
					note += "; generated questions"
				}
				if x := bitSeries(&m, of.key); len(x.line) > 1 {
					list = append(list, x)
				}
			}
			if list == nil {
				continue
			}
			x, y := around(list)
			s.Figures = append(s.Figures, lineFigure(slug("lowbit-"+of.key+" "+titles[q.Question]), of.title, note, "bits", "score", x, y, list))
		}
	}
	if s.Figures == nil {
		return s, nil
	}
	base, diff := series{name: baseName, class: "s0", dots: true, format: "%.3f"}, series{name: diffName, class: "s1", dots: true, format: "%.3f"}
	for i := len(paperLowbit.bits) - 1; i >= 0; i-- {
		base.line = append(base.line, [2]float64{float64(paperLowbit.bits[i]), paperLowbit.base[i]})
		diff.line = append(diff.line, [2]float64{float64(paperLowbit.bits[i]), paperLowbit.diff[i]})
	}
	x, y := around([]series{base, diff})
	s.Figures = append(s.Figures, lineFigure("lowbit-paper", "Attention logits, the paper", "zero-shot HellaSwag by acc_norm; which logits share a scale is not said", "bits", "accuracy", x, y, []series{base, diff}))
	return s, nil
}

// bitSeries is one model's score by bits, ascending.
func bitSeries(m *shown[task.LowbitDetail], of string) series {
	type point struct {
		p   [2]float64
		err float64
	}
	list := []point{{[2]float64{16, m.Detail.Exact.Value}, m.Detail.Exact.StdErr}}
	for _, r := range m.Detail.Rows {
		if r.Of == of {
			list = append(list, point{[2]float64{float64(r.Bits), r.Score.Value}, r.Score.StdErr})
		}
	}
	slices.SortFunc(list, func(a, b point) int { return int(a.p[0] - b.p[0]) })
	x := series{name: m.Name, class: m.Class, dots: true, format: "%.3f"}
	for _, q := range list {
		x.line, x.err = append(x.line, q.p), append(x.err, q.err)
	}
	return x
}
