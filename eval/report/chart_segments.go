package report

import (
	"fmt"
	"html/template"

	"antiphase/eval"
	"antiphase/eval/task"
)

// segmentNames are the five parts in the order they stand in a prompt, with the class that colours each.
var segmentNames = []struct{ class, name string }{
	{"g0", "first token"}, {"g1", "context before"}, {"g2", "the answer"}, {"g3", "context after"},
	{"g4", "the question"},
}

// segmentBars stacks each depth's segments: positive ones to the right of zero, negative ones to its left.
func segmentBars(label string, depths []float64, list []task.Segments) template.HTML {
	const w, left, bar, step = 360, 46, 17, 25
	h := float64(22 + step*len(list) + 18)
	d := newSVG(w, h, "attention by segment, "+label)
	x := scale{lo: 0, hi: 1, from: left, to: w - 98}
	for _, s := range list {
		lo, hi := 0.0, 0.0
		for _, v := range s.List() {
			if !eval.Finite(v) {
				continue
			}
			lo, hi = lo+min(v, 0), hi+max(v, 0)
		}
		x.lo, x.hi = min(x.lo, lo), max(x.hi, hi)
	}
	d.text("tick end", left-8, 13, "depth")
	d.text("tick end", w-50, 13, "answer")
	d.text("tick end", w-2, 13, "noise")
	for i, s := range list {
		y := float64(20 + step*i)
		d.text("tick end", left-8, y+bar/2+4, show("%.0f %%", 100*depths[i]))
		pos, neg := 0.0, 0.0
		for k, v := range s.List() {
			at := &pos
			if v < 0 {
				at = &neg
			}
			a, b := x.at(*at), x.at(*at+v)
			*at += v
			tip := segmentNames[k].name + show(": %.1f %%", 100*v)
			d.rect(segmentNames[k].class, min(a, b), y, max(a, b)-min(a, b), bar, tip)
		}
		d.text("answer end", w-50, y+bar/2+4, show("%.1f %%", 100*s.Answer))
		d.text("tick end", w-2, y+bar/2+4, show("%.1f %%", 100*s.Noise()))
	}
	bottom := float64(20 + step*len(list))
	d.line("axisline", x.at(0), 17, x.at(0), bottom-4)
	for _, v := range []float64{0, 1} {
		d.text("tick mid", x.at(v), bottom+8, fmt.Sprintf("%.0f %%", 100*v))
	}
	return d.done()
}
