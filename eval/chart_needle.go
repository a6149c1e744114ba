package eval

import (
	"fmt"
	"html/template"
)

// needleBars draws a test's accuracy by depth, and over all depths set apart, with whiskers of one standard error.
func needleBars(sides []Side, kind needleKind) template.HTML {
	d := newSVG(chartWidth, 230, "retrieval accuracy by depth, "+kind.String())
	y := scale{lo: 0, hi: 1, from: 194, to: 20}
	const left, right = 40, chartWidth - 6
	for _, v := range []float64{0, 0.25, 0.5, 0.75, 1} {
		d.line("grid", left, y.at(v), right, y.at(v))
		d.text("tick end", left-6, y.at(v)+3.5, fmt.Sprintf("%.0f %%", 100*v))
	}
	depths := kind.depths(sides)
	group := float64(right-left) / (float64(len(depths)) + 1.5)
	for g := range len(depths) + 1 {
		mid := left + group*(float64(g)+0.5)
		name := "all depths"
		if g < len(depths) {
			name = show("%.0f %%", 100*depths[g])
		} else {
			mid += group / 2
		}
		d.text("tick mid", mid, 210, name)
		for i := range sides {
			r := kind.of(&sides[i])
			m := r.Accuracy
			if g < len(depths) {
				m = Mean{}
				if g < len(r.ByDepth) {
					m = r.ByDepth[g]
				}
			}
			d.bar(m, y, mid, group*0.72, i, sides)
		}
	}
	d.text("axis mid", (left+right-1.5*group)/2, 228, "depth of the needle asked for")
	return d.done()
}

// bar draws side i's part of a group of bars around mid.
func (d *svg) bar(m Mean, y scale, mid, width float64, i int, sides []Side) {
	if m.N == 0 {
		return
	}
	w := width / float64(len(sides))
	x := mid - width/2 + w*float64(i)
	top := y.at(m.Value)
	tip := fmt.Sprintf("%s: %s ± %s %% of %d", sides[i].Name, show("%.1f", 100*m.Value), show("%.1f", 100*m.StdErr), m.N)
	d.rect(sideClass(i)+" bar", x+0.75, min(top, y.from-1), w-1.5, max(y.from-top, 1), tip)
	lo, hi := y.at(max(0, m.Value-m.StdErr)), y.at(min(1, m.Value+m.StdErr))
	if m.StdErr > 0 {
		d.line("whisker", x+w/2, lo, x+w/2, hi)
	}
	d.text("value mid", x+w/2, min(hi, top)-4, show("%.0f", 100*m.Value))
}
