package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"antiphase/eval"
)

// The paper's numbers by what the paper prints of them elsewhere: averages of Tables 1 and 8 and of the mathematics,
// exact logits of Figure 8 as HellaSwag of Table 8.
func TestPaperNumbersAgree(t *testing.T) {
	near := func(what string, got, want float64) {
		t.Helper()
		if !(math.Abs(got-want) <= 0.0501) { // the paper rounds
			t.Errorf("%s: %.4g, want %.4g", what, got, want)
		}
	}
	for _, x := range paperTable1 {
		sum := 0.0
		for _, v := range x.acc[:7] {
			sum += v / 7
		}
		if x.acc[7] > 0 {
			near(x.name, sum, x.acc[7])
		}
	}
	var mean [4]float64
	for _, x := range paperMC {
		for i, v := range []float64{x.base0, x.diff0, x.base5, x.diff5} {
			mean[i] += 100 * v / 7
		}
		if x.task == "hellaswag" && (x.base0 != paperLowbit.base[0] || x.diff0 != paperLowbit.diff[0]) {
			t.Errorf("HellaSwag is %g and %g, with exact logits %g and %g", x.base0, x.diff0, paperLowbit.base[0],
				paperLowbit.diff[0])
		}
	}
	for i, want := range []float64{55.4, 56.2, 56.4, 58.0} {
		near(fmt.Sprintf("Table 8, column %d", i), mean[i], want)
	}
	base, diff := 0.0, 0.0
	for _, x := range paperMath {
		base, diff = base+100*x.base/8, diff+100*x.diff/8
	}
	near("mathematics, Transformer", base, 43.3)
	near("mathematics, DIFF", diff, 50.8)
	if paperMathTokens.base[7] != 20.1 || paperMathTokens.diff[7] != 31.4 || paperMathTokens.tokens[0] != 6 ||
		paperMathTokens.tokens[7] != 20 {
		t.Errorf("Figure 9: %+v", paperMathTokens)
	}
}

// Figure 1 is Table 3 at half the depth, the numbers of Table 5 and of Figure 4 fall, and the fits of Figure 3 give the
// ratios that the paper claims.
func TestPaperFiguresAgree(t *testing.T) {
	half := 2 // of 0, 25, 50, 75 and 100 %
	for _, x := range []struct {
		of            string
		answer, noise float64
		seg           []float64
	}{{"Transformer", paperAttention.baseAnswer[half], paperAttention.baseNoise[half], paperSegments.base.List()},
		{"DIFF", paperAttention.diffAnswer[half], paperAttention.diffNoise[half], paperSegments.diff.List()}} {
		sum := 0.0
		for _, v := range x.seg {
			sum += v
		}
		if !(math.Abs(sum-1) <= 1e-9) || x.seg[2] != x.answer || !(math.Abs(x.seg[1]+x.seg[3]-x.noise) <= 1e-9) {
			t.Errorf("%s: Figure 1 is %v, Table 3 %g and %g", x.of, x.seg, x.answer, x.noise)
		}
	}
	for _, list := range [][]float64{paperOutliers.base.Logits.List(), paperOutliers.diff.Logits.List(),
		paperOutliers.base.Hidden.List(), paperOutliers.diff.Hidden.List(), paperPositions.base, paperPositions.diff} {
		if !slices.IsSortedFunc(list, func(a, b float64) int { return cmp.Compare(b, a) }) {
			t.Errorf("not falling: %v", list)
		}
	}
	claims := map[string][2]float64{"parameters": {6.8365e9, 0.622}, "tokens": {160e9, 0.637}}
	for by, curves := range map[string][]eval.ScalingCurve{"parameters": paperScaling(), "tokens": paperTokens()} {
		r, err := eval.Scaling(by, curves, claims[by][0], 1)
		if err != nil || len(r.Matches) != 1 || !(math.Abs(r.Matches[0].Ratio-claims[by][1]) <= 0.01) {
			t.Errorf("by %s: %+v (%v), the paper claims %g", by, r.Matches, err, claims[by][1])
		}
		if got := paperPoint(&eval.ScalingResult{By: by}); got != claims[by][0] {
			t.Errorf("the paper's point by %s: %g", by, got)
		}
	}
}

// Figures 4 and 5 of the paper: positions as printed, and what it says of retrieval: 0.12 against 0.88 at a quarter of
// 64K, a mean of 0.52 against 0.86 there, and all of the needles at the end.
func TestPaperFigures(t *testing.T) {
	if fmt.Sprint(paperPositions.at) != "[60 100 200 500 1000 2000 4000 8000 16000 32000 48000 65537]" ||
		len(paperPositions.base) != 12 || len(paperPositions.diff) != 12 {
		t.Errorf("%v", paperPositions.at)
	}
	for i, at := range paperPositions.at {
		if gap := paperPositions.base[i] - paperPositions.diff[i]; gap < 0.02 || gap > 0.08 {
			t.Errorf("a gap of %g at %d tokens", gap, at)
		}
	}
	base, diff := paperNeedleGrid()
	for i, g := range [][][]eval.Mean{base.Cells["paper"], diff.Cells["paper"]} {
		last, sum := 7, 0.0
		for d, row := range g {
			if len(row) != 8 {
				t.Fatalf("%d lengths", len(row))
			}
			sum += row[last].Value / 5
			for _, x := range row {
				if d == 4 && x.Value != 1 || x.N != 50 {
					t.Errorf("at depth %d: %+v", d, x)
				}
			}
		}
		if want := []float64{0.516, 0.86}[i]; len(g) != 5 || !(math.Abs(sum-want) <= 1e-9) ||
			g[1][last].Value != []float64{0.12, 0.88}[i] || g[3][0].Value != []float64{0.96, 0.98}[i] {
			t.Errorf("a mean of %g at 64K, %g at a quarter", sum, g[1][last].Value)
		}
	}
	if fmt.Sprint(base.Lengths) != "[8192 16384 24576 32768 40960 49152 57344 65536]" || base.Needles != 8 ||
		base.Queries != 1 || fmt.Sprint(base.Depths) != "[0 0.25 0.5 0.75 1]" {
		t.Errorf("%+v", base)
	}
}

// The table of the paper's numbers has a row where the paper has one and no other, shares in percent, and what differs.
func TestPaperTable(t *testing.T) {
	e := several(made("piqa", "mc", "acc", "accuracy, %", 100, 0.5, nil), made("lm", "", "loss", "loss", 4, 1, nil),
		made("outliers", "", "logits_top1", "largest", 4, 1, nil))
	e.Questions()[2].Config["used_tokens"] = 2048
	s, err := paperSection(&Page{Evaluation: e})
	if err != nil || len(s.Tables) != 1 {
		t.Fatalf("%d tables (%v)", len(s.Tables), err)
	}
	var got []string
	for _, r := range s.Tables[0].Rows {
		got = append(got, strings.Join(r, "/"))
	}
	if want := []string{"task/metric/A/Transformer (paper)/DIFF (paper)/what differs here",
		"piqa/accuracy, %/50.0 ± 5.0/74.5/75.5/",
		"outliers/largest/1/318/38.8/2048 tokens, the paper 400,000"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if s, err := paperSection(&Page{Evaluation: several(made("lm", "", "loss", "loss", 4, 1, nil))}); err != nil ||
		s.Tables != nil {
		t.Errorf("%+v (%v)", s.Tables, err)
	}
}

// A detail that is not of its task is an error that names the model and the task, for every task with figures.
func TestDamagedDetails(t *testing.T) {
	seen, p := 0, &Page{Evaluation: fakePage(t).Evaluation}
	for i := range p.Evaluation.Models[1].Results {
		r := &p.Evaluation.Models[1].Results[i]
		if len(r.Detail) == 0 {
			continue
		}
		seen++
		whole := r.Detail
		r.Detail = []byte(`"text"`)
		if err := p.HTML(&strings.Builder{}); err == nil || !strings.Contains(err.Error(), "other: detail of "+r.Task) {
			t.Errorf("%s: %v", r.Task, err)
		}
		r.Detail = whole
	}
	if seen < 14 {
		t.Errorf("%d tasks with details", seen)
	}
}

// Where the paper's number stands beside a score: by task, metric, examples and settings.
func TestPaperScores(t *testing.T) {
	for _, x := range []struct {
		kind       string
		shots      int
		config     map[string]any
		metric     string
		base, diff float64
	}{
		{"piqa", 0, nil, "acc", 0.745, 0.755}, {"piqa", 5, nil, "acc", 0.752, 0.761},
		{"boolq", 5, nil, "acc", 0.653, 0.672}, {"hellaswag", 5, nil, "acc_norm", 0.634, 0.669},
		{"gsm8k", 0, nil, "acc", 0.412, 0.426}, {"asdiv", 0, nil, "acc", 0.788, 0.838},
		{"qasper", 0, nil, "judge", 0.28, 0.39}, {"2wikimqa", 0, nil, "judge", 0.29, 0.36},
		{"icl_trec", 0, nil, "acc", 0.699, 0.8787}, {"icl_order_trec", 0, nil, "spread_random", 0.19, 0.04},
		{"icl_order_trec", 0, nil, "spread_alternating", 0.567, 0.134},
		{"icl_order_banking77", 0, nil, "spread_random", 0.13, 0.09},
		{"icl_order_banking77", 0, nil, "spread_alternating", 0, 0},
		{"needle", 0, map[string]any{"needles": 6, "queries": 2.0}, "bound", 0.55, 0.85},
		{"needle", 0, map[string]any{"needles": 4, "queries": 2}, "bound", 0.62, 0.84},
		{"needle", 0, map[string]any{"needles": 4, "queries": 1}, "bound", 0, 0},
		{"needle", 0, map[string]any{"needles": 4, "queries": 2}, "free", 0, 0},
		{"attention", 0, nil, "answer", (0.03 + 0.03 + 0.03 + 0.07 + 0.09) / 5, (0.27 + 0.30 + 0.31 + 0.32 + 0.40) / 5},
		{"attention", 0, nil, "noise", (0.51 + 0.54 + 0.52 + 0.49 + 0.49) / 5, (0.01 + 0.02 + 0.02 + 0.02 + 0.01) / 5},
		{"outliers", 0, nil, "logits_top1", 318, 38.8}, {"outliers", 0, nil, "logits_median", 5.4, 3.3},
		{"outliers", 0, nil, "hidden_top100", 2448.2, 740.9}, {"outliers", 0, nil, "hidden_max", 0, 0},
		{"piqa", 0, nil, "acc_norm", 0, 0}, {"gsm8k", 0, nil, "judge", 0, 0}, {"lm", 0, nil, "loss", 0, 0},
	} {
		n, ok := paperScore(x.kind, x.shots, x.config, x.metric)
		if ok != (x.base > 0) || !(math.Abs(n.base-x.base) <= 1e-12) || !(math.Abs(n.diff-x.diff) <= 1e-12) {
			t.Errorf("%s, %d examples, %v: %s is %v, %v; want %g and %g", x.kind, x.shots, x.config, x.metric, n, ok,
				x.base, x.diff)
		}
	}
}

// What is said where a run differs from the paper's protocol, and only there.
func TestPaperDiffers(t *testing.T) {
	for want, x := range map[string]struct {
		r      eval.Result
		metric string
	}{
		"7 orders, the paper 10": {eval.Result{Group: "icl_order",
			Config: map[string]any{"seeds": 7}}, "spread_random"},
		"10 orders, the paper 30": {eval.Result{Group: "icl_order",
			Config: map[string]any{"seeds": 10.0}}, "spread_alternating"},
		"99 questions, the paper 100": {eval.Result{Group: "hallucination", N: 99}, "judge"},
		"at most 512 tokens of reasoning": {eval.Result{Group: "math",
			Config: map[string]any{"max_tokens": 512}}, "acc"},
		"40 samples per depth, the paper 50": {eval.Result{Kind: "needle",
			Config: map[string]any{"samples": 40, "lengths": []any{4096.0}}}, "bound"},
		"lengths [4096 8192], the paper 4096": {eval.Result{Kind: "attention",
			Config: map[string]any{"samples": 50, "lengths": []int{4096, 8192}}}, "answer"},
		"lengths [300], the paper 4096": {eval.Result{Kind: "needle", Context: 300,
			Config: map[string]any{"lengths": []int{0}}}, "bound"},
		"mean over all numbers of examples, the paper": {eval.Result{Group: "icl", Context: 65536}, "acc"},
	} {
		if got := strings.Join(differs(&x.r, x.metric), "; "); !strings.Contains(got, want) {
			t.Errorf("%q does not say %q", got, want)
		}
	}
	for _, x := range []struct {
		r      eval.Result
		metric string
		lacks  string
	}{
		{eval.Result{Group: "icl_order", Config: map[string]any{"seeds": 10}}, "spread_random", "orders, the paper"},
		{eval.Result{Group: "icl_order", Config: map[string]any{"seeds": 30}}, "spread_alternating",
			"orders, the paper"},
		{eval.Result{Group: "hallucination", N: 100}, "judge", "questions, the paper"},
		{eval.Result{Group: "math", Config: map[string]any{"max_tokens": 16384.0}}, "acc", "at most"},
		{eval.Result{Kind: "needle", Config: map[string]any{"samples": 50.0, "lengths": []int{4096}}}, "bound",
			"the paper 4096"},
		{eval.Result{Group: "icl", Context: 65536}, "plateau", "the paper 65536"},
		{eval.Result{Kind: "outliers", Config: map[string]any{"used_tokens": 380_000}}, "logits_top1",
			"the paper 400,000"},
		{eval.Result{Group: "mc", Shots: 5}, "acc", "examples"},
	} {
		if got := strings.Join(differs(&x.r, x.metric), "; "); strings.Contains(got, x.lacks) {
			t.Errorf("%+v: says %q", x.r.Config, got)
		}
	}
}

// Rows of ablations beside the paper's, with what differs from one to the next.
func TestAblationTable(t *testing.T) {
	lm := &eval.Result{}
	for i, name := range []string{"loss", "ar_hit", "others"} {
		lm.Add(name, name, eval.Lower, eval.Mean{Value: float64(i + 1), StdErr: 0.25, N: 4})
	}
	row := AblationRow{Name: "base-wide-norm", Doc: "half the heads", Arch: "transformer", Parameters: 1234567,
		Heads: 2, HeadDim: 64, HeadNorm: true}
	row.Fill(lm)
	other := AblationRow{Name: "diff2", Arch: "diff2", Doc: "V2", Heads: 4, HeadDim: 32}
	r := &Ablation{Size: "tiny", Steps: 7, Tokens: 14336, Rows: []AblationRow{row, other}}
	var got []string
	for line := range strings.Lines(r.Table(false)) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{"model heads × width norm loss AR-Hit others spikes gradient paper: loss AR-Hit others", got[1],
		"base-wide-norm 2 × 64 yes 1.0000 ± 0.2500 2.0000 ± 0.2500 3.0000 ± 0.2500 3.086 0.899 3.271",
		"diff2 4 × 32 no – – –", got[4],
		"base-wide-norm: transformer, half the heads, 1,234,567 parameters", "diff2: diff2, V2, parameters",
		"tiny, 7 steps, 14,336 tokens each; ± one standard error over texts of one run each. The paper: 1.4B " +
			"parameters, 10B tokens, other text."}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if r.Arch = "diff2"; strings.Contains(r.about(), "1.4B") ||
		!strings.Contains(r.about(), "V2's page gives no numbers") {
		t.Errorf("%q", r.about())
	}
}
