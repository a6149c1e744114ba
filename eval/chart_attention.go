package eval

import (
	"fmt"
	"html/template"
	"slices"
)

// segmentNames are the five parts in the order they stand in a prompt, with the class that colours each.
var segmentNames = []struct{ class, name string }{
	{"g0", "first token"}, {"g1", "context before"}, {"g2", "the answer"}, {"g3", "context after"}, {"g4", "the question"},
}

func (s Segments) list() []float64 { return []float64{s.BOS, s.Before, s.Answer, s.After, s.Query} }

// attentionPanel is one side's bars: a bar per depth, each five segments that sum to 1.
type attentionPanel struct {
	Side  string
	Class string
	How   string // "", "by magnitude" or "with sign"
	Chart template.HTML
}

// attentionPanels draws every side; one whose scores can be negative twice.
func attentionPanels(sides []Side) []attentionPanel {
	var out []attentionPanel
	for i, s := range sides {
		a := s.Attention
		if len(a.Absolute) == 0 {
			continue
		}
		if slices.Equal(a.Absolute, a.Signed) || !differs(a) {
			out = append(out, attentionPanel{s.Name, sideClass(i), "", segmentBars(s.Name, a.Depths, a.Absolute)})
			continue
		}
		out = append(out,
			attentionPanel{s.Name, sideClass(i), "by magnitude", segmentBars(s.Name+" by magnitude", a.Depths, a.Absolute)},
			attentionPanel{s.Name, sideClass(i), "with sign", segmentBars(s.Name+" with sign", a.Depths, a.Signed)})
	}
	return out
}

// differs says whether sign and magnitude tell different stories, rounding apart.
func differs(a AttentionResult) bool {
	for d := range a.Absolute {
		for k, x := range a.Absolute[d].list() {
			if diff := x - a.Signed[d].list()[k]; diff > 1e-6 || diff < -1e-6 {
				return true
			}
		}
	}
	return false
}

// segmentBars stacks each depth's segments: positive ones to the right of zero, negative ones to its left.
func segmentBars(label string, depths []float64, list []Segments) template.HTML {
	const w, left, bar, step = 360, 42, 17, 25
	h := float64(22 + step*len(list) + 18)
	d := newSVG(w, h, "attention by segment, "+label)
	x := scale{lo: 0, hi: 1, from: left, to: w - 98}
	for _, s := range list {
		lo, hi := 0.0, 0.0
		for _, v := range s.list() {
			if !finite(v) {
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
		for k, v := range s.list() {
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

// answerByLayer draws the share of each layer's attention that is on the answer, by magnitude, averaged over depths.
func answerByLayer(sides []Side) template.HTML {
	var list []series
	var shown [][][2]float64
	layers := 0
	for i, s := range sides {
		x := series{name: s.Name, class: sideClass(i), dots: true}
		for _, at := range s.Attention.ByLayer {
			for l, seg := range at {
				if l >= len(x.line) {
					x.line = append(x.line, [2]float64{float64(l + 1), 0})
				}
				x.line[l][1] += 100 * seg.Answer / float64(len(s.Attention.ByLayer))
			}
		}
		layers = max(layers, len(x.line))
		list, shown = append(list, x), append(shown, x.line)
	}
	if layers < 2 {
		return ""
	}
	_, hi := extent(shown...)
	return lineChart("attention to the answer by layer", "layer", scale{lo: 1, hi: float64(layers), whole: true}, scale{lo: 0, hi: hi}, list)
}
