package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"antiphase/eval"
	"antiphase/eval/task"
)

// A score requires knowledge if its interval, or without one its value, is above every floor; only of measures where
// higher is better, and of floors below 1.
func TestAboveFloors(t *testing.T) {
	for _, c := range []struct {
		low, value, high float64
		better           eval.Better
		floors           map[string]float64
		want             bool
	}{
		{0.3, 0.5, 0.7, eval.Higher, map[string]float64{"chance": 0.25}, true},
		{0.25, 0.5, 0.7, eval.Higher, map[string]float64{"chance": 0.25}, false},
		{0.3, 0.5, 0.7, eval.Higher, map[string]float64{"chance": 0.1, "copy": 0.4}, false},
		{0.3, 0.5, 0.7, eval.Higher, map[string]float64{"chance": 0.4, "copy": 0.1}, false},
		{0, 0.5, 0, eval.Higher, map[string]float64{"chance": 0.25}, true},
		{0, 0.25, 0, eval.Higher, map[string]float64{"chance": 0.25}, false},
		{0, 0.1, 0.3, eval.Higher, map[string]float64{"chance": 0.05}, false},
		{-0.1, 0.1, 0, eval.Higher, map[string]float64{"chance": 0.05}, false},
		{0.3, 0.5, 0.7, eval.Higher, map[string]float64{"copy": 1}, true},
		{0.3, 0.5, 0.7, eval.Lower, map[string]float64{"chance": 0.9}, true},
		{0.3, 0.5, 0.7, eval.Higher, nil, true},
	} {
		m := eval.Metric{Mean: eval.Mean{Value: c.value}, Low: c.low, High: c.high, Better: c.better, Floors: c.floors}
		if aboveFloors(&m) != c.want {
			t.Errorf("%+v: %v, want %v", c, !c.want, c.want)
		}
	}
}

// The table of scaling has a row per point, the name at the first of a curve, the fit beside the loss, then each
// curve's equation.
func TestScalingRows(t *testing.T) {
	points := []eval.ScalingPoint{{X: 1000, Loss: 3.5}, {X: 4000, Loss: 2.75}}
	r := &eval.ScalingResult{By: "tokens",
		Curves: []eval.ScalingCurve{{Name: "a", Points: points, E: 2, A: 2000, Alpha: 1, RMS: 0.25},
			{Name: "b", Points: points[:1], E: 1, A: 10, Alpha: 0.5}}}
	var got []string
	for _, l := range strings.Split(ScalingTable(r, false), "\n") {
		if l != "" && !strings.HasPrefix(l, "─") {
			got = append(got, strings.Join(strings.Fields(l), " "))
		}
	}
	want := []string{"architecture tokens loss fit", "a 1,000 3.5000 4.0000", "4,000 2.7500 2.5000",
		"b 1,000 3.5000 1.3162", "a: L(x) = 2.0000 + 2000·x^−1.0000, residuals 0.25",
		"b: L(x) = 1.0000 + 10·x^−0.5000, residuals 0"}
	if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A page by tokens stands beside the paper's figure by tokens, one by parameters beside that by parameters.
func TestScalingBesideThePaper(t *testing.T) {
	for by, c := range map[string]struct {
		curves []eval.ScalingCurve
		title  string
	}{"parameters": {paperScaling(), "Held-out loss by parameters"},
		"tokens": {paperTokens(), "Held-out loss by training tokens"}} {
		r, err := eval.Scaling(by, c.curves, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		s, err := scalingSection(&Page{Scaling: []eval.ScalingResult{*r}})
		if err != nil || len(s.Figures) != 2 || s.Figures[0].Title != c.title || s.Figures[0].ID != "scaling-"+by ||
			s.Figures[1].ID != "scaling-"+by+"-paper" {
			t.Fatalf("%s: %+v, %v", by, s, err)
		}
		if !strings.HasPrefix(s.Figures[1].Note, paperClaims[by]) || len(paperClaims[by]) == 0 ||
			!slices.EqualFunc(s.Figures[0].rows, s.Figures[1].rows, slices.Equal) {
			t.Errorf("%s: the paper's figure is %q with %v, want the rows %v", by, s.Figures[1].Note, s.Figures[1].rows,
				s.Figures[0].rows)
		}
	}
}

// Sides without a number have a dash beside the paper's; measures without a direction and questions without measures
// are not compared.
func TestSidesWithoutANumber(t *testing.T) {
	var cells []*eval.Cell
	for i, name := range []string{"A", "B", "C"} {
		m := eval.Model{Name: name, Hash: name}
		if i > 0 {
			cells = append(cells, cellOf(m, 0, made("needle", "", "bound", "bound, %", 8, 0.25*float64(i), nil)))
			cells[len(cells)-1].Result.Config = map[string]any{"needles": 4, "queries": 2}
		}
		neither := made("samples", "", "bytes", "bytes", 8, 0.5, nil)
		neither.Metrics[0].Better = eval.Neither
		none := made("none", "", "x", "x", 8, 0.5, nil)
		none.Metrics = nil
		cells = append(cells, cellOf(m, 1, neither), cellOf(m, 2, none))
	}
	p := &Page{Evaluation: eval.Assemble(cells)}
	s, err := paperSection(p)
	if err != nil || len(s.Tables) != 1 || len(s.Tables[0].Rows) != 2 {
		t.Fatalf("%+v, %v", s, err)
	}
	if row := s.Tables[0].Rows[1]; len(row) != len(s.Tables[0].Rows[0]) || row[2] != "–" ||
		!strings.HasPrefix(row[3], "25.0 ±") || !strings.HasPrefix(row[4], "50.0 ±") {
		t.Errorf("%q", row)
	}
	if s, err = pairsSection(p); err != nil || len(s.Tables) != 1 || len(s.Tables[0].Rows) != 2 ||
		s.Tables[0].Rows[1][2]+s.Tables[0].Rows[1][3] != "BC" {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err = tokensSection(p); err != nil || len(s.Figures) != 0 {
		t.Errorf("%d figures without runs, %v", len(s.Figures), err)
	}
	for _, kind := range []string{"lm", "needle_hop", ""} {
		for _, metric := range []string{"answer", "noise", "judge", "spread_random", "logits_top1"} {
			if n, ok := paperScore(kind, 0, nil, metric); ok {
				t.Errorf("the paper has %v for %s of %q", n, metric, kind)
			}
		}
	}
}

// A detail that does not fit its own axes is refused by the model's and the score's name.
func TestDetailsThatDoNotFit(t *testing.T) {
	one := eval.Mean{Value: 1, N: 1}
	for _, missing := range []string{"bound", "free"} {
		cells := map[string][][]eval.Mean{"bound": {{one}, {one}}, "free": {{one}, {one}}}
		cells[missing] = cells[missing][:1]
		r := made("needle", "", "bound", "bound, %", 4, 1,
			task.NeedleGrid{Lengths: []int{64}, Depths: []float64{0, 1}, Cells: cells})
		p := &Page{Evaluation: eval.Assemble([]*eval.Cell{cellOf(eval.Model{Name: "A", Hash: "a"}, 0, r)})}
		want := fmt.Sprintf("A: detail of needle: 1 rows of %s for 2 depths", missing)
		if _, err := needleSection(p); err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
