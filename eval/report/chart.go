package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"unicode/utf8"

	"antiphase/eval"
)

// Charts are 480 units wide: two side by side on a desktop, one at a readable size on a phone.
const chartWidth, chartHeight = 480, 270

// series is one side's line. Points are in data units.
type series struct {
	name   string
	class  string // "s0", "s1", …: the side's colour
	line   [][2]float64
	err    []float64    // standard errors of the points, if known
	faint  [][2]float64 // drawn thin, below the line, without a label
	band   [][3]float64 // x, lowest and highest: a filled band below the line
	dots   bool
	bare   bool   // dots without a line or a label
	dashed bool   // a reference
	format string // of the last value, in the label; empty for none
}

// lineChart draws series with their names at their ends instead of a legend.
func lineChart(label, xName string, x, y scale, list []series) template.HTML {
	d := newSVG(chartWidth, chartHeight, label)
	x.from, x.to = 40, chartWidth-8-labelRoom(list)
	y.from, y.to = chartHeight-36, 14
	d.grid(x, y)
	d.text("axis mid", (x.from+x.to)/2, chartHeight-4, xName)
	for i := range list {
		list[i] = list[i].finite()
		d.path(list[i].class+" faint", y.inside(x, list[i].faint))
		d.area(list[i].class+" band", x, y, list[i].band)
	}
	var ends []float64 // heights of labels
	var labels []series
	for _, s := range list {
		points := y.inside(x, s.line)
		class := s.class + " line"
		if s.dashed {
			class = "reference"
		}
		if !s.bare {
			d.path(class, points)
		}
		if s.dots {
			for k, p := range points {
				v := s.line[len(s.line)-len(points)+k] // inside drops points only at the beginning
				if e := len(s.line) - len(points) + k; e < len(s.err) && s.err[e] > 0 {
					d.line("whisker", p[0], y.at(y.clip(v[1]-s.err[e])), p[0], y.at(y.clip(v[1]+s.err[e])))
				}
				d.circle(s.class+" dot", p[0], p[1], 2.6, s.name+": "+show("%.4f", v[1])+show(" at %.6g", v[0]))
			}
		}
		if len(points) > 0 && !s.bare {
			ends, labels = append(ends, points[len(points)-1][1]), append(labels, s)
		}
	}
	spread(ends, 14, y.to, y.from)
	for i, s := range labels {
		d.text(s.class+" name", x.to+7, ends[i]+4, s.label())
	}
	return d.done()
}

// finite is the series without the points that have no value, and without their errors.
func (s series) finite() series {
	line, err := s.line, s.err
	s.line, s.err = nil, nil
	for i, p := range line {
		if !eval.Finite(p[1]) {
			continue
		}
		s.line = append(s.line, p)
		if i < len(err) {
			s.err = append(s.err, err[i])
		}
	}
	return s
}

// clip is the nearest value inside the scale.
func (s scale) clip(x float64) float64 { return min(max(x, s.lo), s.hi) }

// label is a line's name and its last value.
func (s *series) label() string {
	if s.format == "" || len(s.line) == 0 {
		return s.name
	}
	return s.name + " " + show(s.format, s.line[len(s.line)-1][1])
}

// labelRoom is the width of the longest label, at most a third of the chart.
func labelRoom(list []series) float64 {
	n := 0
	for _, s := range list {
		n = max(n, utf8.RuneCountInString(s.label()))
	}
	return min(7.4*float64(n), chartWidth/3)
}

// grid draws rules at the y ticks and marks at the x ticks.
func (d *svg) grid(x, y scale) {
	ticks := y.ticks(5)
	for i, s := range y.texts(ticks) {
		at := y.at(ticks[i])
		d.line("grid", x.from, at, x.to, at)
		d.text("tick end", x.from-6, at+3.5, s)
	}
	ticks = x.ticks(5)
	for i, s := range x.texts(ticks) {
		at := x.at(ticks[i])
		d.line("mark", at, y.from, at, y.from+4)
		d.text("tick mid", at, y.from+16, s)
	}
}

// inside maps points to the drawing. A curve that begins above the frame is drawn from where it enters it.
func (s scale) inside(x scale, points [][2]float64) [][2]float64 {
	out := make([][2]float64, 0, len(points))
	for _, p := range points {
		if p[1] > s.hi {
			out = out[:0]
			continue
		}
		out = append(out, [2]float64{x.at(p[0]), s.at(max(p[1], s.lo))})
	}
	return out
}

// spread moves labels apart until no two are closer than gap, keeping their order and staying between lo and hi.
func spread(at []float64, gap, lo, hi float64) {
	order := make([]int, len(at))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(math.Copysign(1, at[a]-at[b])) })
	for range 50 {
		for k := 1; k < len(order); k++ {
			a, b := order[k-1], order[k]
			if d := gap - (at[b] - at[a]); d > 0 {
				at[a] -= d / 2
				at[b] += d / 2
			}
		}
	}
	// Into the frame: down from its top, then up from its bottom.
	for k, i := range order {
		if floor := lo + gap*float64(k); at[i] < floor {
			at[i] = floor
		}
	}
	for k, i := range order {
		if roof := hi - gap*float64(len(order)-1-k); at[i] > roof {
			at[i] = roof
		}
	}
}

// extent is the range of the y values of points, widened by a twentieth at both ends.
func extent(lists ...[][2]float64) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, points := range lists {
		for _, p := range points {
			if eval.Finite(p[1]) {
				lo, hi = min(lo, p[1]), max(hi, p[1])
			}
		}
	}
	if lo > hi {
		return 0, 1
	}
	room := max((hi-lo)/20, 1e-3*math.Abs(hi), 1e-6)
	return lo - room, hi + room
}

// sideClass is the colour of a side; there are four, then they repeat.
func sideClass(i int) string { return fmt.Sprintf("s%d", i%4) }
