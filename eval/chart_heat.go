package eval

import (
	"fmt"
	"html/template"
)

// heatChart draws shares between 0 and 1 as strengths of the model's colour, each with its number in percent: rows downwards.
func heatChart(label, class, rowName, colName string, rows, cols []string, at func(r, c int) (Mean, bool)) template.HTML {
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
			if !ok || !finite(m.Value) {
				continue
			}
			x := left + cell*float64(c)
			tip := fmt.Sprintf("%s %s, %s %s: %s %%", rowName, name, colName, cols[c], show("%.1f", 100*m.Value))
			d.rect("field", x+0.5, y+0.5, cell-1, rowHeight-1, "")
			d.cell(class+" bar", x+0.5, y+0.5, cell-1, rowHeight-1, 0.85*min(max(m.Value, 0), 1), tip)
			if cell >= 16 {
				d.text("value mid", x+cell/2, y+rowHeight/2+3.5, show("%.0f", 100*m.Value))
			}
		}
	}
	step := max(1, int(26/cell)+1)
	if cell >= 26 {
		step = 1
	}
	for c := 0; c < len(cols); c += step {
		d.text("tick mid", left+cell*(float64(c)+0.5), h-20, cols[c])
	}
	d.text("axis mid", (left+w)/2, h-4, colName)
	return d.done()
}

// needleHeat is a model's grid of lengths and depths.
func needleHeat(id, name, class string, g *NeedleGrid) figure {
	var rows, cols []string
	for _, x := range g.Depths {
		rows = append(rows, show("%.0f %%", 100*x))
	}
	for _, n := range g.Lengths {
		cols = append(cols, tokens(n))
	}
	at := func(r, c int) (Mean, bool) {
		if r >= len(g.Cells) || c >= len(g.Cells[r]) {
			return Mean{}, false
		}
		return g.Cells[r][c], g.Cells[r][c].N > 0
	}
	f := figure{ID: id, Title: name, Class: class, Note: fmt.Sprintf("%d hidden, %d asked for", g.Needles, g.Queries),
		rows: [][]string{{"depth", "length", "accuracy", "stderr", "n"}}}
	for r, depth := range g.Depths {
		for c, n := range g.Lengths {
			if m, ok := at(r, c); ok {
				f.rows = append(f.rows, []string{value(depth), fmt.Sprint(n), value(m.Value), value(m.StdErr), fmt.Sprint(m.N)})
			}
		}
	}
	f.SVG = heatChart("retrieval by depth and length, "+name, class, "depth", "tokens", rows, cols, at)
	return f
}

// headHeat is the share of attention on the answer by layer and head.
func headHeat(id, name, class string, heads [][]Segments) figure {
	most := 0
	f := figure{ID: id, Title: name, Class: class, Note: "share on the answer by layer and head, by magnitude, mean over depths",
		rows: [][]string{{"layer", "head", "bos", "before", "answer", "after", "query"}}}
	var rows, cols []string
	for l, list := range heads {
		rows = append(rows, fmt.Sprint(l+1))
		most = max(most, len(list))
		for h, s := range list {
			row := []string{fmt.Sprint(l + 1), fmt.Sprint(h + 1)}
			for _, x := range s.list() {
				row = append(row, value(x))
			}
			f.rows = append(f.rows, row)
		}
	}
	for h := range most {
		cols = append(cols, fmt.Sprint(h+1))
	}
	f.SVG = heatChart("attention to the answer by head, "+name, class, "layer", "head", rows, cols, func(r, c int) (Mean, bool) {
		if c >= len(heads[r]) {
			return Mean{}, false
		}
		return Mean{Value: heads[r][c].Answer}, true
	})
	return f
}

// tokens writes a length as people do: 4K is 4096.
func tokens(n int) string {
	if n >= 1024 && n%1024 == 0 {
		return fmt.Sprintf("%dK", n/1024)
	}
	return fmt.Sprint(n)
}
