package report

import (
	"fmt"
	"html/template"
	"math"

	"antiphase/eval"
	"antiphase/eval/task"
)

// barGroup is one model's magnitudes.
type barGroup struct {
	name, class string
	task.Extreme
}

// outlierBars draws magnitudes on a logarithmic scale: a group for each rank, a bar for each model.
func outlierBars(label string, groups []barGroup) template.HTML {
	lo, hi := math.Inf(1), 0.0
	for _, g := range groups {
		for _, v := range g.List() {
			if v > 0 && eval.Finite(v) {
				lo, hi = min(lo, v), max(hi, v)
			}
		}
	}
	if hi == 0 {
		return ""
	}
	d := newSVG(chartWidth, 250, label)
	y := scale{lo: math.Pow(10, math.Floor(math.Log10(lo))), hi: hi * 1.6, from: 206, to: 12, log: true, tens: true}
	const left, right = 46, chartWidth - 4
	ticks := y.ticks(4)
	for i, s := range y.texts(ticks) {
		d.line("grid", left, y.at(ticks[i]), right, y.at(ticks[i]))
		d.text("tick end", left-6, y.at(ticks[i])+3.5, s)
	}
	names := []string{"1st", "2nd", "3rd", "10th", "100th", "median"}
	wide := float64(right-left) / float64(len(names))
	for r, name := range names {
		mid := left + wide*(float64(r)+0.5)
		d.text("tick mid", mid, 222, name)
		w := wide * 0.78 / float64(len(groups))
		for i, g := range groups {
			v := g.List()[r]
			if !(v > 0) || !eval.Finite(v) {
				continue
			}
			x := mid - wide*0.39 + w*float64(i)
			d.rect(g.class+" bar", x+0.5, y.at(v), w-1, y.from-y.at(v),
				fmt.Sprintf("%s, %s: %s", g.name, name, magnitude(v)))
			if text := magnitude(v); 5.5*float64(len(text)) <= w { // a wider one would run into its neighbour's
				d.text("value mid", x+w/2, y.at(v)-3, text)
			}
		}
	}
	return d.done()
}

// outlierFigure is the bars of some models with their numbers.
func outlierFigure(id, title string, groups []barGroup) figure {
	f := figure{ID: id, Title: title, rows: [][]string{append([]string{"model"}, task.ExtremeNames...)}}
	for _, g := range groups {
		row := []string{g.name}
		for _, v := range g.List() {
			row = append(row, value(v))
		}
		f.rows = append(f.rows, row)
	}
	f.SVG = outlierBars(title, groups)
	return f
}
