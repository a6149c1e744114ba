package experiment

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"antiphase/eval"
)

// Exact p of the rank-sum test by published tables: complete separation of 3 and 3 is 2 of 20 arrangements, of 5 and
// 5 2 of 252.
func TestRankSum(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		a, b []float64
		p    float64
		less bool
	}{
		{[]float64{4, 5, 6}, []float64{1, 2, 3}, 2.0 / 20, true},
		{[]float64{1, 2, 3}, []float64{4, 5, 6}, 2.0 / 20, false},
		{[]float64{6, 7, 8, 9, 10}, []float64{1, 2, 3, 4, 5}, 2.0 / 252, true},
		{[]float64{inf, inf, inf, inf, inf}, []float64{1, 2, 3, 4, 5}, 2.0 / 252, true},
		{[]float64{inf, inf, inf}, []float64{inf, inf, inf}, 1, false},
		{[]float64{1, 4}, []float64{2, 3}, 1, false},
	} {
		if p, less := rankSum(c.a, c.b); !(math.Abs(p-c.p) <= 1e-12) || p < 1 && less != c.less {
			t.Errorf("%v and %v: p = %g (less: %v), want %g (%v)", c.a, c.b, p, less, c.p, c.less)
		}
	}
}

// A comparison that the evaluation has the other way round is turned: sign and ends of the interval change.
func TestPairedIsTurned(t *testing.T) {
	f := &final{eval: &eval.Evaluation{Paired: []eval.Paired{
		{Question: "other", Metric: "loss", A: "one", B: "two", Diff: 9, Low: 8, High: 10, Seeds: [2]int{9, 9}},
		{Question: "q", Metric: "free", A: "one", B: "two", Diff: 7, Low: 6, High: 8, Seeds: [2]int{9, 9}},
		{Question: "q", Metric: "loss", A: "one", B: "three", Diff: 5, Low: 4, High: 6, Seeds: [2]int{9, 9}},
		{Question: "q", Metric: "loss", A: "four", B: "two", Diff: 3, Low: 2, High: 4, Seeds: [2]int{9, 9}},
		{Question: "q", Metric: "loss", A: "one", B: "two", Diff: 1, Low: 0.5, High: 2, Seeds: [2]int{5, 4}},
		{Question: "q", Metric: "loss", A: "two", B: "five", Diff: 1, Low: 0.5, High: 2, Seeds: [2]int{4, 5}},
	}}}
	row := &Row{Metric: "loss", Task: &TaskInfo{Question: "q"}}
	for _, c := range []struct {
		one, two        string
		diff, low, high float64
	}{{"one", "two", 1, 0.5, 2}, {"two", "one", -1, -2, -0.5}, {"two", "five", 1, 0.5, 2},
		{"five", "two", -1, -2, -0.5}} {
		var x finding
		if !f.paired(&x, row, c.one, c.two) || x.diff != c.diff || x.low != c.low || x.high != c.high ||
			x.seeds != 4 || x.more != 5 {
			t.Errorf("%s against %s: %+v", c.two, c.one, x)
		}
	}
	for _, pair := range [][2]string{{"one", "four"}, {"four", "one"}, {"three", "two"}, {"five", "one"}} {
		if f.paired(&finding{}, row, pair[0], pair[1]) {
			t.Errorf("%q have a difference that nobody measured", pair)
		}
	}
}

// A verdict follows the interval: on the claim's side, on the other, or excluding the published effect.
func TestDecide(t *testing.T) {
	lower, share := claim{least: 0.02}, claim{ratio: true, above: true, border: 0.9}
	near := claim{above: true, border: -0.05} // as much, to 0.05
	twice := claim{ratio: true, within: 2}
	for _, c := range []struct {
		claim     claim
		low, high float64
		seeds     int
		want      string
	}{
		{lower, -0.03, -0.01, 3, Holds}, {lower, 0.01, 0.03, 3, HoldsNot}, {lower, -0.01, 0.01, 3, HoldsNot},
		{lower, -0.03, 0.01, 3, Unclear},
		{lower, -0.03, -0.01, 2, Unclear},
		{claim{}, -0.01, 0.01, 3, Unclear}, {claim{above: true}, 0.01, 0.02, 3, Holds},
		{claim{above: true}, -0.02, -0.01, 3, HoldsNot},
		{share, 0.95, 1.05, 3, Holds}, {share, 0.5, 0.7, 3, HoldsNot}, {share, 0.85, 0.95, 3, Unclear},
		{claim{ratio: true, border: 1}, 0.5, 0.8, 5, Holds}, {claim{ratio: true, border: 1}, 1.2, 1.5, 5, HoldsNot},
		{twice, 0.6, 1.9, 3, Holds}, {twice, 0.4, 0.49, 3, HoldsNot}, {twice, 2.1, 3, 3, HoldsNot},
		{twice, 0.4, 1, 3, Unclear},
		{twice, 1, 2.1, 3, Unclear}, {twice, 0.9, 1.1, 2, Unclear},
		{near, -0.04, 0.02, 3, Holds}, {near, -0.2, -0.06, 3, HoldsNot}, {near, -0.06, -0.01, 3, Unclear},
		// An interval that ends on a border lies on neither side of it.
		{claim{}, -0.5, 0, 3, Unclear}, {claim{}, 0, 0.5, 3, Unclear}, {lower, -0.02, 0.01, 3, Unclear},
		{claim{above: true}, 0, 0.5, 3, Unclear},
		{twice, 1, 2, 3, Unclear}, {twice, 0.5, 1, 3, Unclear}, {twice, 0.25, 0.5, 3, Unclear},
		{twice, 2, 3, 3, Unclear},
	} {
		x := finding{diff: (c.low + c.high) / 2, low: c.low, high: c.high, seeds: c.seeds}
		if got := c.claim.decide(x); got != c.want {
			t.Errorf("[%g, %g] of %d seeds, least %g, ratio %v, above %v: %s, want %s", c.low, c.high, c.seeds,
				c.claim.least, c.claim.ratio, c.claim.above, got, c.want)
		}
	}
}

// simulated are the rows of two architectures of equal true loss: seeds and items have effects of their own.
func simulated(g *rand.Rand, seeds, items int) []Row {
	special := map[string][]float64{}
	var rows []Row
	for _, arch := range []string{"transformer", "diff"} {
		for range items {
			special[arch] = append(special[arch], 0.1*g.NormFloat64())
		}
		for seed := range seeds {
			r := Row{origin: origin{Experiment: "sim", Run: fmt.Sprintf("%s-%d", arch, seed), Size: "tiny", Arch: arch,
				LR: 1, Seed: uint64(seed)}}
			loss := r
			loss.Measure, loss.Value = "train.valid_loss", 1
			r.Measure, r.Metric, r.Better, r.N = "lm.loss", "loss", eval.Lower, items
			r.Task = &TaskInfo{Name: "lm", Kind: "lm", Question: "q"}
			effect := 0.03 * g.NormFloat64()
			for i := range items {
				x := 2 + effect + special[arch][i] + 0.2*g.NormFloat64()
				r.Items = append(r.Items, x)
				r.Value += x / float64(items)
			}
			rows = append(rows, loss, r)
		}
	}
	return rows
}

// Intervals of verdicts over seeds and items hold the truth about as often as they say.
func TestCoverage(t *testing.T) {
	g := rand.New(rand.NewPCG(11, 12))
	trials := 2000
	if testing.Short() {
		trials = 300
	}
	held, wrong := 0, 0
	for range trials {
		f := newFinal(simulated(g, 5, 60))
		c := &claims[0]
		x, ok := f.find(c, "tiny")
		if !ok {
			t.Fatal("no comparison was found")
		}
		if x.low <= 0 && 0 <= x.high {
			held++
		}
		if c.decide(x) == Holds {
			wrong++
		}
	}
	share := 100 * float64(held) / float64(trials)
	t.Logf("5 seeds × 60 items: %.1f %% of 95 %% intervals hold the truth; %.1f %% of the claims of equal sides hold",
		share, 100*float64(wrong)/float64(trials))
	if said := fmt.Sprintf("contained the true difference in %.1f %% of 2,000", share); !testing.Short() &&
		!strings.Contains(evidenceRules, said) {
		t.Errorf("the document does not say %q", said)
	}
	if slack := 300 / math.Sqrt(float64(trials)); share < 93-slack/10 || share > 97+slack/10 {
		t.Errorf("coverage is %.1f %%, want 93 to 97", share)
	}
}

// Sentences are counted over seeds in the direction that held more often, and repeat from 9 of 10 upwards.
func TestRepeats(t *testing.T) {
	x := Repeat{Measure: "lm.loss", Better: eval.Lower, Seeds: make([]uint64, 10),
		Values: map[string][]float64{"transformer": {}, "diff": {}}}
	for i := range 10 {
		d := 0.9
		if i == 3 {
			d = 1.1
		}
		x.Values["transformer"], x.Values["diff"] = append(x.Values["transformer"], 1), append(x.Values["diff"], d)
	}
	l := Lines([]Repeat{x}, []string{"transformer", "diff"})
	if len(l) != 1 || l[0].Good != "diff" || l[0].Held != 9 || l[0].Of != 10 || !l[0].Repeated() ||
		l[0].Text != "DIFF has a lower held-out loss than the Transformer" {
		t.Fatalf("%+v", l)
	}
	x.Values["diff"][4] = 1
	if l := Lines([]Repeat{x}, []string{"transformer", "diff"}); l[0].Held != 8 || l[0].Repeated() {
		t.Errorf("8 of 10 and a tie: %+v", l)
	}
}

// A plan's table has every measure with its range, and what repeats; with fewer seeds than a verdict needs nothing
// does.
func TestSeedsTable(t *testing.T) {
	x := Repeat{Plan: "standard", Steps: 3000, Measure: "lm.loss", Better: eval.Lower, Machine: "cpu: amx",
		Values: map[string][]float64{"transformer": make([]float64, 10), "diff": make([]float64, 10)},
		Seeds:  make([]uint64, 10)}
	y := x
	y.Measure = "needle.bound N=1 R=1"
	y.Better = eval.Higher
	y.Values = map[string][]float64{"transformer": make([]float64, 10), "diff": make([]float64, 10)}
	for i := range 10 {
		x.Values["diff"][i] = -float64(i) - 1
		y.Values["diff"][i] = float64(i%2) - 0.5
	}
	archs := []string{"transformer", "diff"}
	SeedsTable([][]Repeat{{y}}, archs) // changes nothing
	got := SeedsTable([][]Repeat{nil, {x, y}}, archs)
	want := `| plan | median (range) of | Transformer | DIFF | better in at least 9 of 10 seeds |
|---|---|---|---|---|
| standard, 10 seeds | held-out loss | 0 (0 to 0) | -5.5 (-10 to -1) | DIFF over Transformer (10) |
| standard, 10 seeds | one needle, % | 0.0 (0.0 to 0.0) | 0.0 (-50.0 to 50.0) | – |

Measured: standard on cpu: amx.
`
	if got != want {
		t.Errorf("%s", got)
	}
	if got := SeedsTable(nil, archs); got != "" {
		t.Errorf("of nothing: %s", got)
	}
	lead, list := Repeated([]Repeat{x}, nil, archs)
	if len(list) != 1 || list[0].Source != "held in 10 of 10 seeds" ||
		list[0].Basis != "this run: not seen; over seeds -10 to -1 against 0 to 0" ||
		!strings.Contains(lead, "this run shows 0") {
		t.Errorf("%s %+v", lead, list)
	}
	x.Seeds = x.Seeds[:7]
	if got := SeedsTable([][]Repeat{{x}}, archs); !strings.Contains(got, "| too few seeds: a verdict needs 10 |") {
		t.Errorf("%s", got)
	}
	if lead, list := Repeated([]Repeat{x}, nil, archs); list != nil ||
		!strings.Contains(lead, "measured over 7 seeds") {
		t.Errorf("%s %v", lead, list)
	}
}

// Figures have as many digits as they need: small divergences are not printed as 0.
func TestFigure(t *testing.T) {
	c := claim{unit: "nats"}
	for want, x := range map[string]finding{
		"0.00012 against 0.00031: −0.00019 [−0.00021, −0.00017] nats": {diff: -0.00019, low: -0.00021, high: -0.00017,
			arch: 0.00012, than: 0.00031},
		"2.500 against 2.600: −0.100 [−0.200, +0.000] nats": {diff: -0.1, low: -0.2, high: 0,
			arch: 2.5, than: 2.6},
		"0.000 against 0.000: +0.000 [+0.000, +0.000] nats": {},
		"25.0 against 12.5: +12.5 [+12.0, +13.0] nats": {diff: 12.5, low: 12, high: 13,
			arch: 25, than: 12.5},
	} {
		if got := c.figure(x); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
