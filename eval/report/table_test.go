package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"antiphase/eval"
)

// lineOf finds a row of a table.
func lineOf(t *testing.T, table, name string) string {
	t.Helper()
	for line := range strings.Lines(table) {
		if strings.Contains(line, name) {
			return strings.Join(strings.Fields(line), " ")
		}
	}
	t.Fatalf("no line %q in\n%s", name, table)
	return ""
}

func TestTable(t *testing.T) {
	p := fakePage(t)
	table := p.Table(false)
	for name, want := range map[string]string{
		"needle N=4 R=2":  "number beside its key, % 40.0 ± 4.9 ▸ 70.0 ± 4.6 +30.0 ± 4.6 ** 1.0 25.0",
		"lm ":             "held-out loss, nats/token ≈ 0.500 ± 0.065 ≈ 0.500 ± 0.065 equal",
		"parameters":      "model parameters 1,234,567 1,234,567",
		"training speed":  "41,230 41,230",
		"at depths 0 50":  "100 25 100 25",
		"λ, mean":         "0.400 (0.30 to 0.50)",
		"piqa° ":          "▸ 70.0",
		"mc, mean of":     "",
		"copy: what":      "",
		"° questions gen": "",
	} {
		if name == "mc, mean of" {
			if strings.Contains(table, name) {
				t.Errorf("a stand-in is averaged with a set:\n%s", table)
			}
			continue
		}
		if got := lineOf(t, table, name); !strings.Contains(got, want) {
			t.Errorf("%q does not hold %q", got, want)
		}
	}
	if strings.Contains(table, "\x1b") || !strings.Contains(p.Table(true), "\x1b[2m") {
		t.Error("colour where none is asked for, or none where it is")
	}
	if strings.Contains(table, "0 ± 0 ") {
		t.Errorf("an error of nothing:\n%s", table)
	}
	p.Brief = map[string][]string{"outliers": {}, "geometry": {}}
	if brief := p.Table(false); strings.Contains(brief, "outliers") || !strings.Contains(brief, "needle") {
		t.Errorf("brief:\n%s", brief)
	}
}

// The verdict is paired: each model is uncertain by more than they differ, and yet one is better on the same samples.
func TestVerdictIsPaired(t *testing.T) {
	var cells []*eval.Cell
	for i, name := range []string{"a", "b"} {
		r := &eval.Result{Question: "q", Task: "lm", Kind: "lm", N: 60}
		for k := range 60 {
			r.Answers = append(r.Answers, eval.Answer{ID: string(rune('A' + k)),
				Values: map[string]float64{"loss": float64(k) + 0.1*float64(i)}})
		}
		r.Add("loss", "loss", eval.Lower, eval.MeanOf(r.Answers, "loss"))
		cells = append(cells, cellOf(eval.Model{Name: name, Hash: name}, 0, r))
	}
	table := (&Page{Evaluation: eval.Assemble(cells)}).Table(false)
	if got := lineOf(t, table, "lm "); !strings.Contains(got, "▸ 29.5") || !strings.HasSuffix(got, "**") {
		t.Errorf("%q", got)
	}
}

// A score on its floor is not marked as better, however sure the difference: copying earns half of what is "free" with
// R = 2 of N = 4, and a model at 47 % is not a winner over one at 38 %.
func TestFloorIsNoWin(t *testing.T) {
	marked := func(right [2]int, floor float64) string {
		var cells []*eval.Cell
		for i, name := range []string{"a", "b"} {
			r := &eval.Result{Question: "q", Task: "needle", Kind: "needle", N: 200}
			for k := range 200 {
				x := 0.0
				if k < right[i] {
					x = 1
				}
				r.Answers = append(r.Answers, eval.Answer{ID: fmt.Sprint(k), Values: map[string]float64{"free": x}})
			}
			r.Add("free", "free, %", eval.Higher, eval.MeanOf(r.Answers, "free"))
			r.Metrics[0].Floors = map[string]float64{"chance": 0.02, "copy": floor}
			cells = append(cells, cellOf(eval.Model{Name: name, Hash: name}, 0, r))
		}
		p := &Page{Evaluation: eval.Assemble(cells)}
		return lineOf(t, p.Table(false), "needle") + p.verdict()
	}
	for _, c := range []struct {
		right [2]int
		floor float64
		win   bool
	}{{[2]int{76, 94}, 0.5, false}, {[2]int{94, 104}, 0.5, false}, {[2]int{94, 140}, 0.5, true},
		{[2]int{76, 94}, 0.25, true}, {[2]int{76, 94}, 1, true}} {
		got := marked(c.right, c.floor)
		if strings.Contains(got, best) != c.win || strings.Contains(got, "b is better in 1") != c.win ||
			!strings.Contains(got, "**") {
			t.Errorf("%v of 200, floor %g: %q", c.right, c.floor, got)
		}
	}
}

// Questions of one task that differ in seed, samples or replicate say so, in the table, in the keys and above the page.
func TestQuestionsAreToldApart(t *testing.T) {
	var cells []*eval.Cell
	for i, h := range []eval.Head{{Seed: 1, Limit: 5}, {Seed: 1, Limit: 20}, {Seed: 7, Limit: 20},
		{Seed: 1, Limit: 20, Replicate: "again"}} {
		r := made("lm", "", "loss", "loss", h.Limit, 0.5, nil)
		r.Question, r.Limit, r.Task = fmt.Sprint("q", i), h.Limit, "standin_lm"
		c := cellOf(eval.Model{Name: "a", Hash: "h"}, 0, r)
		c.Head.Seed, c.Head.Limit, c.Head.Replicate = h.Seed, h.Limit, h.Replicate
		cells = append(cells, c)
	}
	p := &Page{Evaluation: eval.Assemble(cells)}
	table := p.Table(false)
	for _, want := range []string{"lm° seed=1 samples=5  ", "lm° seed=1 samples=20  ", "lm° seed=7 samples=20  ",
		"lm° seed=1 samples=20 replicate=again  "} {
		if strings.Count(table, "\n"+want) != 1 {
			t.Errorf("no row %q in\n%s", want, table)
		}
	}
	h := NewHarness(p.Evaluation, &p.Evaluation.Models[0])
	if c := h.Configs["standin_lm seed=1 samples=20 replicate=again"]; c["replicate"] != "again" ||
		c["seed"] != uint64(1) || c["limit"] != 20 {
		t.Errorf("%v", h.Configs)
	}
	if about := strings.Join(p.about(), ", "); !strings.Contains(about,
		"several seeds, tasks of different numbers of samples") {
		t.Errorf("%q", about)
	}
}

func TestTableOfLittle(t *testing.T) {
	for name, p := range map[string]*Page{"nothing": {},
		"empty": {Evaluation: &eval.Evaluation{Models: []eval.Judged{{Model: eval.Model{Name: "a"}},
			{Model: eval.Model{Name: "b"}}}}},
		"one": {Evaluation: &eval.Evaluation{Models: fakePage(t).Evaluation.Models[:1]}}} {
		if table := p.Table(false); strings.Contains(table, "NaN") || strings.Contains(table, "▸ 4") {
			t.Errorf("%s:\n%s", name, table)
		}
	}
}

func TestPageRoundTrip(t *testing.T) {
	want := fakePage(t)
	var b bytes.Buffer
	if err := want.JSON(&b); err != nil {
		t.Fatal(err)
	}
	var got Page
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	got.Recipe, want.Recipe = nil, nil // indented on the way
	ignore := cmpopts.IgnoreFields(eval.Result{}, "Answers", "Config", "Detail")
	if d := cmp.Diff(*want, got, cmpopts.EquateEmpty(), ignore); d != "" {
		t.Errorf("−written +read:\n%s", d)
	}
	if a, b := want.Table(false), got.Table(false); a != b {
		t.Errorf("the table differs after reading:\n%s\n%s", a, b)
	}
	want.Evaluation.Models[1].Results[2].Metrics[0].StdErr = math.Inf(1)
	if err := want.JSON(new(bytes.Buffer)); err == nil ||
		!strings.Contains(err.Error(), "models[1] results[2] metrics[0]  stderr") {
		t.Errorf("error %v", err)
	}
}

func TestRemarks(t *testing.T) {
	e := &eval.Evaluation{Models: []eval.Judged{{Model: eval.Model{Name: "m"}, Results: []eval.Result{
		{Question: "1", Task: "piqa", N: 9, Shots: 5, Config: map[string]any{"prompts_cut": 3}},
		{Question: "2", Task: "elife", N: 4, Config: map[string]any{"sources_cut": 2.0}}, // as JSON gives it back
		{Question: "3", Task: "gsm8k", N: 4, Shots: 5, Config: map[string]any{"examples_fit": 1.25}},
		{Question: "4", Task: "svamp", N: 4, Shots: 5, Config: map[string]any{"examples_fit": 5.0, "prompts_cut": 0}},
		{Question: "5", Task: "qasper", N: 4,
			Metrics: []eval.Metric{{Name: "unclear", Mean: eval.Mean{Value: 0.5, N: 2}}}},
	}}}, Warnings: []string{"line 7"}}
	got := strings.Join(remarks(e), "|")
	for _, want := range []string{
		"piqa: 3 of 9 prompts are longer than the context and lost their beginning",
		"elife: 2 of 4 sources are longer than the context and lost their middle",
		"gsm8k: the context has room for 1.2 of 5 examples, on average",
		"m: qasper: the judge's verdict was unclear for 1 of 2", "line 7",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	if strings.Contains(got, "svamp") {
		t.Errorf("%q", got)
	}
	if got := remarks(&eval.Evaluation{}); len(got) != 0 {
		t.Errorf("of nothing: %q", got)
	}
}

// The paper's numbers are named with what differs; HellaSwag's is acc_norm.
func TestPaperProtocol(t *testing.T) {
	full := func(kind, group string, shots int, config map[string]any) *eval.Result {
		return &eval.Result{Task: kind, Kind: kind, Group: group, Shots: shots, Config: config, Context: 4096}
	}
	if n, ok := paperScore("hellaswag", 0, nil, "acc_norm"); !ok || n.base != .634 || n.diff != .662 {
		t.Errorf("hellaswag: %+v, %v", n, ok)
	}
	if _, ok := paperScore("hellaswag", 0, nil, "acc"); ok {
		t.Error("hellaswag: a published number beside acc")
	}
	if _, ok := paperScore("arc_easy", 0, nil, "acc"); !ok {
		t.Error("arc_easy: no number")
	}
	if d := differs(full("arc_easy", "mc", 0, nil), "acc"); len(d) != 0 {
		t.Errorf("the harness's task differs in %q", d)
	}
	stand := full("arc_easy", "mc", 0, nil)
	stand.Task = "standin_arc_easy"
	limited := full("arc_easy", "mc", 0, nil)
	limited.Limit, limited.N = 20, 20
	short := full("needle", "", 0, map[string]any{"needles": 4, "queries": 2, "lengths": []int{256}, "samples": 50})
	for want, r := range map[string]*eval.Result{
		"generated questions": stand, "20 samples only": limited, "[256], the paper 4096": short,
		"context of 4096 tokens, the paper 65536": full("icl_trec", "icl", 0, nil),
		"mean over all numbers of examples":       full("icl_banking77", "icl", 0, nil),
		"3 examples":                              full("piqa", "mc", 3, nil),
		"of a task file":                          full("arc_easy", "", 0, map[string]any{"task_file": "hash"}),
		"4 prompts cut":                           full("piqa", "mc", 0, map[string]any{"prompts_cut": 4}),
		"the same examples":                       full("piqa", "mc", 5, map[string]any{"same_shots": true}),
		"2048 tokens, the paper 400,000": full("outliers", "", 0,
			map[string]any{"tokens": 400_000, "used_tokens": 2048}),
	} {
		if got := strings.Join(differs(r, "acc"), "; "); !strings.Contains(got, want) {
			t.Errorf("%s: %q does not say %q", r.Task, got, want)
		}
	}
	page := renderPage(t, fakePage(t))
	if !strings.Contains(page, "lengths [512], the paper 4096") || !strings.Contains(page, "9 samples only") &&
		!strings.Contains(page, "generated questions, not the set") {
		t.Error("the page does not say what differs")
	}
}

// The paper's own points give the paper's own claim: 7.8B parameters do what 13.1B do, 59.5 %.
func TestScalingOfThePaper(t *testing.T) {
	r, err := eval.Scaling("parameters", paperScaling(), 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if m := r.Matches[0]; !(math.Abs(m.Ratio-0.595) <= 0.03) {
		t.Errorf("%+v", m)
	}
	if table := ScalingTable(r, false); !strings.Contains(table, "DIFF needs") {
		t.Errorf("%s", table)
	}
}

func TestAblationCells(t *testing.T) {
	x := AblationRow{Name: "diff", Loss: eval.Mean{Value: 3, StdErr: 0.1, N: 9},
		Others: eval.Mean{Value: 3, StdErr: 0.1, N: 9}}
	if got, want := strings.Join(append(x.cells(), x.paper()...), "|"),
		"3.0000 ± 0.1000|–|3.0000 ± 0.1000|3.062|0.880|3.247"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	x.Name = "diff2"
	if got := strings.Join(x.paper(), "|"); got != "||" {
		t.Errorf("a model that the paper does not have: %s", got)
	}
}

// The keys that readers of lm-evaluation-harness's results look for; stand-ins under names of their own, with floors.
func TestHarnessKeys(t *testing.T) {
	e := fakePage(t).Evaluation
	dir := t.TempDir()
	if err := WriteHarness(dir, e); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "other", HarnessFile))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Results map[string]map[string]any  `json:"results"`
		Version map[string]int             `json:"versions"`
		Samples map[string]map[string]int  `json:"n-samples"`
		Higher  map[string]map[string]bool `json:"higher_is_better"`
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	r := got.Results["hellaswag"]
	if r["acc_norm,none"] != 0.7 || r["acc_norm_stderr,none"] == nil || r["alias"] != "hellaswag" ||
		got.Samples["hellaswag"]["effective"] != 100 || !got.Higher["hellaswag"]["acc_norm"] {
		t.Errorf("%v", got)
	}
	if _, ok := got.Results["piqa"]; ok || got.Results["standin_piqa"] == nil {
		t.Error("a stand-in under the name of the harness's task")
	}
	if got.Results["needle"]["bound_copy,none"] != 0.25 {
		t.Errorf("no floors: %v", got.Results["needle"])
	}
	for _, row := range Rows(e, time.Now(), "x") {
		if row.Task == "piqa" {
			t.Error("a row of a stand-in under the task's name")
		}
	}
}

// What a finding says about its interval: what there is, or why there is none.
func TestScalingFindings(t *testing.T) {
	points := make([]eval.ScalingPoint, eval.LeastForInterval)
	for i := range points {
		points[i].X = float64(i+1) * 1e6
	}
	few := points[:eval.LeastForInterval-1]
	curve := func(name string, p []eval.ScalingPoint) eval.ScalingCurve {
		return eval.ScalingCurve{Name: name, Points: p, E: 2}
	}
	for _, x := range []struct {
		match eval.ScalingMatch
		own   []eval.ScalingPoint
		rho   float64
		want  string
	}{
		{eval.ScalingMatch{Name: "b", Needs: 5e5, Ratio: 0.5, At: 1e6, Loss: 2, Low: 0.4, High: 0.6}, points, 0,
			"50.0 % of 1M, for the loss 2.0000 that a has there (95 % interval 40.0 to 60.0 %)"},
		{eval.ScalingMatch{Name: "b", Ratio: 0.5, At: 1e6, Low: 0.4, High: 0.6}, points, 0.25,
			"60.0 %, neighbouring errors correlated by 0.00 and 0.25)"},
		{eval.ScalingMatch{Name: "b", Ratio: 0.5, At: 1e6}, few, 0, "(too few points for an interval)"},
		{eval.ScalingMatch{Name: "b", Ratio: 0.5, At: 1e6, Draws: 7}, points, 0, "(no interval: 7 of "},
		// Too few of the first.
		{eval.ScalingMatch{Name: "b", Ratio: 0.5, At: 1e6, Draws: 8}, points, 0, "(too few points for an interval)"},
	} {
		firsts := points
		if x.match.Draws == 8 {
			firsts = few
		}
		b := curve("b", x.own)
		b.Rho = x.rho
		r := &eval.ScalingResult{By: "tokens", Curves: []eval.ScalingCurve{curve("a", firsts), b},
			Matches: []eval.ScalingMatch{x.match}}
		if got := findings(r); len(got) != 1 || !strings.Contains(got[0], x.want) {
			t.Errorf("%q, want %q", got, x.want)
		}
	}
	r := &eval.ScalingResult{By: "tokens", Curves: []eval.ScalingCurve{curve("a", points), curve("b", points)}}
	r.Curves[0].E = 1
	for at, want := range map[float64]string{0: "b's curve never comes down to the loss 1.0000 that a has at ",
		3e6: "a's curve never comes down to the loss 2.0000 that b has at 3M tokens"} {
		r.At = at
		if got := findings(r); len(got) != 1 || !strings.HasPrefix(got[0], want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A side's speed is the mean of its runs. Where any run shared its device, no side has one, and the legend says why.
func TestSpeedOfSharedRuns(t *testing.T) {
	p := &Page{Training: []Training{{Model: "a1", Tokens: 5, TokensPerSecond: 500},
		{Model: "a2", Tokens: 5, TokensPerSecond: 700}, {Model: "b1", Tokens: 5, TokensPerSecond: 300}}}
	side := func(names ...string) (s eval.Side) {
		for _, n := range names {
			s.Models = append(s.Models, &eval.Judged{Model: eval.Model{Name: n, Parameters: 7}})
		}
		return s
	}
	const why = "no training speed: not every run had its device to itself, so that speeds do not compare"
	for shared, want := range map[bool][]string{false: {"600", "300", ""}, true: {"–", "–", "–"}} {
		p.Training[1].Shared = shared
		lines := p.facts([]eval.Side{side("a1", "a2"), side("b1"), side("c1")})
		var got []string
		for _, c := range lines[len(lines)-1].cells {
			got = append(got, c.text)
		}
		if said := slices.Contains(p.legend(nil), why); !slices.Equal(got, want) || said != shared ||
			lines[1].cells[0].text != "5" {
			t.Errorf("shared %v: %q, want %q; the legend says why: %v", shared, got, want, said)
		}
	}
}
