package report

import (
	"cmp"
	"fmt"
	"slices"

	"antiphase/eval"
	"antiphase/eval/task"
)

// A task's score and the divergence from exact by bits (the paper's Figure 8).
func init() { register(90, lowbitSection) }

// lowbitTitles name what may be quantised.
var lowbitTitles = map[string]string{"logits": "Attention logits", "keys": "Keys", "values": "Values",
	"cache": "Keys and values", "both": "Logits, keys and values"}

func lowbitSection(p *Page) (section, error) {
	s := section{Title: "Few bits"}
	e := p.evaluation()
	titles := titles(e)
	for _, q := range e.Of("lowbit") {
		models, err := detailsOf[task.LowbitDetail](e, q.Question)
		if err != nil {
			return s, err
		}
		for _, k := range lowbitKinds(models) {
			s.Figures = append(s.Figures, lowbitFigures(k, titles[q.Question], models)...)
		}
	}
	if s.Figures == nil {
		return s, nil
	}
	base, diff := series{name: baseName, class: "s0", dots: true, format: "%.3f"},
		series{name: diffName, class: "s1", dots: true, format: "%.3f"}
	for i := len(paperLowbit.bits) - 1; i >= 0; i-- {
		base.line = append(base.line, [2]float64{float64(paperLowbit.bits[i]), paperLowbit.base[i]})
		diff.line = append(diff.line, [2]float64{float64(paperLowbit.bits[i]), paperLowbit.diff[i]})
	}
	x, y := around([]series{base, diff})
	s.Figures = append(s.Figures, lineFigure("lowbit-paper", "Attention logits, the paper",
		"zero-shot HellaSwag by acc_norm; which logits share a scale is not said", "bits", "accuracy", x, y,
		[]series{base, diff}))
	return s, nil
}

// lowbitKind is what is quantised, and which numbers share a scale.
type lowbitKind struct{ of, per string }

// lowbitKinds are those of any model, in order of appearance.
func lowbitKinds(models []shown[task.LowbitDetail]) (out []lowbitKind) {
	for _, m := range models {
		for _, r := range m.Detail.Rows {
			if k := (lowbitKind{r.Of, r.Per}); !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}
	return out
}

// lowbitFigures are score and divergence by bits.
func lowbitFigures(k lowbitKind, title string, models []shown[task.LowbitDetail]) (out []figure) {
	var scores, kls []series
	note := ""
	for i := range models {
		m := &models[i]
		d := &m.Detail
		note = fmt.Sprintf("%s of %s, %d-shot; 16 stands for exact", d.Metric, d.Task, d.Shots)
		if d.StandIn {
			note += "; generated questions"
		}
		if x := bitSeries(m, k, func(r *task.LowbitRow) *eval.Mean { return &r.Score }); len(x.line) > 0 {
			x.line, x.err = append(x.line, [2]float64{16, d.Exact.Value}), append(x.err, d.Exact.StdErr)
			scores = append(scores, x)
		}
		if x := bitSeries(m, k, func(r *task.LowbitRow) *eval.Mean { return r.KL }); len(x.line) > 0 {
			x.format = ""
			kls = append(kls, x)
		}
	}
	name := cmp.Or(lowbitTitles[k.of], k.of)
	if k.per != "usual" {
		name += ", a scale per " + k.per
	}
	id := "lowbit-" + k.of + " " + k.per + " " + title
	if scores != nil {
		x, y := around(scores)
		out = append(out, lineFigure(slug(id), name, note, "bits", "score", x, y, scores))
	}
	if kls != nil {
		x, y := around(kls)
		out = append(out, lineFigure(slug("kl "+id), name+": divergence",
			"KL of the next-token distribution to exact, nats per token", "bits", "KL", x, y, kls))
	}
	return out
}

// bitSeries is one model's number by bits, in ascending order.
func bitSeries(m *shown[task.LowbitDetail], k lowbitKind, of func(r *task.LowbitRow) *eval.Mean) series {
	rows := slices.Clone(m.Detail.Rows)
	slices.SortFunc(rows, func(a, b task.LowbitRow) int { return a.Bits - b.Bits })
	x := series{name: m.Name, class: m.Class, dots: true, format: "%.3f"}
	for i := range rows {
		r := &rows[i]
		if v := of(r); r.Of == k.of && r.Per == k.per && v != nil {
			x.line, x.err = append(x.line, [2]float64{float64(r.Bits), v.Value}), append(x.err, v.StdErr)
		}
	}
	return x
}
