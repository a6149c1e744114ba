package report

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"antiphase/eval"
)

// section is a part of the page: figures and tables under a heading.
type section struct {
	Title, Lead string
	Key         []keyEntry // colours
	Figures     []figure
	Tables      []grid
	Blocks      []template.HTML // other content
}

// keyEntry explains a colour.
type keyEntry struct{ Class, Name string }

// sections are the registered ones, by place.
var sections []struct {
	place int
	make  func(p *Page) (section, error)
}

// register adds a section to the page. A section without figures, tables or blocks is not shown.
func register(place int, f func(p *Page) (section, error)) {
	sections = append(sections, struct {
		place int
		make  func(p *Page) (section, error)
	}{place, f})
}

// allSections makes the page's sections in order.
func allSections(p *Page) ([]section, error) {
	list := slices.Clone(sections)
	slices.SortStableFunc(list, func(a, b struct {
		place int
		make  func(p *Page) (section, error)
	}) int {
		return cmp.Compare(a.place, b.place)
	})
	var out []section
	for _, x := range list {
		s, err := x.make(p)
		if err != nil {
			return nil, fmt.Errorf("report: %w", err)
		}
		if len(s.Figures)+len(s.Tables)+len(s.Blocks) > 0 {
			out = append(out, s)
		}
	}
	return out, nil
}

// shown is one model's detail of a task, with its colour.
type shown[T any] struct {
	Name, Class string
	Detail      T
}

// detailsOf are the models' details of a question. Models of a group share a colour.
func detailsOf[T any](e *eval.Evaluation, question string) ([]shown[T], error) {
	var out []shown[T]
	for i, s := range e.Sides() {
		for _, m := range s.Models {
			r, ok := m.Find(question)
			if !ok || len(r.Detail) == 0 {
				continue
			}
			x := shown[T]{Name: m.Name, Class: sideClass(i)}
			if err := json.Unmarshal(r.Detail, &x.Detail); err != nil {
				return nil, fmt.Errorf("%s: detail of %s: %w", m.Name, r.Task, err)
			}
			out = append(out, x)
		}
	}
	return out, nil
}

// fits is the error of a detail that has n of something and should have another number.
func fits(model, task, what string, n, want int) error {
	if n == want {
		return nil
	}
	return fmt.Errorf("%s: detail of %s: it has %d %s, want %d", model, task, n, what, want)
}

// figure is a drawing with its data; both can be saved from the page.
type figure struct {
	ID, Title, Note string
	Class           string // class of its model; empty for all
	SVG             template.HTML
	rows            [][]string // the first is the head
}

// CSV is the figure's data as a data URL.
func (f figure) CSV() template.URL { return csvLink(f.rows) }

// CSV is the table as a data URL.
func (g grid) CSV() template.URL { return csvLink(g.Rows) }

// Head and Body are the parts of the table.
func (g grid) Head() []string   { return g.Rows[0] }
func (g grid) Body() [][]string { return g.Rows[1:] }

func csvLink(rows [][]string) template.URL {
	return template.URL("data:text/csv;base64," + base64.StdEncoding.EncodeToString(csvBytes(rows)))
}

// File is the drawing as a data URL.
func (f figure) File() template.URL {
	return template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(f.drawing()))
}

// value formats a number for programs.
func value(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

// lineFigure is a line chart with its numbers.
func lineFigure(id, title, note, xName, yName string, x, y scale, list []series) figure {
	f := figure{ID: id, Title: title, Note: note, rows: [][]string{{"series", xName, yName, "stderr"}}}
	for _, s := range list {
		for i, p := range s.line {
			err := ""
			if i < len(s.err) {
				err = value(s.err[i])
			}
			f.rows = append(f.rows, []string{s.name, value(p[0]), value(p[1]), err})
		}
	}
	f.SVG = lineChart(title, xName, x, y, list)
	return f
}

// around returns the ranges of the lines' x and y values.
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

// slug makes an id from a title.
func slug(s string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(s)), "-")
}
