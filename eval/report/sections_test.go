package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"antiphase/eval"
	"antiphase/eval/task"
)

// Numbers as readers see them: both signs, both sides of every bound, and values that are not finite.
func TestFormats(t *testing.T) {
	for _, c := range []struct {
		x                   float64
		plain, count, short string
	}{
		{0, "0", "", "0"}, {1, "1", "1", "1"}, {0.00123456, "0.00123", "0", "0.00123"}, {9.994, "9.99", "10", "9.99"},
		{10, "10.0", "10", "10"},
		{99.94, "99.9", "100", "99.9"}, {100, "100", "100", "100"}, {999.4, "999", "999", "999"},
		{1000, "1,000", "1,000", "1k"}, {1234.5, "1,234", "1,234", "1.23k"},
		{999999, "999,999", "999,999", "1M"}, {1e6, "1,000,000", "1,000,000", "1M"},
		{12345678, "12,345,678", "12,345,678", "12.3M"},
		{123456789012, "123,456,789,012", "123,456,789,012", "123B"}, {math.NaN(), "–", "–", "–"},
	} {
		for _, sign := range []float64{1, -1} {
			minus := ""
			if sign < 0 && c.x == c.x && c.x != 0 {
				minus = "−"
			}
			signed := func(s string) string {
				if s == "" {
					return s
				}
				return minus + s
			}
			for name, got := range map[string][2]string{"plain": {plain(sign * c.x), signed(c.plain)},
				"count": {count(sign * c.x), signed(c.count)}, "short": {short(sign * c.x), signed(c.short)}} {
				if got[0] != got[1] || !utf8.ValidString(got[0]) {
					t.Errorf("%s of %g: %q, want %q", name, sign*c.x, got[0], got[1])
				}
			}
		}
	}
	for n, want := range map[int]string{0: "0", 1: "1", 1023: "1023", 1024: "1K", 1025: "1025", 65536: "64K"} {
		if got := tokens(n); got != want {
			t.Errorf("%d tokens: %s, want %s", n, got, want)
		}
	}
	if got := percents([]float64{0, 0.256, 1, -0.1}); got != "0 26 100 −10" {
		t.Errorf("percents: %s", got)
	}
}

// The decimals of an error show two digits of it; those of a row are of its smallest error and at most four.
func TestDecimals(t *testing.T) {
	for err, want := range map[float64]int{12: 0, 9.5: 0, 9.4: 1, 1: 1, 0.5: 2, 0.094: 3, 0.001: 4, 1e-9: 6} {
		if got := decimals(err); got != want {
			t.Errorf("error %g: %d decimals, want %d", err, got, want)
		}
	}
	m := func(err float64) eval.Metric { return eval.Metric{Mean: eval.Mean{Value: 1, StdErr: err}} }
	for _, c := range []struct {
		percent bool
		list    []eval.Metric
		want    int
	}{{true, []eval.Metric{m(1e-5)}, 1}, {false, nil, -1}, {false, []eval.Metric{m(0)}, -1},
		{false, []eval.Metric{m(0.5), m(0)}, 2}, {false, []eval.Metric{m(0.01), m(5)}, 3},
		{false, []eval.Metric{m(5), m(1e-7)}, 4}} {
		if got := rowDecimals(c.percent, c.list); got != c.want {
			t.Errorf("%v: %d, want %d", c.list, got, c.want)
		}
	}
	for _, c := range []struct {
		value, err float64
		label      string
		want       string
	}{{math.Inf(1), 0, "", "not a number"}, {-1234567, 3, "", "−1.23e+06"}, {0.5, 0, "a, %", "50.0"},
		{0.5, 0, "", "0.5"}, {0.5, 0.25, "", "0.50 ± 0.25"},
		{0.5, 0.25, "a, %", "50.00 ± 25.00"}, {999999, 2, "", "999999.00 ± 2.00"}} {
		if got := text(&eval.Metric{Label: c.label, Mean: eval.Mean{Value: c.value, StdErr: c.err}}, 2); got != c.want {
			t.Errorf("%+v: %q, want %q", c, got, c.want)
		}
	}
	for _, c := range []struct {
		p       eval.Paired
		percent bool
		digits  int
		want    string
	}{{eval.Paired{}, false, 2, "equal   "},
		{eval.Paired{Diff: 0.5, StdErr: 0.25, PHolm: 0.05}, false, 2, "+0.50 ± 0.25   "},
		{eval.Paired{Diff: -0.5, StdErr: 0.25, PHolm: 0.049}, true, 1, "−50.0 ± 25.0 * "},
		{eval.Paired{Diff: -0.5, StdErr: 0.25, PHolm: 0.01}, false, -1, "−0.5000 ± 0.2500 * "},
		{eval.Paired{Diff: 0, StdErr: 0.25, PHolm: 0.009}, false, 0, "+0 ± 0 **"}} {
		if got := difference(&c.p, c.percent, c.digits); got != c.want {
			t.Errorf("%+v: %q, want %q", c.p, got, c.want)
		}
	}
}

// rowsByFile are the rows of an evaluation by the file that they belong in.
func rowsByFile(e *eval.Evaluation) map[string][]Row {
	files := map[string][]Row{}
	for _, m := range e.Models {
		for _, r := range m.Results {
			for _, x := range r.Metrics {
				name := r.Kind
				if r.Group != "" {
					name = r.Group
				}
				files[name] = append(files[name],
					Row{Task: r.Task, Metric: x.Name, Value: x.Value, StdErr: x.StdErr, N: x.N, Model: m.Name,
						Parameters: m.Parameters, Arch: m.Arch, Hash: m.Hash})
			}
		}
	}
	return files
}

// readRows reads a file of rows.
func readRows(t *testing.T, path string) (got []Row) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r Row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		got = append(got, r)
	}
	return got
}

// Rows are appended to the file of their group, or of their task, each with what reproduces it.
func TestSaveRows(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "results")
	p := fakePage(t)
	e := p.Evaluation
	e.Commit, e.Machine, e.Data = "c0ffee", "m", "d"
	for i := range e.Models { // a name of its own, and a metric of some samples alone
		r := &e.Models[i].Results[0]
		r.Task, r.Metrics[0].N = "own_"+r.Task, r.N-1
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	rows := Rows(e, at, "antiphase eval x")
	want := 0
	for _, m := range e.Models {
		for _, r := range m.Results {
			want += len(r.Metrics)
		}
	}
	if len(rows) != want || want == 0 {
		t.Fatalf("%d rows, want %d", len(rows), want)
	}
	for range 2 { // a second time adds to the files
		if err := SaveRows(dir, rows); err != nil {
			t.Fatal(err)
		}
	}
	files := rowsByFile(e)
	found, _ := os.ReadDir(dir)
	if len(found) != len(files) {
		t.Errorf("%d files, want %d", len(found), len(files))
	}
	for name, want := range files {
		got := readRows(t, filepath.Join(dir, name+".jsonl"))
		if len(got) != 2*len(want) {
			t.Fatalf("%s has %d rows, want %d", name, len(got), 2*len(want))
		}
		for i, g := range got {
			w := want[i%len(want)]
			if g.Commit != "c0ffee" || g.Machine != "m" || g.Data != "d" || g.Seed != 4 || g.Limit != 9 ||
				!g.Time.Equal(at) || g.Command != "antiphase eval x" {
				t.Errorf("%s: row %+v", name, g)
			}
			if g.Task != w.Task || g.Metric != w.Metric || g.Value != w.Value || g.StdErr != w.StdErr || g.N != w.N ||
				g.Model != w.Model || g.Parameters != w.Parameters || g.Arch != w.Arch || g.Hash != w.Hash {
				t.Errorf("%s: row %+v, want %+v", name, g, w)
			}
		}
	}
	if err := SaveRows(filepath.Join(dir, "mc.jsonl"), rows); err == nil {
		t.Error("a file is taken for a folder")
	}
	rows[0].Value = math.NaN()
	if err := SaveRows(dir, rows[:1]); err == nil || !strings.Contains(err.Error(), rows[0].Metric) {
		t.Errorf("a value that is not a number: %v", err)
	}
}

// A line per run with two checkpoints or more, by tokens whatever the order of the models; shares in percent.
func TestTokenSeries(t *testing.T) {
	var cells []*eval.Cell
	add := func(name, run string, tokens int64, share float64) {
		m := eval.Model{Name: name, Hash: name, Run: run, Tokens: tokens}
		cells = append(cells, cellOf(m, 0, made("hellaswag", "mc", "acc", "accuracy, %", 10, share, nil)),
			cellOf(m, 1, made("piqa", "mc", "acc", "accuracy, %", 10, share/2, nil)))
	}
	add("b3", "b", 3000, 0.6)
	add("a", "", 1000, 1)
	add("b1", "b", 1000, 0.2)
	add("c1", "c", 1000, 0.4)
	add("d0", "d", 0, 0.1)
	add("b2", "b", 2000, 0.4)
	add("d1", "d", 500, 0.1)
	add("e2", "e", 5_000_000_000, 0.8)
	add("e1", "e", 1_000_000_000, 0.4)
	p := &Page{Evaluation: eval.Assemble(cells)}
	s, err := tokensSection(p)
	if err != nil || len(s.Figures) != 3 { // one of each question and one of their mean
		t.Fatalf("%d figures, %v", len(s.Figures), err)
	}
	list := tokenSeries(p.Evaluation, func(m *eval.Judged) (eval.Metric, bool) {
		r, ok := m.Find("q hellaswag")
		if !ok {
			return eval.Metric{}, false
		}
		return r.Metric("acc")
	})
	want := map[string][][2]float64{"b": {{1000, 20}, {2000, 40}, {3000, 60}}, "e": {{1e9, 40}, {5e9, 80}}}
	if len(list) != len(want) {
		t.Errorf("%d lines, want %d", len(list), len(want))
	}
	for _, x := range list {
		if !slices.Equal(x.line, want[x.name]) || len(x.err) != len(x.line) || x.err[0] < 5 {
			t.Errorf("%s: %v ± %v, want %v", x.name, x.line, x.err, want[x.name])
		}
	}
	if list[0].class == list[1].class {
		t.Error("two runs in one colour")
	}
	for tokens, want := range map[int64]int{0: 0, 2000: 4} { // the paper's figure stands beside one of ours only
		var cells []*eval.Cell
		for i, kind := range []string{"gsm8k", "svamp", "gsm8k", "svamp"} {
			model := eval.Model{Name: fmt.Sprint("m", i/2), Hash: fmt.Sprint("m", i/2), Run: "r",
				Tokens: tokens * int64(1+i/2)}
			cells = append(cells, cellOf(model, i%2, made(kind, "math", "acc", "accuracy, %", 4, 0.5, nil)))
		}
		s, err := tokensSection(&Page{Evaluation: eval.Assemble(cells)})
		if err != nil || len(s.Figures) != want || want > 0 && s.Figures[want-1].ID != "tokens-paper" {
			t.Errorf("%d tokens: %d figures, %v", tokens, len(s.Figures), err)
		}
	}
}

// Sections of noise and of retrieval show each model's own numbers.
func TestDoseAndLength(t *testing.T) {
	mean := func(v float64) eval.Mean { return eval.Mean{Value: v, StdErr: 0.05, N: 10} }
	var cells []*eval.Cell
	for i, name := range []string{"A", "B"} {
		x := float64(i)
		curve := func(kind string) task.NoiseCurve {
			return task.NoiseCurve{Kind: kind, Label: kind + " noise", Unit: "share", Doses: []float64{0, 0.5},
				Scores: []eval.Mean{mean(0.9), mean(0.5 + x/4)}, Area: mean(0.7 + x/8)}
		}
		model := eval.Model{Name: name, Hash: name, Context: 64}
		cells = append(cells,
			cellOf(model, 0, made("noise", "", "area", "area, %", 4, 1,
				task.NoiseDetail{Task: "piqa", Metric: "acc", Shots: 2, StandIn: true,
					Curves: []task.NoiseCurve{curve("letters"), curve("words")}})),
			cellOf(model, 1, made("needle_hop", "", "bound", "right, %", 4, 1,
				task.HiddenDetail{Lengths: []int{64, 128}, Cells: []string{"1 hop", "2 hops"},
					Scores: map[string][][]eval.Mean{"bound": {{mean(1), mean(0.75)},
						{mean(0.5), mean(0.25 + x/8)}}}})),
			cellOf(model, 2, made("ruler_values", "", "bound", "right, %", 4, 1,
				task.HiddenDetail{Lengths: []int{64}, Scores: map[string][][]eval.Mean{"bound": {{mean(1)}}}})))
	}
	p := &Page{Evaluation: eval.Assemble(cells)}
	s, err := noiseSection(p)
	if err != nil || len(s.Figures) != 2 || len(s.Tables) != 1 {
		t.Fatalf("%d figures, %d tables, %v", len(s.Figures), len(s.Tables), err)
	}
	want := [][]string{{"noise", "A", "B"}, {"letters noise", "70.0 ± 5.0", "82.5 ± 5.0"},
		{"words noise", "70.0 ± 5.0", "82.5 ± 5.0"}}
	if got := s.Tables[0].Rows; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	if f := s.Figures[0]; f.Note != "acc of piqa, 2-shot; generated questions" || f.ID == s.Figures[1].ID ||
		!strings.Contains(fmt.Sprint(f.rows), "0.75") {
		t.Errorf("figure %q of %v", f.Note, f.rows)
	}
	if s, err = hiddenSection(p); err != nil || len(s.Figures) != 2 { // a single length has no figure
		t.Fatalf("%d figures, %v", len(s.Figures), err)
	}
	for i, want := range []string{"1 hop", "2 hops"} {
		f := s.Figures[i]
		if !strings.HasSuffix(f.Title, want) || strings.Contains(fmt.Sprint(f.rows), "0.375") != (i == 1) {
			t.Errorf("figure %q of %v", f.Title, f.rows)
		}
	}
}

// Of three sides each two are compared, by the headline measure of each question, shares in percent.
func TestPairs(t *testing.T) {
	var cells []*eval.Cell
	for i, name := range []string{"A", "B", "C"} {
		model := eval.Model{Name: name, Hash: name}
		model.Group = name
		cells = append(cells, cellOf(model, 0, made("piqa", "", "acc", "accuracy, %", 40, 0.25*float64(i+1), nil)))
	}
	twin := eval.Model{Name: "C2", Hash: "C2", Group: "C"}
	p := &Page{Evaluation: eval.Assemble(append(cells,
		cellOf(twin, 0, made("piqa", "", "acc", "accuracy, %", 40, 0.75, nil))))}
	s, err := pairsSection(p)
	if err != nil || len(s.Tables) != 1 {
		t.Fatalf("%d tables, %v", len(s.Tables), err)
	}
	got := map[string]string{}
	for _, r := range s.Tables[0].Rows[1:] {
		got[r[2]+r[3]] = r[4]
		if want := map[string]string{"AB": "1, 1", "AC": "1, 2", "BC": "1, 2"}[r[2]+r[3]]; r[8] != want {
			t.Errorf("%v: models %s, want %s", r, r[8], want)
		}
		for k, col := range []int{5, 6} {
			var pair eval.Paired
			for _, x := range p.Evaluation.Paired {
				if x.A == r[2] && x.B == r[3] {
					pair = x
				}
			}
			if want := show("%.4g", 100*[]float64{pair.Low, pair.High}[k]); r[col] != want {
				t.Errorf("%v: bound %s, want %s", r, r[col], want)
			}
		}
	}
	if want := map[string]string{"AB": "+25", "AC": "+50", "BC": "+25"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	two := &Page{Evaluation: eval.Assemble(cells[:2])}
	if s, err := pairsSection(two); err != nil || len(s.Tables) != 0 {
		t.Errorf("two sides: %d tables, %v", len(s.Tables), err)
	}
}
