package eval

import (
	"bytes"
	_ "embed" // the page's template and style
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	//go:embed figure.css
	figureCSS string

	page = template.Must(template.New("page").Funcs(template.FuncMap{"side": sideClass, "magnitude": magnitude, "show": show, "heat": promptHeat, "map": mapChart}).Parse(pageHTML))
)

// HTML writes the report as one page that needs nothing else: no network, no script.
func (r *Report) HTML(w io.Writer) error {
	var b bytes.Buffer // a page that fails half way is not written at all
	if err := page.Execute(&b, r.view()); err != nil {
		return fmt.Errorf("eval: report page: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// view is what the template shows, all numbers formatted and all charts drawn.
type view struct {
	*Report
	CSS       template.CSS
	Facts     []string // what, where, when
	Verdict   string
	Legend    string
	Rows      []viewRow
	Curves    template.HTML
	Position  template.HTML
	Needles   []needleView
	Attention []attentionPanel
	Segments  []segmentView
	ByLayer   template.HTML
	Lambda    template.HTML
	Scale     template.HTML
	Outliers  []outlierView
	Samples   [][]sampleView // by prompt, then side
	RecipeDoc string
	Unit      string // of maps; empty without maps
}

type viewRow struct {
	Name  string
	Minor bool
	Cells []viewCell
}

type viewCell struct {
	Mark, Text string
	Best, Tied bool
}

type needleView struct {
	Title string
	Chart template.HTML
}

type segmentView struct{ Class, Name string }

type outlierView struct {
	Side, Class, What string
	Extreme
}

type sampleView struct {
	Side, Class string
	Sample
}

func (r *Report) view() *view {
	v := &view{Report: r, CSS: template.CSS(figureCSS + pageCSS), Facts: r.facts(), Legend: legend,
		Curves: lossCurves(r.Sides), Position: lossByPosition(r.Sides), Attention: attentionPanels(r.Sides), ByLayer: answerByLayer(r.Sides),
		Lambda: lambdaByLayer(r.Sides), Scale: scaleBar(), Samples: r.samples(), RecipeDoc: indented(r.Recipe)}
	rows := r.rows()
	v.Verdict = r.verdict(rows)
	for _, x := range rows {
		y := viewRow{Name: x.name, Minor: x.minor}
		for _, c := range x.cells {
			y.Cells = append(y.Cells, viewCell{marks[c.verdict], c.show(), c.verdict == best, c.verdict == tied})
		}
		v.Rows = append(v.Rows, y)
	}
	for _, k := range r.needleKinds() {
		v.Needles = append(v.Needles, needleView{k.title(), needleBars(r.Sides, k)})
	}
	for _, s := range segmentNames {
		v.Segments = append(v.Segments, segmentView{s.class, s.name})
	}
	for i, s := range r.Sides {
		if len(s.Maps) > 0 {
			v.Unit = "token"
			if s.Maps[0].Words {
				v.Unit = "word"
			}
		}
		if s.Outliers.Tokens > 0 {
			v.Outliers = append(v.Outliers,
				outlierView{s.Name, sideClass(i), "attention logits", s.Outliers.Logits},
				outlierView{s.Name, sideClass(i), "hidden states", s.Outliers.Hidden})
		}
	}
	return v
}

// title says the test in words.
func (k needleKind) title() string {
	switch {
	case k.needles == 1:
		return "One number hidden, asked for"
	case k.queries == 1:
		return fmt.Sprintf("%d numbers hidden, one asked for", k.needles)
	}
	return fmt.Sprintf("%d numbers hidden, %d asked for", k.needles, k.queries)
}

func (r *Report) facts() []string {
	var out []string
	for _, s := range []string{r.Machine, r.Date} {
		if s != "" {
			out = append(out, s)
		}
	}
	if r.Commit != "" {
		out = append(out, "commit "+r.Commit)
	}
	if finite(r.Seconds) && r.Seconds > 0 {
		out = append(out, time.Duration(r.Seconds*float64(time.Second)).Round(time.Second).String()+" from start to end")
	}
	return out
}

// verdict counts the marks of the table in a sentence.
func (r *Report) verdict(rows []row) string {
	wins, ties, compared := make([]int, len(r.Sides)), 0, 0
	for _, x := range rows {
		marked, tie := false, false
		for i, c := range x.cells {
			marked = marked || c.verdict != unmarked
			tie = tie || c.verdict == tied
			if c.verdict == best {
				wins[i]++
			}
		}
		if marked {
			compared++
		}
		if tie {
			ties++
		}
	}
	if compared == 0 {
		return ""
	}
	var parts []string
	for i, s := range r.Sides {
		parts = append(parts, fmt.Sprintf("%s is better in %d", s.Name, wins[i]))
	}
	return fmt.Sprintf("Of %d measures compared, %s; %d cannot be told apart.", compared, strings.Join(parts, ", "), ties)
}

// samples gathers what the sides made of the same prompt.
func (r *Report) samples() [][]sampleView {
	var out [][]sampleView
	at := map[string]int{}
	for i, s := range r.Sides {
		for _, x := range s.Samples {
			k, ok := at[x.Prompt]
			if !ok {
				k = len(out)
				at[x.Prompt] = k
				out = append(out, nil)
			}
			out[k] = append(out[k], sampleView{s.Name, sideClass(i), x})
		}
	}
	return out
}

// indented is a recipe as people read it.
func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if len(raw) == 0 || json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}
