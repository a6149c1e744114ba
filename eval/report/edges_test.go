package report

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"antiphase/eval"
	"antiphase/eval/task"
)

// Numbers at the edges of their forms.
func TestFormsOfNumbers(t *testing.T) {
	of := func(label string, v, err float64) *eval.Metric {
		return &eval.Metric{Label: label, Mean: eval.Mean{Value: v, StdErr: err}}
	}
	for _, c := range []struct {
		m      *eval.Metric
		digits int
		want   string
	}{
		{of("loss", 999999, 1), 0, "999999 ± 1"}, {of("loss", 1e6, 1), 0, "1e+06"}, {of("loss", -2e6, 1), 0, "−2e+06"},
		{of("share, %", 2e4, 100), 0, "2000000 ± 10000"},
		{of("loss", 2.25, 0.5), -1, "2 ± 0"}, {of("share, %", 0.25, 0), 2, "25.0"},
		{of("loss", math.Inf(1), 0), 2, "not a number"},
	} {
		if got := text(c.m, c.digits); got != c.want {
			t.Errorf("%+v in %d digits: %q, want %q", c.m.Mean, c.digits, got, c.want)
		}
	}
	for _, c := range []struct {
		p    eval.Paired
		want string
	}{
		{eval.Paired{}, "equal   "}, {eval.Paired{Diff: 0.5}, "+0.5000 ± 0.0000 **"},
		{eval.Paired{StdErr: 0.25, PHolm: 1}, "+0.0000 ± 0.2500   "},
		{eval.Paired{Diff: -1, StdErr: 0.5, PHolm: 0.01}, "−1.0000 ± 0.5000 * "},
		{eval.Paired{Diff: 1, StdErr: 0.5, PHolm: 0.05}, "+1.0000 ± 0.5000   "},
	} {
		if got := difference(&c.p, false, -1); got != c.want {
			t.Errorf("%+v: %q, want %q", c.p, got, c.want)
		}
	}
	for v, want := range map[float64]string{0: "", 7: "7", 999: "999", 1000: "1,000", -1234567: "−1,234,567",
		100000: "100,000", math.Inf(1): "–", math.Inf(-1): "–"} {
		if got := count(v); got != want {
			t.Errorf("%g: %q, want %q", v, got, want)
		}
	}
	if paint(true, "", "x") != "x" || paint(false, "1", "x") != "x" || paint(true, "1", "x") != "\x1b[1mx\x1b[0m" {
		t.Error("a style where there is none, or none where there is one")
	}
	for s, want := range map[string]string{"az 09": "az-09", "{`/:": "", "Größe 1": "gr--e-1", "A_Z": "a-z", "": ""} {
		if got := slug(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
	for s, want := range map[string]string{"a/b c": "a_b_c", "a\x01b\x7f": "a_b_", "..": "_..", "": "_", ".a": ".a",
		strings.Repeat("é", 70): strings.Repeat("é", 64)} {
		if got := fileName(s); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
	e := &eval.Evaluation{Models: []eval.Judged{{Model: eval.Model{Name: "a"}},
		{Model: eval.Model{Name: "a", Hash: "0123456789"}}, {Model: eval.Model{Name: "a", Hash: "012"}}}}
	if got := folderNames(e); !slices.Equal(got, []string{"a", "a_01234567", "a_012"}) {
		t.Errorf("%q", got)
	}
	if got := latexText("a\x7fb~"); got != `a?b\textasciitilde{}` {
		t.Errorf("%q", got)
	}
}

// Extremes may be in any line: the first, one in the middle, the last.
func TestExtremesOfSeveral(t *testing.T) {
	lines := []series{{line: [][2]float64{{3, 1}, {7, 9}}}, {line: [][2]float64{{1, -2}, {12, 4}}},
		{line: [][2]float64{{2, 0}, {8, 5}}}}
	for range lines {
		lines = append(lines[1:], lines[0])
		if x, y := around(lines); x.lo != 1 || x.hi != 12 || y.lo > -2 || y.hi < 9 {
			t.Errorf("%+v and %+v", x, y)
		}
	}
	seeds := [][][2]float64{{{1, 5}, {2, 9}, {3, 1}}, {{1, 1}, {2, 3}}, {{1, 3}, {2, 6}, {3, 9}, {4, 4}}}
	for range seeds {
		seeds = append(seeds[1:], seeds[0])
		mean, band := meanLine(seeds)
		if !slices.Equal(mean, [][2]float64{{1, 3}, {2, 6}}) ||
			!slices.Equal(band, [][3]float64{{1, 1, 5}, {2, 3, 9}}) {
			t.Errorf("%v, %v", mean, band)
		}
	}
	floor := 0.5
	for _, ends := range [][2]float64{{40, 90}, {90, 40}} {
		b := &Bundle{Y: "y", Share: true, Floor: &floor}
		for i, end := range ends {
			b.Sides = append(b.Sides, BundleSide{Name: fmt.Sprint(i), Place: i,
				Lines: [][][2]float64{{{0, 0.2}, {end, 0.4}}}})
		}
		if got := labels(string(b.figure().SVG), "tick mid"); len(got) == 0 || got[len(got)-1] != "80" {
			t.Errorf("the axis to %v has %q", ends, got)
		}
	}
	bars := []task.Segments{{Before: -0.5, Answer: 1.5}, {BOS: 0.5, Answer: 0.5}}
	for range bars {
		slices.Reverse(bars)
		for _, s := range shapes(string(segmentBars("x", []float64{0, 1}, bars)), "rect") {
			var class string
			var x, y, w, h float64
			if _, err := fmt.Sscan(s, &class, &x, &y, &w, &h); err != nil || x < 46 || x+w > 262.01 {
				t.Errorf("%s is outside 46 to 262, %v", s, err)
			}
		}
	}
	if short, long := labelRoom([]series{{name: "äöü"}, {name: "b"}}),
		labelRoom([]series{{name: strings.Repeat("a", 99)}}); !(math.Abs(short-22.2) < 1e-9) || long != chartWidth/3 {
		t.Errorf("room of %g and %g", short, long)
	}
	y := scale{lo: 1, hi: 3, from: 200, to: 0}
	got := y.inside(scale{lo: 0, hi: 10, from: 0, to: 100}, [][2]float64{{0, 2}, {1, 4}, {2, 3}, {3, 1}, {4, -7}})
	if !slices.Equal(got, [][2]float64{{20, 0}, {30, 200}, {40, 200}}) {
		t.Errorf("%v", got)
	}
}

// Colours stay within their strengths; what is no number is not drawn; heads are compared with the strongest of all.
func TestStrengths(t *testing.T) {
	svg := string(heatChart("x", "s0", "row", "col", []string{"r"}, []string{"a", "b", "c", "d"},
		func(_, c int) (eval.Mean, bool) {
			return eval.Mean{Value: []float64{-0.5, 2, math.NaN(), 1}[c]}, true
		}))
	opacities := func(svg string) (out []string) {
		for _, s := range shapes(svg, "rect") {
			if f := strings.Fields(s); f[0] != "field" {
				out = append(out, f[len(f)-1])
			}
		}
		return out
	}
	if got := opacities(svg); !slices.Equal(got, []string{"0", "0.85", "0.85"}) {
		t.Errorf("%q", got)
	}
	for _, c := range []struct {
		heads [][]float64
		want  string
	}{{[][]float64{{0.1, -0.2}, {0.4, 0}}, "0.21 0 0.85 0"}, {[][]float64{{0.1, -0.4}, {0.2}}, "0.21 0 0.43"},
		{[][]float64{{0, 0}}, "0 0"}} {
		m := &shown[task.InterventionsDetail]{Class: "s0", Detail: task.InterventionsDetail{Heads: c.heads}}
		if got := strings.Join(opacities(string(headsFigure("x", m).SVG)), " "); got != c.want {
			t.Errorf("%v: %s, want %s", c.heads, got, c.want)
		}
	}
	for x, want := range map[float64]float64{0: 0, 0.25: 0.5, -0.25: 0.5, 1: 1, 4: 1, -9: 1} {
		if strength(x) != want {
			t.Errorf("%g has the strength %g, want %g", x, strength(x), want)
		}
	}
	if signClass(0) != "pos" || signClass(-0.1) != "neg" {
		t.Error("the colour of zero")
	}
	x := &task.MapExample{Units: []string{"a", "b", "c", "d"}, Answer: [2]int{1, 3}, Query: 4,
		Maps: []task.Matrix{{Rows: [][]float64{{1}, {1}, {1}, {5e-4, -5e-4, 4e-4, 0.1}}}}}
	if err := checkMaps(x); err != nil {
		t.Error(err)
	}
	x.Answer[0], x.Query = 0, 0
	if err := checkMaps(x); err != nil {
		t.Error(err)
	}
	if got := shapes(string(mapChart(x, &x.Maps[0])), "rect"); len(got) != 6 { // 4e-4 is below what is drawn
		t.Errorf("%q", got)
	}
	x.Answer[0] = 1
	var in []bool
	for _, s := range strings.SplitAfter(string(promptHeat(x)), "</span>") {
		if s != "" {
			in = append(in, strings.Contains(s, " in\""))
		}
	}
	if !slices.Equal(in, []bool{false, true, true, false}) {
		t.Errorf("in the answer: %v", in)
	}
}

// A page of models that were asked different things has what each was asked; details that are missing or empty have
// neither figure nor table.
func TestPageOfGaps(t *testing.T) {
	for _, odd := range []int{0, 1} {
		var cells []*eval.Cell
		for i, name := range []string{"A", "B"} {
			for k, r := range fakeResults(float64(i)) {
				if k%2 == (i+odd)%2 {
					cells = append(cells, cellOf(eval.Model{Name: name, Hash: name}, k, r))
				}
			}
		}
		wellFormed(t, renderPage(t, &Page{Evaluation: eval.Assemble(cells)}))
	}
	for _, detail := range []any{nil, struct{}{}} {
		var cells []*eval.Cell
		for k, r := range fakeResults(0) {
			if detail != nil && !slices.Contains([]string{"lm", "icl_trec", "lowbit", "interventions", "gradients"},
				r.Kind) {
				continue // their axes come from the detail
			}
			r.Detail = nil
			if detail != nil {
				if err := r.SetDetail(detail); err != nil {
					t.Fatal(err)
				}
			}
			cells = append(cells, cellOf(eval.Model{Name: "A", Hash: "a"}, k, r))
		}
		list, err := allSections(&Page{Evaluation: eval.Assemble(cells)})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			for _, f := range s.Figures {
				if f.SVG != "" {
					t.Errorf("%v: %s has the figure %s", detail, s.Title, f.ID)
				}
			}
			for _, g := range s.Tables {
				if len(g.Rows) < 2 {
					t.Errorf("%v: %s has the table %s of %q", detail, s.Title, g.ID, g.Rows)
				}
			}
		}
	}
	if f := lambdaFigure("x", []shown[task.AttentionDetail]{{Name: "plain"}}); f.SVG != "" {
		t.Error("a figure of λ without λ")
	}
}

// A page of nothing is a table of two columns; tasks have a space between them, and the legend is below.
func TestLaTeXOfGaps(t *testing.T) {
	var tex bytes.Buffer
	if err := (&Page{}).LaTeX(&tex); err != nil || !strings.Contains(tex.String(), `\begin{tabular}{ll}`) {
		t.Errorf("%s, %v", tex.String(), err)
	}
	p := fakePage(t)
	tex.Reset()
	if err := p.LaTeX(&tex); err != nil {
		t.Fatal(err)
	}
	tasks := 0
	for _, l := range p.lines() {
		if l.task != "" {
			tasks++
		}
	}
	if n := strings.Count(tex.String(), "\\addlinespace\n"); n != tasks-1 ||
		strings.Contains(tex.String(), "\\midrule\n\\addlinespace") {
		t.Errorf("%d spaces between %d tasks", n, tasks)
	}
	legend := p.legend(floorNames(p.lines()))
	if _, below, _ := strings.Cut(tex.String(), "\\end{tabular}\n"); strings.Count(below, "\n") != len(legend) ||
		strings.Count(below, "% ") < len(legend) || len(legend) == 0 {
		t.Errorf("below the table %q, want %q", below, legend)
	}
}

// Files beside a page: the first figure's, and one of every table.
func TestFilesOfEverything(t *testing.T) {
	p := fakePage(t)
	files, err := p.Files()
	if err != nil {
		t.Fatal(err)
	}
	text := map[string]string{}
	for _, f := range files {
		text[f.Name] = string(f.Data)
	}
	list, err := allSections(p)
	if err != nil {
		t.Fatal(err)
	}
	tables := 0
	for _, s := range list {
		for _, g := range s.Tables {
			tables++
			if text[g.ID+".csv"] != string(csvBytes(g.Rows)) {
				t.Errorf("%s.csv is %q", g.ID, text[g.ID+".csv"])
			}
		}
	}
	lead := leadFigure(p.Evaluation)
	if tables == 0 || text["lead.svg"] == "" || text["lead.csv"] != string(csvBytes(lead.rows)) {
		t.Errorf("%d tables, first figure %q", tables, text["lead.csv"])
	}
}

// The first figure has a row for each headline with a direction on which both were compared. A dot has the colour of
// the better side only if the difference is significant and that side is above its floors, and stays in the frame.
func TestLeadRows(t *testing.T) {
	const far = 1000
	e := &eval.Evaluation{Models: []eval.Judged{{Model: eval.Model{Name: "A"}}, {Model: eval.Model{Name: "B"}}}}
	add := func(name string, better eval.Better, a, b, diff, half, p float64) {
		for i, v := range []float64{a, b} {
			m := eval.Metric{Name: "m", Mean: eval.Mean{Value: v}, Better: better,
				Floors: map[string]float64{"chance": 0.5}}
			e.Models[i].Results = append(e.Models[i].Results, eval.Result{Question: name, Task: name, Kind: name,
				Place: len(e.Models[i].Results), Metrics: []eval.Metric{m}})
		}
		e.Paired = append(e.Paired, eval.Paired{Question: name, Metric: "m", A: "A", B: "B", Diff: diff,
			Low: diff - half, High: diff + half, PHolm: p})
	}
	if leadFigure(e) != nil {
		t.Error("a figure of nothing")
	}
	want := []string{}
	for _, c := range []struct {
		name             string
		better           eval.Better
		a, b, diff, half float64
		p                float64
		class            string
		at               float64 // in units of half the interval
	}{
		{"up", eval.Higher, 0.6, 0.8, 0.2, 0.1, 0.01, "s1", 2},
		{"down", eval.Higher, 0.8, 0.6, -0.2, 0.1, 0.01, "s0", -2},
		{"fewer", eval.Lower, 0.8, 0.6, -0.2, 0.1, 0.01, "s1", 2},
		{"more", eval.Lower, 0.6, 0.8, 0.2, 0.1, 0.01, "s0", -2},
		{"unclear", eval.Higher, 0.6, 0.8, 0.2, 0.1, 0.05, "quiet", 2},
		{"A guesses", eval.Higher, 0.4, 0.8, 0.4, 0.2, 0.01, "s1", 2},
		{"B guesses", eval.Higher, 0.8, 0.4, -0.4, 0.2, 0.01, "s0", -2},
		{"both guess", eval.Higher, 0.3, 0.4, 0.1, 0.05, 0.01, "quiet", 2},
		{"far above", eval.Higher, 0.6, 0.8, far, 1, 0.01, "s1", 3},
		{"far below", eval.Higher, 0.8, 0.6, -far, 1, 0.01, "s0", -3},
		{"neither", eval.Neither, 0.6, 0.8, 0.2, 0.1, 0.01, "", 0},
		{"no interval", eval.Higher, 0.6, 0.8, 0.2, 0, 0.01, "", 0},
	} {
		add(c.name, c.better, c.a, c.b, c.diff, c.half, c.p)
		if c.class != "" {
			x := scale{lo: -4, hi: 4, from: 190, to: chartWidth - 12}.at(c.at)
			want = append(want, c.class+" dot "+num(x))
		}
	}
	for i := range e.Models {
		e.Models[i].Results = append(e.Models[i].Results, eval.Result{Question: "none", Task: "none", Kind: "none"})
	}
	f := leadFigure(e)
	var got []string
	for _, s := range shapes(string(f.SVG), "circle") {
		got = append(got, strings.Join(strings.Fields(s)[:3], " "))
	}
	if !slices.Equal(got, want) || len(f.rows) != len(want)+1 {
		t.Errorf("%d rows\n%q\n%q", len(f.rows), got, want)
	}
	e.Models = append(e.Models, eval.Judged{Model: eval.Model{Name: "C"}})
	if leadFigure(e) != nil {
		t.Error("a figure of three sides")
	}
}

// A series of bits has the rows of its kind only, by bits; a curve of gradients needs two points; a group's means are
// its own.
func TestRowsOfAKind(t *testing.T) {
	row := func(of, per string, bits int) task.LowbitRow {
		return task.LowbitRow{Of: of, Per: per, Bits: bits, Score: eval.Mean{Value: float64(bits)}}
	}
	m := &shown[task.LowbitDetail]{Detail: task.LowbitDetail{Rows: []task.LowbitRow{row("logits", "usual", 8),
		row("cache", "usual", 6), row("logits", "row", 5), row("logits", "usual", 4)}}}
	x := bitSeries(m, lowbitKind{of: "logits", per: "usual"}, func(r *task.LowbitRow) *eval.Mean { return &r.Score })
	if !slices.Equal(x.line, [][2]float64{{4, 4}, {8, 8}}) {
		t.Errorf("%v", x.line)
	}
	group := func(name string, points ...[2]float64) []Training {
		return []Training{{Model: "a", Groups: []GroupCurve{{Name: name, Points: points}}}}
	}
	for _, c := range []struct {
		list []Training
		want bool
	}{{group("q", [2]float64{1, 2}), false}, {group("q", [2]float64{1, 2}, [2]float64{2, 2}), true},
		{group("o", [2]float64{1, 2}, [2]float64{2, 2}), false}, {nil, false}} {
		if _, ok := groupCurves(c.list); ok != c.want {
			t.Errorf("%+v: %v", c.list, ok)
		}
	}
	e := &eval.Evaluation{Models: []eval.Judged{{Model: eval.Model{Name: "A"}}}}
	for i, name := range []string{"g1", "g2", "h1", "h2"} {
		e.Models[0].Results = append(e.Models[0].Results, eval.Result{Question: name, Task: name, Kind: name,
			Group: name[:1], Place: i, Metrics: []eval.Metric{{Name: "acc", Mean: eval.Mean{Value: float64(i)}}}})
	}
	for group, want := range map[string]float64{"g": 0.5, "h": 2.5} {
		got := groupMeans(e, e.Sides(), group)
		if len(got) != 1 || got[0].Metric.Value != want || !strings.HasPrefix(got[0].title, group+", mean of 2") {
			t.Errorf("%s: %+v", group, got)
		}
	}
}
