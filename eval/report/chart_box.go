package report

import (
	"fmt"
	"html/template"
	"slices"

	"antiphase/eval"
)

// box is a sample in a box plot.
type box struct {
	name, class string
	values      []float64
}

// boxChart draws boxes over [0,1] downwards: quartiles, median, and whiskers to the extremes, because order robustness
// is the spread from worst to best.
func boxChart(label string, boxes []box) template.HTML {
	const left, right, step = 150, 58, 28
	h := float64(14 + step*len(boxes) + 26)
	d := newSVG(chartWidth, h, label)
	x := scale{lo: 0, hi: 1, from: left, to: chartWidth - right}
	bottom := float64(10 + step*len(boxes))
	for _, v := range []float64{0, 0.25, 0.5, 0.75, 1} {
		d.line("grid", x.at(v), 8, x.at(v), bottom)
		d.text("tick mid", x.at(v), bottom+15, fmt.Sprintf("%.0f %%", 100*v))
	}
	for i, b := range boxes {
		s := slices.Sorted(slices.Values(b.values))
		if len(s) == 0 {
			continue
		}
		y := float64(10 + step*i + step/2)
		lo, hi := s[0], s[len(s)-1]
		q1, mid, q3 := x.at(eval.Quantile(s, 0.25)), x.at(eval.Quantile(s, 0.5)), x.at(eval.Quantile(s, 0.75))
		d.text(b.class+" name end", left-8, y+4, b.name)
		d.line("whisker", x.at(lo), y, x.at(hi), y)
		tip := fmt.Sprintf("%s: worst %s, median %s, best %s %%", b.name, show("%.1f", 100*lo),
			show("%.1f", 100*eval.Quantile(s, 0.5)), show("%.1f", 100*hi))
		d.rect(b.class+" bar", q1, y-8, max(q3-q1, 1), 16, tip)
		d.line("whisker", mid, y-8, mid, y+8)
		d.text("tick", chartWidth-right+8, y+4, show("%.1f", 100*(hi-lo)))
	}
	d.text("tick", chartWidth-right+20, bottom+15, "spread")
	return d.done()
}
