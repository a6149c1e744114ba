package report

import (
	"bytes"
	"encoding/csv"
	"strings"
)

// File is one file that Files makes.
type File struct {
	Name string
	Data []byte
}

// Files are the page's contents for other programs: scores.csv with every metric as numbers, scores.tex for a paper, an
// SVG and a CSV for each figure, and a CSV for each table.
func (p *Page) Files() ([]File, error) {
	list, err := allSections(p)
	if err != nil {
		return nil, err
	}
	var tex bytes.Buffer
	if err := p.LaTeX(&tex); err != nil {
		return nil, err
	}
	out := []File{{"scores.csv", csvBytes(scoreRows(p.evaluation()))}, {"scores.tex", tex.Bytes()}}
	if f := leadFigure(p.evaluation()); f != nil {
		out = append(out, f.files()...)
	}
	for _, s := range list {
		for i := range s.Figures {
			if s.Figures[i].SVG != "" {
				out = append(out, s.Figures[i].files()...)
			}
		}
		for _, g := range s.Tables {
			out = append(out, File{g.ID + ".csv", csvBytes(g.Rows)})
		}
	}
	return out, nil
}

func (f *figure) files() []File {
	return []File{{f.ID + ".svg", f.drawing()}, {f.ID + ".csv", csvBytes(f.rows)}}
}

// csvBytes writes rows for programs, with ASCII minus signs.
func csvBytes(rows [][]string) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	for _, r := range rows {
		plain := make([]string, len(r))
		for i, c := range r {
			plain[i] = strings.ReplaceAll(c, "−", "-")
		}
		_ = w.Write(plain) // writes to a buffer do not fail
	}
	w.Flush()
	return b.Bytes()
}

// drawing is the figure as a standalone file, with the page's style, on a light background.
func (f *figure) drawing() []byte {
	open, rest, _ := strings.Cut(string(f.SVG), ">")
	style := "<style>" + figureCSS + "svg { background: var(--page); }</style>"
	return []byte(strings.Replace(open, "<svg", `<svg xmlns="http://www.w3.org/2000/svg"`, 1) + ">" + style + rest)
}
