package report

import (
	"antiphase/eval"
	"antiphase/eval/task"
)

// The numbers of Ye et al., "Differential Transformer" (arXiv 2410.05258v2), that reports show next to ours. Those of
// figures were read from the vector drawings. Names are the paper's two models.
const (
	paperBase = "Transformer (paper)"
	paperDiff = "DIFF (paper)"
	baseName  = "Transformer" // where a figure is the paper's as a whole
	diffName  = "DIFF"
)

// paperScaling is Figure 3a: parameters in billions, held-out loss after 10B tokens.
func paperScaling() []eval.ScalingCurve {
	sizes := []float64{0.8335, 1.4132, 2.7943, 6.8365, 13.1226}
	return []eval.ScalingCurve{
		paperCurve(baseName, sizes, []float64{3.170, 3.087, 3.003, 2.961, 2.899}),
		paperCurve(diffName, sizes, []float64{3.138, 3.062, 2.977, 2.934, 2.872}),
	}
}

// paperClaims are the paper's own readings of its two curves.
var paperClaims = map[string]string{
	"parameters": "The paper's own: 6.8B of DIFF do what 11B of Transformer do (62.2 %), 7.8B what 13.1B do (59.5 %).",
	"tokens":     "The paper's own: DIFF after 160B tokens is where Transformer is after 251B (63.7 %).",
}

// paperTokens is Figure 3b: training tokens in billions, held-out loss of the 3B models.
func paperTokens() []eval.ScalingCurve {
	tokens := []float64{40, 80, 120, 160, 200, 240, 280, 320, 360}
	return []eval.ScalingCurve{
		paperCurve(baseName, tokens, []float64{2.947, 2.689, 2.618, 2.580, 2.555, 2.540, 2.544, 2.510, 2.508}),
		paperCurve(diffName, tokens, []float64{2.855, 2.636, 2.573, 2.535, 2.518, 2.510, 2.490, 2.478, 2.474}),
	}
}

func paperCurve(name string, x, loss []float64) eval.ScalingCurve {
	c := eval.ScalingCurve{Name: name}
	for i := range x {
		c.Points = append(c.Points, eval.ScalingPoint{X: x[i] * 1e9, Loss: loss[i]})
	}
	return c
}

// paperPositions is Figure 4: cumulative loss up to a position, 64K models on books. The axis has no labels: values
// assume that its ticks are 2.1, 2.2 … 2.9.
var paperPositions = struct {
	at         []int
	base, diff []float64
}{
	[]int{60, 100, 200, 500, 1000, 2000, 4000, 8000, 16000, 32000, 48000, 65537},
	[]float64{2.885, 2.707, 2.557, 2.507, 2.450, 2.402, 2.323, 2.266, 2.212, 2.193, 2.161, 2.141},
	[]float64{2.824, 2.635, 2.504, 2.463, 2.409, 2.364, 2.286, 2.232, 2.177, 2.156, 2.130, 2.116},
}

// paperNeedleTable is Table 2: N, R and the accuracy at 4K.
var paperNeedleTable = []struct {
	needles, queries int
	base, diff       float64
}{{1, 1, 1, 1}, {2, 2, 0.85, 0.92}, {4, 2, 0.62, 0.84}, {6, 2, 0.55, 0.85}}

// paperNeedleGrid is Figure 5: N = 8, R = 1; depths 0 to 100 % by lengths 8K to 64K.
func paperNeedleGrid() (base, diff task.NeedleGrid) {
	grid := func(cells ...[]float64) task.NeedleGrid {
		g := task.NeedleGrid{Needles: 8, Queries: 1,
			Lengths: []int{8192, 16384, 24576, 32768, 40960, 49152, 57344, 65536}, Depths: task.Depths}
		var rows [][]eval.Mean
		for _, row := range cells {
			var out []eval.Mean
			for _, x := range row {
				out = append(out, eval.Mean{Value: x, N: 50})
			}
			rows = append(rows, out)
		}
		g.Cells = map[string][][]eval.Mean{"paper": rows}
		return g
	}
	base = grid(
		[]float64{.96, .96, .90, .88, .50, .82, .78, .04},
		[]float64{.92, .58, .66, .16, .12, .58, .66, .12},
		[]float64{.90, .76, .72, .40, .28, .48, .56, .70},
		[]float64{.96, .92, .64, .76, .58, .88, .88, .72},
		[]float64{1, 1, 1, 1, 1, 1, 1, 1})
	diff = grid(
		[]float64{1, 1, 1, .44, 1, .98, .66, .60},
		[]float64{1, .86, .66, .80, .52, .80, .64, .88},
		[]float64{1, .96, .74, .92, .90, .92, .92, .92},
		[]float64{.98, .90, .94, .98, .74, .88, .98, .90},
		[]float64{1, 1, 1, 1, 1, 1, 1, 1})
	return base, diff
}

// paperAttention is Table 3, by depth: attention to the answer and noise.
var paperAttention = struct{ baseAnswer, diffAnswer, baseNoise, diffNoise []float64 }{
	[]float64{.03, .03, .03, .07, .09}, []float64{.27, .30, .31, .32, .40},
	[]float64{.51, .54, .52, .49, .49}, []float64{.01, .02, .02, .02, .01},
}

// paperSegments is Figure 1, the answer half way in.
var paperSegments = struct{ base, diff task.Segments }{
	task.Segments{BOS: .32, Before: .18, Answer: .03, After: .34, Query: .13},
	task.Segments{BOS: .19, Before: .01, Answer: .31, After: .01, Query: .48},
}

// paperOutliers is Table 5, over 400,000 tokens.
var paperOutliers = struct{ base, diff task.OutlierResult }{
	task.OutlierResult{Tokens: 400_000,
		Logits: task.Extreme{Top1: 318.0, Top2: 308.2, Top3: 304.9, Top10: 284.7, Top100: 251.5, Median: 5.4},
		Hidden: task.Extreme{Top1: 3608.6, Top2: 3607.4, Top3: 3603.6, Top10: 3552.1, Top100: 2448.2, Median: 0.6}},
	task.OutlierResult{Tokens: 400_000,
		Logits: task.Extreme{Top1: 38.8, Top2: 38.8, Top3: 37.3, Top10: 32.0, Top100: 27.4, Median: 3.3},
		Hidden: task.Extreme{Top1: 1688.2, Top2: 1672.5, Top3: 1672.1, Top10: 1624.3, Top100: 740.9, Median: 1.2}},
}

// paperLowbit is Figure 8: zero-shot HellaSwag with attention logits of this many bits.
var paperLowbit = struct {
	bits       []int
	base, diff []float64
}{[]int{16, 8, 6, 4}, []float64{.634, .627, .589, .339}, []float64{.662, .663, .660, .588}}

// paperMC is Table 8: tasks in the harness's names, zero-shot and five-shot accuracy after 350B tokens.
var paperMC = []struct {
	task                       string
	base0, diff0, base5, diff5 float64
}{
	{"arc_challenge", .322, .330, .340, .350}, {"arc_easy", .668, .683, .695, .695}, {"boolq", .629, .601, .653, .672},
	{"hellaswag", .634, .662, .634, .669}, {"openbookqa", .262, .276, .250, .276}, {"piqa", .745, .755, .752, .761},
	{"winogrande", .616, .627, .626, .638},
}

// paperICL is Section 3.5: the stable mean accuracy of many-shot classification, and best minus worst over orders of
// the examples.
var paperICL = []struct {
	set                                string
	base, diff, baseSpread, diffSpread float64
}{
	{"trec", .6990, .8787, .19, .04}, {"trec_fine", .6096, .8260, .24, .09}, {"banking77", .6522, .7563, .13, .09},
	{"clinc150", .7400, .7922, .12, .06},
}

// paperAlternating is Figure 7b: the spread on TREC with the examples alternating by class, which no other set has.
var paperAlternating = struct{ base, diff float64 }{.567, .134}

// paperHallucination is Table 4, the question-answering sets (100 questions each): share of answers that GPT-4o judges
// accurate and free of hallucination.
var paperHallucination = []struct {
	set        string
	base, diff float64
}{{"qasper", .28, .39}, {"hotpotqa", .36, .46}, {"2wikimqa", .29, .36}}

// paperMath is Figure 10: accuracy after distilled reasoning.
var paperMath = []struct {
	set        string
	base, diff float64
}{
	{"gsm8k", .412, .426}, {"competition_math", .199, .250}, {"svamp", .550, .637}, {"asdiv", .788, .838},
	{"mawps", .751, .862}, {"carp_en", .323, .425},
	{"tabmwp", .275, .324}, {"college_math", .164, .300},
}

// paperThroughput is Table 7: tokens/s on an H100, and what DIFF loses.
var paperThroughput = []struct {
	model                    string
	baseBoth, diffBoth       float64
	baseForward, diffForward float64
}{{"3B, 2K", 7247, 6635, 51228, 46811}, {"3B, 4K", 7491, 6718, 48762, 44521}, {"13B, 2K", 998, 942, 14346, 13653}}

// paperAblation is Table 6, by the names of eval.Ablations.
var paperAblation = []struct {
	name                string
	loss, arHit, others float64
}{
	{"base", 3.087, 0.898, 3.272}, {"base-wide", 3.088, 0.899, 3.273}, {"base-wide-norm", 3.086, 0.899, 3.271},
	{"diff", 3.062, 0.880, 3.247},
	{"diff-no-norm", 3.122, 0.911, 3.309}, {"diff-lambda-0.8", 3.065, 0.883, 3.250},
	{"diff-lambda-0.5", 3.066, 0.882, 3.251},
}
