package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"antiphase/eval"
)

// several are results of one model.
func several(list ...*eval.Result) *eval.Evaluation {
	var cells []*eval.Cell
	for i, r := range list {
		r.Question = fmt.Sprint("q", i)
		cells = append(cells, cellOf(eval.Model{Name: "A", Hash: "a"}, i, r))
	}
	return eval.Assemble(cells)
}

// A question is named by its task and by what tells it from others of the task: examples, needles, settings that
// differ; those that nothing tells apart are numbered.
func TestTitles(t *testing.T) {
	of := func(kind string, shots int, config map[string]any) *eval.Result {
		r := made(kind, "", "acc", "accuracy, %", 4, 0.5, nil)
		r.Shots, r.Config = shots, config
		return r
	}
	other := of("boolq", 0, map[string]any{"style": "c", "more": 1}) // of another name, and so of another task
	other.Task = "mine"
	e := several(of("piqa", 0, nil), of("piqa", 5, nil),
		of("needle", 0, map[string]any{"needles": 4, "queries": 2, "lengths": []int{0}, "text_hash": "x"}),
		of("needle", 0, map[string]any{"needles": 4, "queries": 2, "lengths": []int{128}, "text_hash": "y"}),
		of("lm", 0, map[string]any{"pieces": 8, "source": "a"}),
		of("lm", 0, map[string]any{"pieces": 8, "source": "b"}), of("boolq", 0, map[string]any{"style": "a"}),
		of("boolq", 0, map[string]any{"style": "b"}),
		of("copa", 0, map[string]any{"prompts_cut": 3}), of("copa", 5, map[string]any{"prompts_cut": 4}),
		of("hop", 0, map[string]any{"needles": 3}), other)
	var got []string
	names := titles(e)
	for i := range 12 {
		got = append(got, names[fmt.Sprint("q", i)])
	}
	want := []string{"piqa", "piqa 5-shot", "needle N=4 R=2 lengths=[64]", "needle N=4 R=2 lengths=[128]", "lm",
		"lm (2)", "boolq style=a", "boolq style=b", "copa", "copa 5-shot", "hop", "boolq°"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The mean of a group stands after its last question, over the sets that all models have, in percent.
func TestGroupMeans(t *testing.T) {
	var cells []*eval.Cell
	for i, name := range []string{"A", "B"} {
		for k, kind := range []string{"piqa", "boolq", "lm"} {
			group := "mc"
			if kind == "lm" {
				group = ""
			}
			cells = append(cells, cellOf(eval.Model{Name: name, Hash: name}, k,
				made(kind, group, "acc", "accuracy, %", 8, 0.25*float64(1+k+i), nil)))
		}
	}
	p := &Page{Evaluation: eval.Assemble(cells)}
	var order []string
	for _, x := range p.lines() {
		order = append(order, x.task)
		if strings.HasPrefix(x.task, "mc, mean") &&
			(x.measure != "acc, %" || !strings.HasPrefix(x.cells[0].text, "37.5 ±") ||
				!strings.HasPrefix(x.cells[1].text, "62.5 ±")) {
			t.Errorf("%+v", x)
		}
	}
	if want := []string{"piqa", "boolq", "mc, mean of 2", "lm"}; !slices.Equal(order, want) {
		t.Errorf("%q, want %q", order, want)
	}
}

// A sentence counts the headline measures that one side wins, names up to four of them, and what cannot be told apart.
func TestVerdictSentence(t *testing.T) {
	page := func(shares ...[2]float64) string {
		var cells []*eval.Cell
		for i, name := range []string{"A", "B"} {
			for k, s := range shares {
				kind := fmt.Sprint("t", k)
				cells = append(cells, cellOf(eval.Model{Name: name, Hash: name}, k,
					made(kind, "", "acc", "accuracy, %", 200, s[i], nil)))
			}
		}
		return (&Page{Evaluation: eval.Assemble(cells)}).verdict()
	}
	win, lose, tie := [2]float64{0.2, 0.9}, [2]float64{0.9, 0.2}, [2]float64{0.5, 0.5}
	for want, got := range map[string]string{
		"Of 3 headline measures, A is better in 1 (t1), B is better in 1 (t0); 1 cannot be told apart.": page(
			win, lose, tie),
		"Of 4 headline measures, A is better in 0, B is better in 4 (t0, t1, t2, t3); 0 cannot be told apart.": page(
			win, win, win, win),
		"Of 5 headline measures, A is better in 0, B is better in 5; 0 cannot be told apart.": page(win, win,
			win, win, win),
		"": (&Page{Evaluation: several(made("x", "", "m", "m", 4, 1, nil))}).verdict(),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Where, when and on what: only what is known.
func TestAbout(t *testing.T) {
	e := several(made("x", "", "m", "m", 4, 1, nil))
	e.Machine, e.Date, e.Commit, e.Data, e.Seed, e.Limit = "m", "d", "c", "f", 4, 9
	p := &Page{Evaluation: e, Seconds: 3725.4}
	if got := strings.Join(p.about(),
		"|"); got != "m|d|commit c|data of f|seed 4|at most 9 samples of each task|1h2m5s from start to end" {
		t.Errorf("%q", got)
	}
	bare := &Page{Evaluation: &eval.Evaluation{Models: []eval.Judged{{}}}}
	if got := strings.Join(bare.about(), "|"); got != "generated text and questions|seed 0" {
		t.Errorf("%q", got)
	}
	if got := (&Page{}).about(); len(got) != 0 {
		t.Errorf("of nothing: %q", got)
	}
	e.Models[0].Results[0].Config = map[string]any{"judge": "j", "judge_prompt": "is it <so>?"}
	if got := judgeNote(e); len(got) != 1 || got[0] != "The judge, j, was asked: “is it <so>?”" {
		t.Errorf("%q", got)
	}
	if got := indented(json.RawMessage(`{"a":1}`)); got != "{\n  \"a\": 1\n}" {
		t.Errorf("%q", got)
	}
	if got := indented(json.RawMessage(`{`)); got != "{" {
		t.Errorf("%q", got)
	}
}

// One model's results stand alone, several in a list with their differences; what a model could not be asked is said in
// its own.
func TestHarnessJSON(t *testing.T) {
	var cells []*eval.Cell
	for i, name := range []string{"A", "B"} {
		r := made("piqa", "mc", "acc,filter", "accuracy, %", 8, 0.25*float64(i+1), nil)
		r.Version, r.Shots = 3, 5
		cells = append(cells, cellOf(eval.Model{Name: name, Hash: name, Parameters: 7, Precision: "bf16",
			Device: "cpu"}, 0, r))
	}
	e := eval.Assemble(cells)
	e.Skipped = []eval.Skip{{Model: "B", Task: "maps", Why: "not ours"}}
	var b bytes.Buffer
	if err := HarnessJSON(&b, e); err != nil {
		t.Fatal(err)
	}
	var all struct {
		Models []Harness
		Paired []eval.Paired
	}
	if err := json.Unmarshal(b.Bytes(), &all); err != nil || len(all.Models) != 2 || len(all.Paired) != 1 {
		t.Fatalf("%v: %s", err, b.String())
	}
	h := all.Models[1]
	if h.Skipped["maps"] != "not ours" || all.Models[0].Skipped != nil || h.Results["piqa"]["acc,filter"] != 0.5 ||
		h.Version["piqa"] != 3 || h.Shots["piqa"] != 5 || h.Samples["piqa"]["original"] != 8 ||
		!h.Higher["piqa"]["acc,filter"] || !slices.Equal(h.Groups["mc"], []string{"piqa"}) ||
		h.Config["dtype"] != "bf16" || h.Config["model_num_parameters"] != 7.0 || h.Name != "B" ||
		h.Configs["piqa"]["num_fewshot"] != 5.0 {
		t.Errorf("%+v", h)
	}
	e.Models, e.Paired = e.Models[:1], nil
	b.Reset()
	if err := HarnessJSON(&b, e); err != nil || !strings.Contains(b.String(), `"acc_stderr,filter"`) ||
		strings.Contains(b.String(), `"models"`) {
		t.Errorf("%v: %s", err, b.String())
	}
}

// Parts of an experiment's page: verdicts with their class, figures after the first, tables and words; all text is
// escaped.
func TestExperimentSections(t *testing.T) {
	line := [][][2]float64{{{1, 2}, {2, 1}}}
	p := &Page{Experiment: &Experiment{Lead: "lead", Rule: "rule",
		Verdicts: []Verdict{{Verdict: "does not hold", Claim: "<c>", Figure: "f", Basis: "b", Source: "s",
			Command: "run <it>"}},
		Curves: []Bundle{{ID: "one", Title: "One", Sides: []BundleSide{{Name: "a", Lines: line}}},
			{ID: "two", Title: "Two", Sides: []BundleSide{{Name: "a", Lines: line}}}},
		Tables: []Listing{{Title: "The Runs", Note: "n", Rows: [][]string{{"h"}, {"x"}}}},
		Words:  []Word{{"w<", "says"}}, Next: []string{"go on"}}}
	sentence, first := p.opening(p.evaluation())
	if sentence != "lead" || first == nil || first.ID != "one" || !slices.Equal(p.next(), []string{"go on"}) {
		t.Errorf("%q %+v", sentence, first)
	}
	list, err := allSections(p)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range list {
		names = append(names, s.Title)
	}
	if len(list) != 4 || list[0].Lead != "rule" || len(list[1].Figures)+len(list[2].Figures) != 1 ||
		!strings.Contains(string(list[0].Blocks[0]), "&lt;c&gt;") ||
		!strings.Contains(string(list[3].Blocks[0]), "<dt>w&lt;</dt><dd>says</dd>") {
		t.Errorf("%q", names)
	}
	page := renderPage(t, p)
	for _, want := range []string{`id="the-runs"`, `id="two"`, "does not hold", "go on"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if (&Page{}).next() != nil {
		t.Error("next steps of nothing")
	}
}

// Of three sides the one that is better than both others is marked, and none if there is no such; a tie is a mark of
// two sides alone. Models that count in different units are told to be compared by bytes.
func TestMarks(t *testing.T) {
	marks := func(shares ...float64) (out string) {
		var cells []*eval.Cell
		for i, s := range shares {
			name := string(rune('A' + i))
			cells = append(cells, cellOf(eval.Model{Name: name, Hash: name}, 0,
				made("piqa", "", "acc", "accuracy, %", 200, s, nil)))
		}
		for _, c := range (&Page{Evaluation: eval.Assemble(cells)}).lines()[0].cells {
			out += "/" + c.mark
		}
		return out
	}
	for want, got := range map[string]string{"//▸/": marks(0.2, 0.9, 0.5), "///": marks(0.9, 0.9, 0.2),
		"/▸/": marks(0.9, 0.2), "/≈/≈": marks(0.5, 0.5), "/": marks(0.5)} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	var cells []*eval.Cell
	for i, name := range []string{"A", "B"} {
		r := &eval.Result{Question: "q", Task: "lm", Kind: "lm", N: 8}
		for k := range 8 {
			r.Answers = append(r.Answers, eval.Answer{ID: fmt.Sprint(k, i), Values: map[string]float64{"loss": 1},
				Weights: map[string]float64{"loss": float64(5 + 3*i)}})
		}
		r.Add("loss", "loss", eval.Lower, eval.MeanOf(r.Answers, "loss"))
		cells = append(cells, cellOf(eval.Model{Name: name, Hash: name}, 0, r))
	}
	e := eval.Assemble(cells)
	if _, paired := e.Between("q", "loss", "A", "B"); paired {
		t.Fatal("answers to different samples are paired")
	}
	if got := strings.Join(remarks(e), "|"); got !=
		"lm: models with different tokenizers cannot be compared by loss per token; compare bits per byte" {
		t.Errorf("%q", got)
	}
	for n, want := range map[int]int{1: 0, 2: 1} { // of one text nothing can be told
		q := *e.Questions()[0]
		if q.N = n; len(unitRemarks(e, &q)) != want {
			t.Errorf("of %d texts: %q", n, unitRemarks(e, &q))
		}
	}
	p := &Page{Evaluation: e}
	for _, c := range p.lines()[0].cells {
		if c.mark != "" {
			t.Errorf("what cannot be compared is marked %q", c.mark)
		}
	}
	if legend := p.legend([]string{"chance", "copy"}); !strings.HasPrefix(legend[0],
		"▸ better, ≈ cannot be told apart, ± one standard error") || len(legend) != 5 {
		t.Errorf("%q", legend)
	}
	if legend := (&Page{}).legend(nil); len(legend) != 1 || legend[0] != "± one standard error" {
		t.Errorf("%q", legend)
	}
}
