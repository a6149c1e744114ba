package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"antiphase/eval"
	"antiphase/eval/task"
	"antiphase/metrics"
)

// made is an invented result: n answers of which share are right.
func made(kind, group, metric, label string, n int, share float64, detail any) *eval.Result {
	r := &eval.Result{Question: "q " + kind, Task: kind, Kind: kind, Group: group, N: n, Context: 64,
		Config: map[string]any{}}
	for i := range n {
		x := 0.0
		if float64(i) < share*float64(n) {
			x = 1
		}
		r.Answers = append(r.Answers, eval.Answer{ID: fmt.Sprint(i), Values: map[string]float64{metric: x}})
	}
	r.Add(metric, label, eval.Higher, eval.MeanOf(r.Answers, metric))
	if detail != nil {
		if err := r.SetDetail(detail); err != nil {
			panic(err) // of made-up numbers
		}
	}
	return r
}

// cellOf puts a result into a cell of a model.
func cellOf(model eval.Model, place int, r *eval.Result) *eval.Cell {
	r.Place = place
	return &eval.Cell{Head: eval.Head{Model: model, Question: r.Question, Task: r.Task, Seed: 4, Limit: 9}, Result: r}
}

// fakeResults has a result of every task with a figure; x tells the models apart.
func fakeResults(x float64) []*eval.Result {
	m := func(v float64) eval.Mean { return meanOf(v, 0.05) }
	seg := task.Segments{BOS: 0.3 - 0.1*x, Before: 0.2, Answer: 0.1 + 0.2*x, After: 0.3 - 0.1*x, Query: 0.1}
	neg := task.Segments{BOS: -0.2, Before: 0.5, Answer: 0.6, After: 0.05, Query: 0.05}
	gaze := task.HeadGaze{Magnitude: seg, Signed: neg, A1: seg, A2: seg, Value: seg, ValueA1: seg, ValueA2: seg}
	acc := 0.4 + 0.3*x
	needle := made("needle", "", "bound", "retrieval, number beside its key, %", 100, acc,
		task.NeedleGrid{Needles: 4, Queries: 2, Lengths: []int{512}, Depths: []float64{0, 0.5},
			Cells: map[string][][]eval.Mean{"bound": {{m(1)}, {m(0.25)}}, "free": {{m(1)}, {m(0.5)}}},
			Floors: map[string]map[string]float64{"bound": {"chance": 0.01, "copy": 0.25},
				"free": {"chance": 0.02, "copy": 0.5}}})
	needle.Config = map[string]any{"needles": 4, "queries": 2, "lengths": []int{512}, "samples": 10}
	needle.Metrics[0].Floors = map[string]float64{"chance": 0.01, "copy": 0.25}
	lm := made("lm", "", "loss", "held-out loss, nats/token", 60, 0.5,
		task.LMDetail{Pieces: 3, ByPosition: []task.AtPosition{{Position: 1, Loss: m(3)}, {Position: 2, Loss: m(2.5)},
			{Position: 4, Loss: m(2.2 - x)}}})
	swag := made("hellaswag", "mc", "acc_norm", "accuracy, per character, %", 100, acc, nil)
	stand := made("piqa", "mc", "acc", "accuracy, %", 100, acc, nil)
	stand.Task = "standin_piqa"
	return append([]*eval.Result{lm, swag, stand, needle,
		made("attention", "", "answer", "attention to the answer, %", 40, acc,
			task.AttentionDetail{Lengths: []int{64}, Depths: []float64{0, 1}, Lambda: []float64{0.3, 0.5},
				Results: []task.AttentionResult{{Maps: 2, Right: &task.Outcome{N: 3, Gaze: gaze},
					Wrong: &task.Outcome{N: 1, Gaze: gaze}, ByDepth: []task.HeadGaze{gaze, gaze},
					ByHead: [][]task.HeadGaze{{gaze, gaze, gaze}, {gaze, gaze, gaze}}}}}),
		made("maps", "", "head_answer", "attention of that head, %", 1, 1, fakeMaps(x)),
		made("samples", "", "bytes", "bytes", 2, 1,
			[]task.Sample{{Prompt: "Once <script>alert(1)</script> there", Text: " was a \"fox\" & a <b>tag</b>."},
				{Prompt: "a", Text: "b"}}),
		made("icl_trec", "icl", "acc", "accuracy, %", 40, acc,
			task.ICLDetail{Shots: []int{2, 8}, Acc: []eval.Mean{m(0.4), m(0.6)}, Chance: 0.5}),
		made("icl_order_trec", "icl_order", "acc", "accuracy, %", 40, acc,
			task.OrderDetail{Shots: 8, Acc: map[string][]float64{"random": {0.2, 0.5, 0.9}, "alternating": {0.4}}}),
	}, fakeInside(x)...)
}

// fakeInside has results of the tasks that look inside a model, and of its speed.
func fakeInside(x float64) []*eval.Result {
	m := func(v float64) eval.Mean { return meanOf(v, 0.05) }
	kl := m(0.02)
	return []*eval.Result{
		made("outliers", "", "logits_top1", "attention logit, largest", 4, 1,
			task.OutlierResult{Tokens: 64,
				Logits: task.Extreme{Top1: 9, Top2: 8, Top3: 7, Top10: 5, Top100: 2, Median: 0.2},
				Hidden: task.Extreme{Top1: 90, Top2: 80, Top3: 70, Top10: 50, Top100: 20}}),
		made("geometry", "", "map_gap", "gap", 4, 1,
			task.GeometryDetail{Length: 16,
				Layers: []task.GeometryLayer{{Maps: []task.GeometryMap{{Name: "A", Gap: 0.5, Rank: 3, Sparsity: 0.2,
					NearZero: 0.1}}, HiddenRank: 4}, {}}}),
		made("lowbit", "", "exact", "score, exact", 20, 0.4+0.3*x,
			task.LowbitDetail{Task: "lm", Metric: "loss", Exact: m(0.6),
				Rows: []task.LowbitRow{{Of: "logits", Per: "usual", Bits: 8, Score: m(0.6), KL: &kl},
					{Of: "cache", Per: "row", Bits: 4, Score: m(0.5), Change: m(-0.1), KL: &kl}}}),
		made("interventions", "", "loss plain", "loss", 20, 0.4+0.3*x,
			task.InterventionsDetail{Each: "knockout", Heads: [][]float64{{0.1, -0.02}, {0.3, 0}},
				Loss: []task.VariantScore{{Variant: "plain", Score: m(2)},
					{Variant: "lambda=0", Score: m(2.5), Change: m(0.5)}},
				Bound: []task.VariantScore{{Variant: "plain", Score: m(0.9)},
					{Variant: "lambda=0", Score: m(0.5), Change: m(-0.4)}},
				KL: []task.VariantScore{{Variant: "lambda=0", Score: m(0.2)}}}),
		made("gradients", "", "norm", "gradient norm", 4, 1,
			task.GradientsDetail{All: []task.GroupNorm{{Name: "q" + fmt.Sprint(1+int(x)), Norm: 1, RMS: 0.1},
				{Name: "o", Norm: 2, RMS: 0.2}},
				Layers: [][]task.GroupNorm{{{Name: "o", RMS: 0.1}}, {{Name: "o", RMS: 0.3}}}}),
		made("context_rms", "", "rms", "context RMS", 4, 1,
			task.ContextDetail{Ends: []int{2, 4, 9}, Bound: []float64{1, 0.6, 0.4},
				Grid: [][]float64{{1, 0.8, 0.5}, {1, 0.7, 0.3 + x}},
				Layers: []task.ContextRMS{{Value: 1, Context: 0.7, Least: 0.1, Largest: 1.1, Gain: 9 * x},
					{Value: 2, Context: 1, Least: 0.2, Largest: 1}}}),
		made("throughput", "", "forward", "forward, tokens/s", 4, 1,
			task.ThroughputDetail{Rows: []task.ThroughputRow{{Length: 64, Batch: 2, Forward: m(1000 + 100*x),
				ForwardBackward: m(300)}}}),
	}
}

// fakeMaps is a map of a few words.
func fakeMaps(x float64) task.MapExample {
	m := task.MapExample{Layer: 2, Head: 3, Lambda: 0.5 * x, Units: []string{"<|first|>", "Oslo ", "48.", "Which?"},
		Answer: [2]int{1, 3}, Query: 3}
	for _, name := range []string{"A1", "A2", "A1 − λA2"}[:1+2*int(x)] {
		m.Maps = append(m.Maps, task.Matrix{Name: name,
			Rows: [][]float64{{1}, {0.5, 0.5}, {0.2, 0.3, 0.5}, {0.1, 0.5, 0.6, -0.2}}})
	}
	return m
}

// fakePage has every part, of two models that differ.
func fakePage(t testing.TB) *Page {
	t.Helper()
	var cells []*eval.Cell
	for i, name := range []string{"base <b>", "other"} {
		model := eval.Model{Name: name, Hash: name, Arch: "diff", Parameters: 1_234_567, Context: 64}
		for k, r := range fakeResults(float64(i)) {
			cells = append(cells, cellOf(model, k, r))
		}
	}
	p := &Page{Title: "a<b & <script>alert(1)</script>", Evaluation: eval.Assemble(cells), Seconds: 754,
		Command: "antiphase x", Recipe: json.RawMessage(`{"note":"a<b"}`)}
	for _, name := range []string{"base <b>", "other"} {
		tr := Training{Model: name, Tokens: 24_576_000, TokensPerSecond: 41_230,
			Steady: &metrics.Steadiness{Steps: 400, LossSpikes: 1, Middle: 0.5, Late: 0.6}}
		tr.AddGroups(100, metrics.Groups{{Name: "q1", Norm: 0.1}, {Name: "o", Norm: 0.2}})
		tr.AddGroups(200, metrics.Groups{{Name: "q1", Norm: 0.1}, {Name: "o", Norm: 0.2}})
		for step := 1; step < 400; step++ {
			c := CurvePoint{Step: step, Loss: 1 + 5/math.Sqrt(float64(step)), Grad: 0.5}
			if step%50 == 0 {
				c.Valid = &c.Loss
			}
			tr.Curve = append(tr.Curve, c)
		}
		p.Training = append(p.Training, tr)
	}
	sc, err := eval.Scaling("parameters", paperScaling(), 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	p.Scaling, p.Ablation = []eval.ScalingResult{*sc}, &Ablation{Size: "tiny", Steps: 5, Tokens: 1000}
	rows, err := eval.Ablations("diff")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range rows {
		p.Ablation.Rows = append(p.Ablation.Rows,
			AblationRow{Name: a.Name, Doc: a.Doc, Arch: "x", Heads: 4, HeadDim: 8,
				Loss: eval.Mean{Value: 3, StdErr: 0.1, N: 4}})
	}
	return p
}

func renderPage(t testing.TB, p *Page) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.HTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// wellFormed fails where tags are not balanced or something is not escaped: the page is XML but for its first line.
func wellFormed(t testing.TB, page string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(strings.Replace(page, "<!doctype html>", "", 1)))
	d.Entity = xml.HTMLEntity
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("page: %v near %q", err,
				page[max(0, d.InputOffset()-80):min(int64(len(page)), d.InputOffset()+80)])
		}
	}
}
