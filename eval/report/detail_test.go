package report

import (
	"antiphase/eval"
	"antiphase/eval/task"
	"testing"
)

// Grids of retrieval, by hand.
func TestTableData(t *testing.T) {
	cell := func(v float64) eval.Mean { return meanOf(v, 0.0625) }
	grid := task.NeedleGrid{Lengths: []int{512, 2048}, Depths: []float64{0, 0.5},
		Cells: map[string][][]eval.Mean{"bound": {{cell(1), cell(0.75)}, {cell(0.5), {}}},
			"free": {{cell(0.25)}, {cell(0.125)}}},
		Floors: map[string]map[string]float64{"bound": {"chance": 0.01, "copy": 0.25}}}
	p := pageOf("needle", "", grid)
	s, err := needleSection(p)
	const head = "score/depth/length/accuracy/stderr/n/chance/copy"
	expect(t, rowsOf(t, s, err), map[string][]string{
		"A|needle: number beside its key; floors: chance 1.0, copy 25.0 %": {head, "bound/0/512/1/0.0625/10/0.01/0.25",
			"bound/0/2048/0.75/0.0625/10/0.01/0.25", "bound/0.5/512/0.5/0.0625/10/0.01/0.25"},
		"A|needle: number anywhere in the output": {head, "free/0/512/0.25/0.0625/10/0/0",
			"free/0.5/512/0.125/0.0625/10/0/0"}})
	if rows := needleRows(p.Evaluation, p.Evaluation.Questions()[0], p.Evaluation.Sides()); rows != nil {
		t.Errorf("two lengths in one row: %+v", rows)
	}
	grid.Lengths = grid.Lengths[:1]
	other := grid
	other.Cells = map[string][][]eval.Mean{"bound": {{cell(0.5)}, {cell(0.25)}}}
	p = pageOf("needle", "", grid, other)
	if rows := needleRows(p.Evaluation, p.Evaluation.Questions()[0], p.Evaluation.Sides()); len(rows) != 1 ||
		rows[0].measure != "at depths 0 50" || rows[0].cells[0].text != "100 50" || rows[0].cells[1].text != "50 25" {
		t.Errorf("%+v", rows)
	}
	sides := p.Evaluation.Sides()
	seeds := []eval.Side{{Models: append(sides[0].Models, sides[1].Models...)}}
	if rows := needleRows(p.Evaluation, p.Evaluation.Questions()[0], seeds); len(rows) != 1 ||
		rows[0].cells[0].text != "75 38" {
		t.Errorf("two seeds of one side: %+v", rows)
	}
	seeds[0].Models = append(seeds[0].Models, &eval.Judged{})
	if rows := needleRows(p.Evaluation, p.Evaluation.Questions()[0], seeds); len(rows) != 1 ||
		rows[0].cells[0].text != "75 38" {
		t.Errorf("a seed without the question: %+v", rows)
	}
}

// Scores of interventions, and their changes head by head.
func TestInterventionData(t *testing.T) {
	score := func(name string, v, change float64) task.VariantScore {
		return task.VariantScore{Variant: name, Score: meanOf(v, 0.5), Change: meanOf(change, 0.25)}
	}
	s, err := interventionsSection(pageOf("interventions", "",
		task.InterventionsDetail{Each: "knockout", Heads: [][]float64{{0.002, -0.004}, {0.001}},
			Loss:  []task.VariantScore{score("plain", 2, 0), score("lambda=0", 2.5, 0.5)},
			Bound: []task.VariantScore{score("lambda=0", 0.5, -0.25), score("plain", 0.75, 0)},
			KL:    []task.VariantScore{score("lambda=0", 0.125, 0)}}))
	expect(t, rowsOf(t, s, err), map[string][]string{
		"table interventions-interventions": {"model/intervention/loss/change/number beside its key, %/change/KL",
			"A/plain/2.0000//75.0//", "/lambda=0/2.5000/+0.5000 ± 0.2500/50.0/−25.0 ± 25.0/0.1250"},
		"A: knockout, head by head|change of the loss in thousandths of a nat per token; stronger is a larger rise": {
			"layer/head/change", "1/1/0.002", "1/2/-0.004", "2/1/0.001"}})
}

// Context RMS by layer and by positions.
func TestContextData(t *testing.T) {
	s, err := contextSection(pageOf("context_rms", "",
		task.ContextDetail{Ends: []int{2, 5}, Bound: []float64{1, 0.5}, Grid: [][]float64{{0.75, 0.5}, {0.25, 0.125}},
			Layers: []task.ContextRMS{{Value: 4, Context: 1, Least: 0.25, Largest: 2, Gain: 3.25},
				{Value: 2, Context: 1}}}))
	expect(t, rowsOf(t, s, err), map[string][]string{
		"By layer|mean over heads and positions": {"series/layer/context RMS over value RMS/stderr",
			"A/1/0.25/", "A/2/0.5/"},
		"By positions attended to|mean over heads and layers": {"series/positions/context RMS over value RMS/stderr",
			"A/1/0.5/", "A/4/0.3125/", "1/√n/1/1/", "1/√n/4/0.5/"},
		"table context-context-rms": {"model/layer/value RMS/context RMS/least/largest/gain",
			"A/1/4/1/0.25/2/3.2", "A/2/2/1/0/0/–"}})
}

// Speed, with the change from the first model, beside the paper's.
func TestThroughputData(t *testing.T) {
	speed := func(f, b float64) task.ThroughputDetail {
		return task.ThroughputDetail{Rows: []task.ThroughputRow{{Length: 64, Batch: 2, Forward: meanOf(f, 1),
			ForwardBackward: meanOf(b, 1)},
			{Length: 128, Batch: 1, Forward: meanOf(f/2, 1), ForwardBackward: meanOf(100, 1)}}}
	}
	s, err := throughputSection(pageOf("throughput", "", speed(2000, 400), speed(1500, 500)))
	expect(t, rowsOf(t, s, err),
		map[string][]string{"table throughput": {"model/length/batch/forward/forward and backward", "A/64/2/2,000/400",
			"A/128/1/1,000/100", "B/64/2/1,500 (−25.0 %)/500 (+25.0 %)", "B/128/1/750 (−25.0 %)/100 (+0.0 %)"},
			"table throughput-paper": {"model/forward/DIFF/forward and backward/DIFF",
				"3B, 2K/51,228/46,811 (−8.6 %)/7,247/6,635 (−8.4 %)",
				"3B, 4K/48,762/44,521 (−8.7 %)/7,491/6,718 (−10.3 %)",
				"13B, 2K/14,346/13,653 (−4.8 %)/998/942 (−5.6 %)"}})
}

// The largest activations.
func TestOutlierData(t *testing.T) {
	s, err := outlierSection(pageOf("outliers", "",
		task.OutlierResult{Tokens: 6400,
			Logits: task.Extreme{Top1: 9, Top2: 8, Top3: 7, Top10: 5, Top100: 2, Median: 0.25},
			Hidden: task.Extreme{Top1: 90}}))
	expect(t, rowsOf(t, s, err), map[string][]string{
		"Attention logits|6,400 tokens": {"model/top1/top2/top3/top10/top100/median", "A/9/8/7/5/2/0.25"},
		"Hidden states|6,400 tokens":    {"model/top1/top2/top3/top10/top100/median", "A/90/0/0/0/0/0"}})
}
