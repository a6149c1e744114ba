package report

import (
	"fmt"

	"antiphase/eval"
)

// leadFigure is the first item on the page: every headline measure on which two sides can be compared, as B − A in
// units of half its 95 % interval, so that measures of any unit share one axis. To the right of zero the second side is
// better.
func leadFigure(e *eval.Evaluation) *figure {
	sides := e.Sides()
	if len(sides) != 2 {
		return nil
	}
	f := &figure{ID: "lead", rows: [][]string{{"task", "measure", "difference", "low95", "high95", "p_holm"}}}
	f.Title = fmt.Sprintf("%s against %s", sides[1].Name, sides[0].Name)
	f.Note = "Difference of each headline measure, turned so that right is better, with its 95 % interval; each row " +
		"in units of half its interval's width."
	list := leadBars(e, sides, f)
	if len(list) == 0 {
		return nil
	}
	const left, step = 190, 26
	h := float64(10 + step*len(list) + 24)
	d := newSVG(chartWidth, h, f.Title)
	x := scale{lo: -4, hi: 4, from: left, to: chartWidth - 12}
	d.line("axisline", x.at(0), 4, x.at(0), h-24)
	for i, b := range list {
		y := float64(10 + step*i + step/2)
		mid := min(max(b.mid, x.lo+1), x.hi-1) // a row beyond the frame is drawn at its edge
		class := "quiet"
		if b.p < 0.05 && b.skill {
			class = sideClass(1)
			if b.mid < 0 {
				class = sideClass(0)
			}
		}
		d.text("tick end", left-10, y+4, b.name)
		d.line("whisker", x.at(mid-1), y, x.at(mid+1), y)
		d.circle(class+" dot", x.at(mid), y, 4, b.tip)
	}
	d.text("tick", left, h-6, sides[0].Name+" better")
	d.text("tick end", chartWidth-12, h-6, sides[1].Name+" better")
	f.SVG = d.done()
	return f
}

// leadBar is one row of the figure.
type leadBar struct {
	name   string
	mid, p float64
	skill  bool // the better side is above its floors
	tip    string
}

// leadBars are the comparisons of headline measures, which are also written to the figure's table.
func leadBars(e *eval.Evaluation, sides []eval.Side, f *figure) []leadBar {
	titles := titles(e)
	var list []leadBar
	for _, q := range e.Questions() {
		if len(q.Metrics) == 0 || q.Metrics[0].Better == eval.Neither {
			continue
		}
		m := &q.Metrics[0]
		p, _ := e.Between(q.Question, m.Name, sides[0].Name, sides[1].Name)
		half := (p.High - p.Low) / 2 // 0 where they were not compared
		if !(half > 0) {
			continue
		}
		sign := 1.0
		if m.Better == eval.Lower {
			sign = -1
		}
		ahead := &sides[0]
		if sign*p.Diff > 0 {
			ahead = &sides[1]
		}
		top, _ := ahead.Metric(q.Question, m.Name)
		list = append(list, leadBar{titles[q.Question], sign * p.Diff / half, p.PHolm, aboveFloors(&top),
			fmt.Sprintf("%s: %s", label(m), difference(&p, percent(m), -1))})
		f.rows = append(f.rows, []string{titles[q.Question], label(m), value(p.Diff), value(p.Low), value(p.High),
			value(p.PHolm)})
	}
	return list
}
