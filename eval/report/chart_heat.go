package report

import (
	"fmt"
	"html/template"
	"math"

	"antiphase/eval"
)

// heatChart draws shares between 0 and 1 as intensities of the model's colour, each with its number in percent; rows go
// downwards.
func heatChart(label, class, rowName, colName string, rows, cols []string,
	at func(r, c int) (eval.Mean, bool)) template.HTML {
	return heatMap(label, class, rowName, colName, rows, cols, func(r, c int) (heat, bool) {
		m, ok := at(r, c)
		return heat{m.Value, show("%.0f", 100*m.Value), show("%.1f", 100*m.Value) + " %"}, ok && eval.Finite(m.Value)
	})
}

// heat is a cell: its intensity from 0 to 1, the number in it, and its tooltip.
type heat struct {
	strength   float64
	text, long string
}

// heatMap draws cells as intensities of the model's colour.
func heatMap(label, class, rowName, colName string, rows, cols []string, at func(r, c int) (heat, bool)) template.HTML {
	const left, top, rowHeight = 52, 20, 26
	w := float64(chartWidth)
	h := float64(top + rowHeight*len(rows) + 34)
	d := newSVG(w, h, label)
	cell := (w - left - 4) / float64(max(len(cols), 1))
	d.text("tick end", left-6, top-7, rowName)
	for r, name := range rows {
		y := float64(top + rowHeight*r)
		d.text("tick end", left-6, y+rowHeight/2+4, name)
		for c := range cols {
			m, ok := at(r, c)
			if !ok {
				continue
			}
			x := left + cell*float64(c)
			tip := fmt.Sprintf("%s %s, %s %s: %s", rowName, name, colName, cols[c], m.long)
			d.rect("field", x+0.5, y+0.5, cell-1, rowHeight-1, "")
			d.cell(class+" bar", x+0.5, y+0.5, cell-1, rowHeight-1, 0.85*min(max(m.strength, 0), 1), tip)
			if cell >= 16 {
				d.text("value mid", x+cell/2, y+rowHeight/2+3.5, m.text)
			}
		}
	}
	step := int(math.Ceil(26 / cell)) // a name needs 26 units
	for c := 0; c < len(cols); c += step {
		d.text("tick mid", left+cell*(float64(c)+0.5), h-20, cols[c])
	}
	d.text("axis mid", (left+w)/2, h-4, colName)
	return d.done()
}
