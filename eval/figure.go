package eval

import (
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"html/template"
	"strconv"
	"strings"
)

// figure is a drawing with its numbers: both can be saved from the page.
type figure struct {
	ID, Title, Note string
	Class           string // of the model it belongs to; empty: of all
	SVG             template.HTML
	rows            [][]string // the first is the head
}

// grid is a table of the page, which can be saved too.
type grid struct {
	ID, Title, Note string
	Rows            [][]string // the first is the head
}

// CSV is the figure's numbers as a link that holds them.
func (f figure) CSV() template.URL { return csvLink(f.rows) }

// CSV is the table as a link that holds it.
func (g grid) CSV() template.URL { return csvLink(g.Rows) }

// Head and Body are the parts of the table.
func (g grid) Head() []string   { return g.Rows[0] }
func (g grid) Body() [][]string { return g.Rows[1:] }

func csvLink(rows [][]string) template.URL {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	for _, r := range rows {
		plain := make([]string, len(r))
		for i, c := range r {
			plain[i] = strings.ReplaceAll(c, "−", "-") // programs read the sign that people do not
		}
		_ = w.Write(plain) // a buffer takes everything
	}
	w.Flush()
	return template.URL("data:text/csv;base64," + base64.StdEncoding.EncodeToString(b.Bytes()))
}

// File is the drawing as a link that holds it, with the style that the page gives it, on light ground.
func (f figure) File() template.URL {
	open, rest, _ := strings.Cut(string(f.SVG), ">")
	style := "<style>" + figureCSS + "svg { background: var(--page); }</style>"
	whole := strings.Replace(open, "<svg", `<svg xmlns="http://www.w3.org/2000/svg"`, 1) + ">" + style + rest
	return template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(whole)))
}

// value writes a number for programs.
func value(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

// lineFigure is a line chart with its numbers.
func lineFigure(id, title, note, xName, yName string, x, y scale, list []series) figure {
	f := figure{ID: id, Title: title, Note: note, rows: [][]string{{"series", xName, yName}}}
	for _, s := range list {
		for _, p := range s.line {
			f.rows = append(f.rows, []string{s.name, value(p[0]), value(p[1])})
		}
	}
	f.SVG = lineChart(title, xName, x, y, list)
	return f
}

// around is the range of the lines' y values, and of their x values.
func around(list []series) (x, y scale) {
	x.lo, x.hi = 1e300, -1e300
	var lines [][][2]float64
	for _, s := range list {
		lines = append(lines, s.line)
		for _, p := range s.line {
			x.lo, x.hi = min(x.lo, p[0]), max(x.hi, p[0])
		}
	}
	y.lo, y.hi = extent(lines...)
	return x, y
}
