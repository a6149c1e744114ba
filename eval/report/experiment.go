package report

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"antiphase/eval"
)

// Experiment is what a comparison over seeds shows besides the scores: verdicts, curves of every seed, and tables.
type Experiment struct {
	Lead     string    `json:"lead,omitempty"` // the page's first sentence
	Verdicts []Verdict `json:"verdicts,omitempty"`
	Rule     string    `json:"rule,omitempty"`   // how verdicts are reached
	Curves   []Bundle  `json:"curves,omitempty"` // the first is the page's first figure
	Tables   []Listing `json:"tables,omitempty"`
	Words    []Word    `json:"words,omitempty"`
	Next     []string  `json:"next,omitempty"` // what to do next
}

// Word is an explained term of the page.
type Word struct {
	Word string `json:"word"`
	Says string `json:"says"`
}

// Verdict is a claim with its result.
type Verdict struct {
	Claim   string `json:"claim"`
	Source  string `json:"source"`
	Figure  string `json:"figure"` // with its 95 % interval
	Basis   string `json:"basis"`  // sizes, tokens, seeds
	Verdict string `json:"verdict"`
	Command string `json:"command,omitempty"`
}

// Bundle is a quantity over training of several sides, with one line per seed.
type Bundle struct {
	ID    string       `json:"id"`
	Title string       `json:"title"`
	Note  string       `json:"note,omitempty"`
	Y     string       `json:"y"`
	Share bool         `json:"share,omitempty"` // values are from 0 to 1
	Floor *float64     `json:"floor,omitempty"`
	Sides []BundleSide `json:"sides"`
}

// BundleSide is one side's lines: training tokens and value.
type BundleSide struct {
	Name  string         `json:"name"`
	Place int            `json:"place"` // of the side among all: its colour
	Lines [][][2]float64 `json:"lines"`
}

// Listing is a table; its first row is the head.
type Listing struct {
	Title string     `json:"title"`
	Note  string     `json:"note,omitempty"`
	Rows  [][]string `json:"rows"`
}

func init() {
	register(5, verdictSection)
	register(15, bundleSection)
	register(16, listingSection)
	register(200, wordSection)
}

func wordSection(p *Page) (section, error) {
	s := section{Title: "Words"}
	if p.Experiment == nil || len(p.Experiment.Words) == 0 {
		return s, nil
	}
	var b strings.Builder
	b.WriteString(`<dl class="words">`)
	for _, w := range p.Experiment.Words {
		fmt.Fprintf(&b, "<dt>%s</dt><dd>%s</dd>", escaped(w.Word), escaped(w.Says))
	}
	b.WriteString("</dl>")
	s.Blocks = append(s.Blocks, template.HTML(b.String())) // every text in it is escaped
	return s, nil
}

func verdictSection(p *Page) (section, error) {
	s := section{Title: "Verdicts"}
	if p.Experiment == nil || len(p.Experiment.Verdicts) == 0 {
		return s, nil
	}
	s.Lead = p.Experiment.Rule
	var b strings.Builder
	b.WriteString(`<div class="verdicts" id="verdicts">`)
	for _, v := range p.Experiment.Verdicts {
		fmt.Fprintf(&b, `<div class="v %s"><b>%s</b><p>%s <span class="found">%s</span><br/>`+
			`<span class="note">%s; %s</span></p></div>`,
			slug(v.Verdict), escaped(v.Verdict), escaped(v.Claim), escaped(v.Figure), escaped(v.Basis),
			escaped(v.Source))
	}
	b.WriteString("</div>")
	s.Blocks = append(s.Blocks, template.HTML(b.String())) // every text in it is escaped
	return s, nil
}

func listingSection(p *Page) (section, error) {
	s := section{Title: "All runs"}
	if p.Experiment == nil {
		return s, nil
	}
	for _, t := range p.Experiment.Tables {
		s.Tables = append(s.Tables, grid{ID: slug(t.Title), Title: t.Title, Note: t.Note, Rows: t.Rows})
	}
	return s, nil
}

func bundleSection(p *Page) (section, error) {
	s := section{Title: "Over training",
		Lead: "Lines are means over seeds, bands reach from the lowest to the highest seed."}
	if p.Experiment == nil {
		return s, nil
	}
	for i := range p.Experiment.Curves {
		if i > 0 { // the first opens the page
			s.Figures = append(s.Figures, p.Experiment.Curves[i].figure())
		}
	}
	return s, nil
}

// figure draws the bundle.
func (b *Bundle) figure() figure {
	f := figure{ID: b.ID, Title: b.Title, Note: b.Note, rows: [][]string{{"side", "seed", "training tokens", b.Y}}}
	var list []series
	var ranges [][][2]float64
	last := 0.0
	for _, side := range b.Sides {
		x := series{name: side.Name, class: sideClass(side.Place), format: "%.3g"}
		x.line, x.band = meanLine(side.Lines)
		for k, l := range side.Lines {
			for _, q := range l {
				f.rows = append(f.rows, []string{side.Name, fmt.Sprint(k + 1), value(q[0]), value(q[1])})
				last = max(last, q[0])
			}
		}
		for _, q := range x.band {
			ranges = append(ranges, [][2]float64{{q[0], q[1]}, {q[0], q[2]}})
		}
		list = append(list, x)
	}
	if b.Floor != nil {
		list = append(list, series{name: "floor", class: "quiet", dashed: true,
			line: [][2]float64{{0, *b.Floor}, {last, *b.Floor}}})
	}
	if !b.Share { // the first steps of a loss are above the frame
		ranges = slices.DeleteFunc(ranges, func(r [][2]float64) bool { return r[0][0] < last/10 })
	}
	lo, hi := extent(ranges...)
	if b.Share {
		lo, hi = 0, 1
	}
	f.SVG = lineChart(b.Title, "training tokens", scale{lo: 0, hi: last}, scale{lo: lo, hi: hi}, list)
	return f
}

// meanLine is the mean of lines at the points of the first, as far as all reach, and the band between the lowest and
// the highest.
func meanLine(lines [][][2]float64) (mean [][2]float64, band [][3]float64) {
	if len(lines) == 0 {
		return nil, nil
	}
	n := len(lines[0])
	for _, l := range lines {
		n = min(n, len(l))
	}
	for i := range n {
		at := lines[0][i][0]
		sum, lo, hi := 0.0, lines[0][i][1], lines[0][i][1]
		for _, l := range lines {
			sum, lo, hi = sum+l[i][1], min(lo, l[i][1]), max(hi, l[i][1])
		}
		mean = append(mean, [2]float64{at, sum / float64(len(lines))})
		band = append(band, [3]float64{at, lo, hi})
	}
	return mean, band
}

// lead is the page's first sentence and first figure.
func (x *Experiment) lead() (sentence string, f *figure) {
	if len(x.Curves) > 0 {
		first := x.Curves[0].figure()
		f = &first
	}
	return x.Lead, f
}

// opening is the sentence and the figure at the beginning of a page.
func (p *Page) opening(e *eval.Evaluation) (string, *figure) {
	if p.Experiment != nil {
		return p.Experiment.lead()
	}
	return p.verdict(), leadFigure(e)
}

// next is what to do after reading.
func (p *Page) next() []string {
	if p.Experiment == nil {
		return nil
	}
	return p.Experiment.Next
}
