package report

import (
	"bytes"
	_ "embed" // the page's template and style
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"antiphase/eval"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	//go:embed figure.css
	figureCSS string

	page = template.Must(template.New("page").Funcs(template.FuncMap{"side": sideClass}).Parse(pageHTML))
)

// view is the template's data, with all numbers formatted and all charts drawn.
type view struct {
	Title    string
	CSS      template.CSS
	Facts    []string
	Verdict  string
	Sides    []eval.Side
	Lead     *figure
	Table    tableView
	Sections []section
	Notes    []string
	Recipe   string
	Command  string
	Next     []string
}

// HTML writes the page. It needs neither network nor scripts, and every figure can be saved from it.
func (p *Page) HTML(w io.Writer) error {
	e := p.evaluation()
	list, err := allSections(p)
	if err != nil {
		return err
	}
	sentence, first := p.opening(e)
	v := &view{Title: p.Title, CSS: template.CSS(figureCSS + pageCSS), Facts: p.about(), Verdict: sentence,
		Sides: e.Sides(), Next: p.next(), Lead: first, Table: p.tableView(), Sections: list,
		Notes: slices.Concat(p.notes(), remarks(e), judgeNote(e)), Recipe: indented(p.Recipe), Command: p.Command}
	if v.Title == "" {
		v.Title = "Antiphase evaluation"
	}
	var b bytes.Buffer // a page that fails half-way is not written
	if err := page.Execute(&b, v); err != nil {
		return fmt.Errorf("report: page: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

// about says where, when and on what the page is based.
func (p *Page) about() []string {
	e := p.evaluation()
	var out []string
	for _, s := range []string{e.Machine, e.Date} {
		if s != "" {
			out = append(out, s)
		}
	}
	if e.Commit != "" {
		out = append(out, "commit "+e.Commit)
	}
	if len(e.Models) > 0 {
		data := "generated text and questions"
		if e.Data != "" {
			data = "data of " + e.Data
		}
		out = append(out, data)
		seeds, limits := map[uint64]bool{}, map[int]bool{}
		for i := range e.Models {
			for _, r := range e.Models[i].Results {
				seeds[r.Seed], limits[r.Limit] = true, true
			}
		}
		if len(seeds) > 1 {
			out = append(out, "several seeds")
		} else {
			out = append(out, fmt.Sprintf("seed %d", e.Seed))
		}
		switch {
		case len(limits) > 1:
			out = append(out, "tasks of different numbers of samples")
		case e.Limit > 0:
			out = append(out, fmt.Sprintf("at most %d samples of each task", e.Limit))
		}
	}
	if eval.Finite(p.Seconds) && p.Seconds > 0 {
		out = append(out, time.Duration(p.Seconds*float64(time.Second)).Round(time.Second).String()+
			" from start to end")
	}
	return out
}

// verdict is one sentence: which side is better in how many of the headline measures.
func (p *Page) verdict() string {
	e := p.evaluation()
	sides := e.Sides()
	wins, ties, compared := make([]int, len(sides)), 0, 0
	where := make([][]string, len(sides))
	titles := titles(e)
	for _, x := range p.lines() {
		if x.minor {
			continue
		}
		for i, c := range x.cells {
			switch c.mark {
			case best:
				wins[i]++
				compared++
				where[i] = append(where[i], titles[x.question])
			case tied:
				if i == 0 {
					ties++
					compared++
				}
			}
		}
	}
	if compared == 0 {
		return ""
	}
	var parts []string
	for i, s := range sides {
		part := fmt.Sprintf("%s is better in %d", s.Name, wins[i])
		if n := len(where[i]); n > 0 && n <= 4 {
			part += " (" + strings.Join(where[i], ", ") + ")"
		}
		parts = append(parts, part)
	}
	return fmt.Sprintf("Of %d headline measures, %s; %d cannot be told apart.", compared,
		strings.Join(parts, ", "), ties)
}

// notes describe how numbers were made.
func (p *Page) notes() []string {
	return []string{
		"Every model answers the same questions. A single model's error is one standard error over samples: how well " +
			"this model was measured, not how much another training seed would differ. Groups of models are compared " +
			"with the variance between seeds.",
		"Differences are paired by sample; * is p < 0.05 and ** p < 0.01 after Holm's correction over all headline " +
			"comparisons of the page (other metrics are a second family). Single models: sign-flip test; groups: " +
			"random effects of seeds and items.",
		"Right-or-wrong scores have Wilson's 95 % intervals, others Student's; they are in the CSV of the table.",
		"The paper's numbers are those of Ye et al., Differential Transformer (arXiv 2410.05258v2): 3B models on the " +
			"authors' data. They stand beside a number only where the protocol is the same; otherwise the table of " +
			"the paper's numbers says what differs.",
	}
}

// judgeNote is the prompt of the judge, which the paper does not give and readers need to know.
func judgeNote(e *eval.Evaluation) []string {
	for _, m := range e.Models {
		for _, r := range m.Results {
			if prompt, ok := r.Config["judge_prompt"].(string); ok {
				return []string{fmt.Sprintf("The judge, %v, was asked: “%s”", r.Config["judge"], prompt)}
			}
		}
	}
	return nil
}

// indented is a recipe for display.
func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}
