package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/eval"
	"antiphase/eval/task"
	"antiphase/metrics"
)

// The paper's levels of many-shot learning and its spreads over orders stand in a figure whose questions, context and
// number of orders are the paper's, although its prompts are not known; and in no other.
func TestPaperBesideFigures(t *testing.T) {
	page := func(kind, group string, context int, change func(*eval.Result), detail any) *Page {
		r := made(kind, group, "acc", "accuracy, %", 40, 0.5, detail)
		r.Context = context
		change(r)
		return &Page{Evaluation: several(r)}
	}
	same := func(*eval.Result) {}
	shots := task.ICLDetail{Shots: []int{2, 8}, Acc: []eval.Mean{meanOf(0.25, 0.1), meanOf(0.5, 0.1)}}
	for what, x := range map[string]struct {
		context int
		change  func(*eval.Result)
		beside  bool
	}{
		"as the paper": {65536, same, true}, "a shorter context": {4096, same, false},
		"some questions": {65536, func(r *eval.Result) { r.Limit = 5 }, false},
		"generated":      {65536, func(r *eval.Result) { r.Task = "standin_icl_trec" }, false},
	} {
		s, err := iclSection(page("icl_trec", "icl", x.context, x.change, shots))
		if err != nil || len(s.Figures) != 1 {
			t.Fatalf("%s: %d figures, %v", what, len(s.Figures), err)
		}
		var lines []string
		for _, r := range s.Figures[0].rows[1:] {
			lines = append(lines, strings.Join(r, "/"))
		}
		want := []string{"A/2/0.25/0.1", "A/8/0.5/0.1"}
		if x.beside {
			want = append(want, "T paper/2/0.699/", "T paper/8/0.699/", "DIFF paper/2/0.8787/", "DIFF paper/8/0.8787/")
		}
		if !slices.Equal(lines, want) {
			t.Errorf("%s: %q, want %q", what, lines, want)
		}
	}
	orders := task.OrderDetail{Acc: map[string][]float64{"random": {0.5, 0.25}}}
	for seeds, want := range map[int]string{
		10: "spread of the paper's models over ten random orders, in points: Transformer 24, DIFF 9", 9: ""} {
		s, err := orderSection(page("icl_order_trec_fine", "icl_order", 64,
			func(r *eval.Result) { r.Config["seeds"] = seeds }, orders))
		if err != nil || len(s.Figures) != 1 || s.Figures[0].Note != want {
			t.Errorf("%d orders: %+v, %v", seeds, s.Figures, err)
		}
	}
	for kind, want := range map[string]string{"needle": "text, digits and scoring",
		"attention": "the paper's formula and prompts"} {
		if got := differs(&eval.Result{Kind: kind}, "x"); !strings.HasPrefix(got[len(got)-1], want) {
			t.Errorf("%s: %q", kind, got)
		}
	}
	for group, want := range map[string]string{"icl": "the paper's prompts", "math": "the paper's prompts",
		"icl_order": "prompts and examples", "hallucination": "0 questions"} {
		if got := differs(&eval.Result{Group: group}, "x"); !strings.HasPrefix(got[len(got)-1], want) {
			t.Errorf("%s: %q", group, got)
		}
	}
}

// pairOf is two sides with a share that differs and a measure of one side alone.
func pairOf() *Page {
	var cells []*eval.Cell
	for i, name := range []string{"A", "B"} {
		r := made("needle", "", "bound", "right, %", 200, 0.25+0.5*float64(i), nil)
		r.Metrics[0].Floors = map[string]float64{"copy": 0.25, "chance": 0.01}
		r.Config = map[string]any{"needles": 4, "queries": 2}
		model := eval.Model{Name: name, Hash: name, Parameters: 1000 * (i + 1), Precision: "bf16", Device: "cpu"}
		cells = append(cells, cellOf(model, 0, r))
		if i == 0 {
			lm := made("lm", "", "loss", "", 200, 1, nil) // without a label it is called by its name
			cells = append(cells, cellOf(model, 1, lm))
		}
	}
	return &Page{Evaluation: eval.Assemble(cells)}
}

// The same rows as a table of the page, in LaTeX and in the terminal: marks, differences, floors and what is missing.
func TestOneTableThreeWays(t *testing.T) {
	p := pairOf()
	v := p.tableView()
	want := `{[A B] [chance copy] [{model parameters false [{1,000   false} {2,000   false}] [ ]} {needle N=4 R=2 right, % false [{25.0 ± 3.1   false} {75.0 ± 3.1 ▸ +50.0 ± 3.5 ** true}] [1.0 25.0]} {lm loss false [{1   false} {   false}] [ ]}] `
	if got := fmt.Sprint(v); !strings.HasPrefix(got, want) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	var b bytes.Buffer
	if err := p.LaTeX(&b); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{`\begin{tabular}{llrrrrr}`, `Task & Measure & A & B & Difference & chance & copy \\`,
		`model & parameters & 1,000 & 2,000 &  &  &  \\` + "\n\\addlinespace\n",
		`needle N=4 R=2 & right, \% & 25.0 $\pm$ 3.1 & \textbf{75.0 $\pm$ 3.1} & +50.0 $\pm$ 3.5 ** & 1.0 & 25.0 \\`,
		`lm & loss & 1 & -- &  &  &  \\` + "\n\\bottomrule"} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("no %q in\n%s", line, b.String())
		}
	}
	for _, want := range []string{"task measure A B difference chance copy",
		"needle N=4 R=2 right, % 25.0 ± 3.1 ▸ 75.0 ± 3.1 +50.0 ± 3.5 ** 1.0 25.0", "lm loss 1 –"} {
		name, _, _ := strings.Cut(want, " ")
		if got := lineOf(t, p.Table(false), name+" "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A file of results has every key that readers of lm-evaluation-harness's results look for, with the values of its own
// model.
func TestHarnessByHand(t *testing.T) {
	p := pairOf()
	e := p.Evaluation
	e.Date, e.Commit, e.Limit, e.Seed = "2026-01-02", "c0ffee", 9, 4
	b, err := json.Marshal(NewHarness(e, &e.Models[1]))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"results":{"needle":{"alias":"needle","bound,none":0.75,"bound_chance,none":0.01,"bound_copy,none":0.25,"bound_stderr,none":0.0306955}},` +
		`"configs":{"needle":{"limit":0,"metadata":{"version":0},"needles":4,"num_fewshot":0,"queries":2,"seed":4,"task":"needle"}},"versions":{"needle":0},"n-shot":{"needle":0},` +
		`"higher_is_better":{"needle":{"bound":true}},"n-samples":{"needle":{"effective":200,"original":200}},"config":{"device":"cpu","dtype":"bf16","fewshot_seed":4,"limit":9,"model":"antiphase",` +
		`"model_args":"B","model_hash":"B","model_num_parameters":2000,"random_seed":4},"group_subtasks":{},"date":"2026-01-02","git_hash":"c0ffee","model_name":"B"}`
	var x, y map[string]any
	if err := json.Unmarshal(b, &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &y); err != nil {
		t.Fatal(err)
	}
	got := x["results"].(map[string]any)["needle"].(map[string]any)
	if se := got["bound_stderr,none"].(float64); se < 0.03 || se > 0.031 { // √(0.75·0.25/199)
		t.Errorf("a standard error of %g", se)
	}
	got["bound_stderr,none"] = y["results"].(map[string]any)["needle"].(map[string]any)["bound_stderr,none"]
	if a, b := fmt.Sprint(x), fmt.Sprint(y); a != b {
		t.Errorf("%s\nwant\n%s", a, b)
	}
}

// A file in a folder whose name no model bears is removed if a model that is there wrote it, by hash, precision and
// device; one of a model of another process stays.
func TestHarnessOfOthers(t *testing.T) {
	dir := t.TempDir()
	put := func(name, hash, dtype, device string) {
		path := filepath.Join(dir, name, HarnessFile)
		text := fmt.Sprintf(`{"config": {"model": "antiphase", "model_hash": %q, "dtype": %q, "device": %q}}`, hash,
			dtype, device)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("renamed", "h", "bf16", "cpu")
	put("hash", "i", "bf16", "cpu")
	put("precision", "h", "fp32", "cpu")
	put("device", "h", "bf16", "cuda")
	put("kept", "h", "bf16", "cpu")
	if err := os.WriteFile(filepath.Join(dir, "kept", "notes"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	cell := cellOf(eval.Model{Name: "m", Hash: "h", Precision: "bf16", Device: "cpu"}, 1,
		made("piqa", "mc", "acc", "accuracy, %", 4, 0.5, nil))
	if err := WriteHarness(dir, eval.Assemble([]*eval.Cell{cell})); err != nil {
		t.Fatal(err)
	}
	var left []string
	list, _ := filepath.Glob(filepath.Join(dir, "*", "*"))
	for _, f := range list {
		left = append(left, filepath.Base(filepath.Dir(f))+"/"+filepath.Base(f))
	}
	if want := []string{"device/results.json", "hash/results.json", "kept/notes", "m/results.json",
		"precision/results.json"}; !slices.Equal(left, want) {
		t.Errorf("%q, want %q", left, want)
	}
	if _, err := os.Stat(filepath.Join(dir, "renamed")); err == nil {
		t.Error("the empty folder stays")
	}
	same := &eval.Evaluation{Models: []eval.Judged{{Model: eval.Model{Name: "a b", Hash: "1"}},
		{Model: eval.Model{Name: "a_b", Hash: "1"}}, {Model: eval.Model{Name: "a/b", Hash: "1"}}}}
	if got := folderNames(same); !slices.Equal(got, []string{"a_b", "a_b_1", "a_b_2"}) {
		t.Errorf("%q", got)
	}
}

// Of two ways that a set of Table 1 was asked without examples the one nearest to the paper counts, a real set before a
// stand-in; one with examples does not.
func TestTable1Chooses(t *testing.T) {
	way := func(share float64, change func(*eval.Result)) *eval.Result {
		r := made("piqa", "mc", "acc", "accuracy, %", 100, share, nil)
		change(r)
		return r
	}
	limited := func(r *eval.Result) { r.Limit = 9 }
	stand := func(r *eval.Result) { r.Task = "standin_piqa" }
	shots := func(r *eval.Result) { r.Shots = 5 }
	plain := func(*eval.Result) {}
	for _, x := range []struct {
		ways []*eval.Result
		want string
	}{
		{[]*eval.Result{way(0.25, limited), way(0.5, plain)}, "50.0"},
		{[]*eval.Result{way(0.5, plain), way(0.25, limited)}, "50.0"},
		{[]*eval.Result{way(0.25, stand), way(0.75, limited)}, "75.0"},
		{[]*eval.Result{way(0.25, shots), way(0.5, limited)}, "50.0"}, {[]*eval.Result{way(0.25, shots)}, "–"},
		{[]*eval.Result{way(0.25, stand)}, "25.0°"},
	} {
		others := []*eval.Result{made("arc_easy", "mc", "acc", "accuracy, %", 100, 1, nil),
			made("boolq", "mc", "acc", "accuracy, %", 100, 0, nil)}
		s, err := table1Section(&Page{Evaluation: several(append(others, x.ways...)...)})
		if err != nil || len(s.Tables) != 1 {
			t.Fatalf("%d tables, %v", len(s.Tables), err)
		}
		row := s.Tables[0].Rows[1]
		if row[6] != x.want || row[2] != "100.0" || row[3] != "0.0" || row[1] != "–" {
			t.Errorf("%q, want %s", row, x.want)
		}
	}
}

// The ablations on the page: as in the terminal, with what each row is, its spikes and the paper's losses.
func TestAblationOnThePage(t *testing.T) {
	row := AblationRow{Name: "diff", Doc: "as it is", Arch: "diff", Heads: 2, HeadDim: 64, HeadNorm: true,
		Loss: meanOf(3, 0.1), Others: meanOf(2, 0.2),
		Steady: &metrics.Steadiness{LossSpikes: 1, GradSpikes: 2, Late: 0.25, Middle: 9}}
	p := &Page{Ablation: &Ablation{Size: "tiny", Steps: 7, Tokens: 14336,
		Rows: []AblationRow{row, {Name: "other", Arch: "x"}}}}
	s, err := ablationSection(p)
	expect(t, rowsOf(t, s, err), map[string][]string{"table ablation": {
		"model/what/heads/width/norm/loss/AR-Hit/others/spikes of loss, gradient/gradient norm, late/loss " +
			"(paper)/AR-Hit (paper)/others (paper)",
		"diff/diff, as it is/2/64/true/3.0000 ± 0.1000/–/2.0000 ± 0.2000/1, 2/0.25/3.062/0.880/3.247",
		"other/x, /0/0/false/–/–/–/////"}})
}
