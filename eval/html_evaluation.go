package eval

import (
	"bytes"
	_ "embed" // the page's template
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
)

//go:embed page_evaluation.html
var evaluationHTML string

var evaluationPage = template.Must(template.New("evaluation").Funcs(template.FuncMap{"side": sideClass}).Parse(evaluationHTML))

// Page is everything that one page shows: any of the parts may be missing.
type Page struct {
	Evaluation *Evaluation
	Scaling    []ScalingResult // by parameters, by tokens
	Ablation   *AblationResult
}

// section is a part of the page: figures and tables under a heading.
type section struct {
	Title, Lead string
	Key         []segmentView // colours
	Figures     []figure
	Tables      []grid
}

type pageView struct {
	Title    string
	CSS      template.CSS
	Facts    []string
	Models   []Judged
	Sections []section
	Notes    []string
}

// HTML writes the page: it needs nothing else, neither network nor script, and every figure can be saved from it.
func (p *Page) HTML(w io.Writer) error {
	v, err := p.view()
	if err != nil {
		return err
	}
	var b bytes.Buffer // a page that fails half way is not written at all
	if err := evaluationPage.Execute(&b, v); err != nil {
		return fmt.Errorf("eval: evaluation page: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

func (p *Page) view() (*pageView, error) {
	v := &pageView{Title: "Antiphase evaluation", CSS: template.CSS(figureCSS + pageCSS)}
	ev := p.Evaluation
	if ev == nil {
		ev = &Evaluation{}
	}
	if ev.Title != "" {
		v.Title = ev.Title
	}
	v.Models = ev.Models
	v.Facts = ev.facts()
	v.Notes = slices.Concat(pageNotes, ev.remarks(), ev.judgeNote())
	sections := []func(*Evaluation) (section, error){
		scoreSection, positionSection, needleSection, attentionSection, iclSection, orderSection, outlierSection, lowbitSection,
		geometrySection, throughputSection,
	}
	for i, f := range sections {
		s, err := f(ev)
		if err != nil {
			return nil, fmt.Errorf("eval: evaluation page: %w", err)
		}
		if i == 1 { // behind the table of scores
			v.Sections = append(v.Sections, scalingSection(p.Scaling), ablationSection(p.Ablation))
		}
		v.Sections = append(v.Sections, s)
	}
	kept := v.Sections[:0]
	for _, s := range v.Sections {
		if len(s.Figures)+len(s.Tables) > 0 {
			kept = append(kept, s)
		}
	}
	v.Sections = kept
	return v, nil
}

func (e *Evaluation) facts() []string {
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
		data := "generated stand-ins for data sets"
		if e.Data != "" {
			data = "data of " + e.Data
		}
		out = append(out, data, fmt.Sprintf("seed %d", e.Seed))
		if e.Limit > 0 {
			out = append(out, fmt.Sprintf("at most %d samples of each task", e.Limit))
		}
	}
	return out
}

var pageNotes = []string{
	"Every model answers the same questions. Errors are one standard error over samples: how well these models were measured, not how much another training seed would differ.",
	"Differences to the first model are paired by sample; * is p < 0.05 and ** p < 0.01 in a sign-flip test, not corrected for the number of metrics.",
	"The paper's numbers are those of Ye et al., Differential Transformer (arXiv 2410.05258v2): 3B models on the authors' data. They are context, not a target: with other data, prompts or sizes the absolute numbers differ. Where its protocol is not public (needle text, attention formula, prompts, quantiser), the tasks' documentation says what was chosen here.",
}

// detailOf reads the data of a task's figures; ok is false where the model has none.
func detailOf[T any](m *Judged, task string) (d T, ok bool, err error) {
	r, ok := m.Result(task)
	if !ok || len(r.Detail) == 0 {
		return d, false, nil
	}
	if err := json.Unmarshal(r.Detail, &d); err != nil {
		return d, false, fmt.Errorf("%s: detail of %s: %w", m.Name, task, err)
	}
	return d, true, nil
}

// scoreSection is every metric of every model, with differences and the paper's numbers.
func scoreSection(e *Evaluation) (section, error) {
	s := section{Title: "Scores"}
	if len(e.Models) == 0 {
		return s, nil
	}
	head := []string{"task", "shots", "metric"}
	for i, m := range e.Models {
		head = append(head, m.Name)
		if i > 0 {
			head = append(head, "difference")
		}
	}
	g := grid{ID: "scores", Rows: [][]string{append(head, paperBase, paperDiff)}}
	for k := range e.Models[0].Results {
		first := &e.Models[0].Results[k]
		for i, metric := range first.Metrics {
			row := []string{"", "", metric.Name}
			if i == 0 {
				row[0], row[1] = first.label(), fmt.Sprint(first.Shots)
			}
			for m := range e.Models {
				row = append(row, e.cells(m, first.Task, metric)...)
			}
			base, diff, ok := paperScore(first, metric.Name)
			if ok {
				row = append(row, value(base), value(diff))
			} else {
				row = append(row, "", "")
			}
			for c := range row {
				row[c] = strings.TrimSpace(row[c])
			}
			g.Rows = append(g.Rows, row)
		}
		if list := e.Models[0].Results; first.Group != "" && (k == len(list)-1 || list[k+1].Group != first.Group) && e.sameGroups() {
			for _, row := range e.groupRow(first.Group) {
				g.Rows = append(g.Rows, append(row, paperGroup(first.Group, e.groupSize(first.Group), first.Shots)...))
			}
		}
	}
	s.Tables = []grid{g}
	return s, nil
}

// sameGroups says that all models have the same means, as they have when a file was not changed by hand.
func (e *Evaluation) sameGroups() bool {
	for _, m := range e.Models {
		if len(m.Groups) != len(e.Models[0].Groups) {
			return false
		}
	}
	return true
}
