package eval

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"antiphase/layer"
	"antiphase/model"
)

// What each row of the paper's Table 6 and of DIFF V2's list changes, and of which model. Everything that a row does
// not name stays as it was. 1.5 h heads cost 2·(h/2)·d rows of the model's width, a third of which is taken from each
// of the MLP's three matrices, rounded down to a multiple of 8.
func TestAblationRows(t *testing.T) {
	base := model.Config{Arch: "x", Vocab: 1, Context: 2, Layers: 3, Dim: 512, Heads: 16, KVHeads: 16,
		HeadDim: 32, FFN: 1024}
	with := func(change func(c *model.Config)) model.Config { c := base; change(&c); return c }
	groups := func(c *model.Config) { c.KVHeads = 8 }
	want := map[string]struct {
		challenger bool
		config     model.Config
	}{
		"base":      {false, base},
		"base-wide": {false, with(func(c *model.Config) { c.Heads, c.KVHeads, c.HeadDim = 8, 8, 64 })},
		"base-wide-norm": {false, with(func(c *model.Config) {
			c.Heads, c.KVHeads, c.HeadDim, c.HeadNorm = 8, 8, 64,
				layer.HeadNormAffine
		})},
		"diff":             {true, base},
		"diff-no-norm":     {true, with(func(c *model.Config) { c.HeadNorm = layer.HeadNormOff })},
		"diff-lambda-0.8":  {true, with(func(c *model.Config) { c.LambdaInit, c.LambdaConst = "constant", 0.8 })},
		"diff-lambda-0.5":  {true, with(func(c *model.Config) { c.LambdaInit, c.LambdaConst = "constant", 0.5 })},
		"v2-base":          {false, with(groups)},
		"v2-base-1.5h":     {false, with(func(c *model.Config) { groups(c); c.Heads, c.FFN = 24, 1024-168 })}, // 512/3
		"v2":               {true, with(groups)},
		"v2-no-lambda":     {true, with(func(c *model.Config) { groups(c); c.LambdaForm = "none" })},
		"v2-linear-lambda": {true, with(func(c *model.Config) { groups(c); c.LambdaForm = "linear" })},
		"v2-across":        {true, with(func(c *model.Config) { groups(c); c.Pairing = "across" })},
	}
	n := 0
	for _, arch := range []string{"diff", "diff2"} {
		list, err := Ablations(arch)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range list {
			n++
			c := base
			a.Change(&c)
			if w, ok := want[a.Name]; !ok || c != w.config || a.Challenger != w.challenger || a.Doc == "" {
				t.Errorf("%s: challenger %v, %+v; want %v, %+v", a.Name, a.Challenger, c, w.challenger, w.config)
			}
		}
	}
	if n != len(want) {
		t.Errorf("%d rows, want %d", n, len(want))
	}
	one := model.Config{Heads: 1, KVHeads: 1}
	if list, _ := Ablations("diff2"); true {
		if list[2].Change(&one); one.KVHeads != 1 {
			t.Errorf("a single head has %d groups", one.KVHeads)
		}
	}
}

// anova is the two-way layout of a textbook: x[model][item], the variance of the models' means, and the residual mean
// square with (S−1)(I−1) degrees of freedom.
func anova(x [][]float64) (between, residual float64) {
	S, I := float64(len(x)), float64(len(x[0]))
	grand := 0.0
	rows, cols := make([]float64, len(x)), make([]float64, len(x[0]))
	for m := range x {
		for i, v := range x[m] {
			rows[m] += v / I
			cols[i] += v / S
			grand += v / (S * I)
		}
	}
	for m := range x {
		between += (rows[m] - grand) * (rows[m] - grand) / (S - 1)
		for i, v := range x[m] {
			d := v - rows[m] - cols[i] + grand
			residual += d * d / ((S - 1) * (I - 1))
		}
	}
	return between, residual
}

// byHand is the formula of compare's comment with the parts of a textbook's analysis of variance: the difference, its
// variance, the part of the items, and the degrees of freedom.
func byHand(a, b [][]float64) (mean, v, items, df float64) {
	I := float64(len(a[0]))
	diffs, squares, rest := make([]float64, len(a[0])), 0.0, 0.0
	for k, side := range [][][]float64{a, b} {
		S := float64(len(side))
		for _, x := range side {
			for i := range x {
				diffs[i] += float64(2*k-1) * x[i] / S
			}
		}
		if len(side) > 1 {
			between, residual := anova(side)
			v += between / S
			squares += between * between / (S * S * (S - 1))
			rest += residual / S / I
		}
	}
	items = variance(diffs) / I
	v += items - rest
	squares += items * items / (I - 1)
	return average(diffs), v, items, max(v*v/squares, 1)
}

// answered is results with these values of x.
func answered(models [][]float64) (out []*Result) {
	for _, m := range models {
		r := &Result{}
		for i, x := range m {
			r.Answers = append(r.Answers, Answer{ID: fmt.Sprint(i), Values: map[string]float64{"x": x}})
		}
		out = append(out, r)
	}
	return out
}

// Groups of all sizes by the formula, with interval and p; weights that are all equal change nothing.
func TestCrossedByHand(t *testing.T) {
	three := [][]float64{{1, 4, 2, 8, 5}, {3, 5, 9, 7, 1}, {9, 9, 8, 12, 7}}
	two := [][]float64{{6, 2, 9, 4, 15}, {14, 8, 12, 17, 11}}
	least := 9.0
	for _, c := range [][2][][]float64{{three, two}, {two, three}, {three[:1], two}, {three, two[1:]}, {two, three[:2]},
		{{{0, 0, 1, 0, 0, 0}}, {{9, -9, 9, -9, 9, -9}, {-0.8, 17.2, -0.8, 17.2, -0.8, 17.2}}}} {
		a, b := c[0], c[1]
		mean, v, items, df := byHand(a, b)
		if v <= items {
			t.Fatalf("models differ too little for this test: %g of %g", v, items)
		}
		least = min(least, df)
		for _, w := range []float64{1, 3} {
			tab := &table{n: len(a[0])}
			for range a[0] {
				tab.w = append(tab.w, w)
			}
			for _, x := range slices.Concat(a, b) {
				row := make([]float64, len(x))
				for i := range row {
					row[i] = w * x[i]
				}
				tab.x = append(tab.x, row)
			}
			m, got := tab.compare(len(a))
			if !near(m.Value, mean, 1e-12) || !near(m.StdErr, math.Sqrt(v), 1e-12) || !near(got, df, 1e-9) ||
				m.N != tab.n {
				t.Errorf("weight %g: %+v with %g degrees of freedom, want %g ± %g with %g", w, m, got, mean,
					math.Sqrt(v), df)
			}
		}
		p, ok := pair(answered(a), answered(b), "x", 1)
		half := StudentQuantile(0.975, df) * math.Sqrt(v)
		if !ok || !near(p.Low, mean-half, 1e-9) || !near(p.High, mean+half, 1e-9) {
			t.Errorf("%v and %v: %+v, want ± %g", a, b, p, half)
		}
		// The two-sided p is where the interval of that level ends at 0.
		if at := StudentQuantile(1-p.P/2, df) * math.Sqrt(v); !near(at, math.Abs(mean), 1e-6) || p.P <= 0 || p.P > 1 {
			t.Errorf("%v and %v: p = %g, whose interval is ± %g around %g", a, b, p.P, at, mean)
		}
	}
	if least > 1 {
		t.Errorf("the fewest degrees of freedom are %g, want a case with the bound", least)
	}
}

// The interval of one group by the formula of side's comment. Items whose means agree have no part of their own.
func TestSideByHand(t *testing.T) {
	for _, x := range [][][]float64{{{1, 4, 2, 8, 5}, {3, 5, 9, 7, 1}, {9, 9, 8, 12, 7}},
		{{1, -1, 1, -1, 1}, {9, 11, 9, 11, 9}}} {
		S, I := float64(len(x)), float64(len(x[0]))
		means := make([]float64, len(x[0]))
		for _, m := range x {
			for i, v := range m {
				means[i] += v / S
			}
		}
		between, residual := anova(x)
		rest := residual / (S * I)
		if between/S <= rest {
			t.Fatal("models differ too little for this test")
		}
		of := func(df float64) float64 { return math.Pow(StudentQuantile(0.975, df), 2) }
		want := math.Sqrt(of(S-1)*between/S + of(I-1)*max(variance(means)/I-rest, 0))
		for _, w := range []float64{1, 3} {
			tab := &table{n: 5, w: []float64{w, w, w, w, w}}
			for _, m := range x {
				row := make([]float64, len(m))
				for i := range row {
					row[i] = w * m[i]
				}
				tab.x = append(tab.x, row)
			}
			if m, half := tab.side(); !near(half, want, 1e-9) || !near(m.Value, average(means), 1e-12) {
				t.Errorf("weight %g: %+v ± %g, want ± %g", w, m, half, want)
			}
		}
	}
}

// Models that differ by less than the residual explains have no variance of their own: only the items count.
func TestModelsThatAgree(t *testing.T) {
	tab := &table{n: 4, w: []float64{1, 1, 1, 1}, x: [][]float64{{1, 2, 3, 4.5}, {2, 1, 4.5, 3}}} // equal means
	items := variance([]float64{1.5, 1.5, 3.75, 3.75}) / 4
	m, df := tab.compare(0)
	if !near(m.StdErr, math.Sqrt(items), 1e-12) || df != 3 {
		t.Errorf("error %g with %g degrees of freedom, want %g with 3", m.StdErr, df, math.Sqrt(items))
	}
	if _, half := tab.side(); !near(half, StudentQuantile(0.975, 3)*math.Sqrt(items), 1e-9) {
		t.Errorf("half an interval is %g", half)
	}
}

// Groups that differ in nothing have p = 1 and no interval; a side without models is not compared.
func TestPairOfEqualGroups(t *testing.T) {
	same := func() *Result {
		return &Result{Answers: []Answer{{ID: "a", Values: map[string]float64{"x": 2}},
			{ID: "b", Values: map[string]float64{"x": 2}}}}
	}
	p, ok := pair([]*Result{same(), same()}, []*Result{same()}, "x", 1)
	if !ok || p.P != 1 || p.Diff != 0 || p.Low != 0 || p.High != 0 || p.Seeds != [2]int{2, 1} {
		t.Errorf("%+v, %v", p, ok)
	}
	for _, sides := range [][2][]*Result{{nil, {same()}}, {{same()}, nil}} {
		if _, ok := pair(sides[0], sides[1], "x", 1); ok {
			t.Error("a side without models was compared")
		}
	}
}

// A metric that only some of a group's models have is the mean of those, with Student's interval over them; so is one
// without values by sample.
func TestSideWithGaps(t *testing.T) {
	answers := answered([][]float64{{1, 5, 2, 7}, {3, 4, 4, 6}, {0, 2, 8, 8}})
	for _, c := range []struct{ models, samples int }{{2, 0}, {3, 0}, {2, 3}} { // with the metric, and with samples
		e, values := &Evaluation{}, []float64{2, 5, 11}
		for i, x := range values {
			r := Result{Question: "q", Task: "t", Kind: "t", Metrics: []Metric{{Name: "other"}}}
			if i < c.models {
				r.Metrics = append(r.Metrics, Metric{Name: "x", Mean: Mean{x, 9, 40}, Better: Lower})
			}
			if i < c.samples {
				r.Answers = answers[i].Answers
			}
			e.Models = append(e.Models, Judged{Model: Model{Name: string(rune('a' + i)), Group: "g"},
				Results: []Result{r}})
		}
		values = values[:c.models]
		m, ok := e.Sides()[0].Metric("q", "x")
		mean, stderr := average(values), math.Sqrt(variance(values)/float64(c.models))
		half := StudentQuantile(0.975, float64(c.models-1)) * stderr
		if !ok || m.Value != mean || !near(m.StdErr, stderr, 1e-12) || m.N != 40 || m.Better != Lower ||
			!near(m.Low, mean-half, 1e-9) || !near(m.High, mean+half, 1e-9) {
			t.Errorf("%+v: %+v, %v", c, m, ok)
		}
	}
}

// Errors of neighbouring points by hand: (Σx_i·x_(i−1)/Σx² + 3/n)/(1 − 5/n) from 0 to 0.9, and 0 with fewer than eight.
func TestCorrelationByHand(t *testing.T) {
	for _, c := range []struct {
		errors []float64
		want   float64
	}{
		{[]float64{1, 1, -1, -1, 1, 1, -1, -1, 1, 1}, (1./10 + 3./10) / (1 - 5./10)},
		{[]float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 0.9},
		{[]float64{1, -1, 1, -1, 1, -1, 1, -1, 1, -1}, 0},
		{[]float64{2, 0, 0, 0, 0, 0, 0, 0}, 0.9}, // (0 + 3/8)/(3/8) = 1
		{[]float64{1, -1, 0, 0, 1, -1, 0, 0, 1, -1, 0, 0}, (-3./6 + 3./12) / (1 - 5./12)},
		{[]float64{1, 1, 1, 1, 1, 1, 1}, 0},
		{make([]float64, 9), 0},
	} {
		s := ScalingCurve{E: 1, A: 2, Alpha: 1}
		for i, e := range c.errors {
			x := float64(i + 1)
			s.Points = append(s.Points, ScalingPoint{x, 1 + 2/x + e/1024})
		}
		if got := s.correlation(); !near(got, min(max(c.want, 0), 0.9), 1e-9) {
			t.Errorf("%v: %g, want %g", c.errors, got, c.want)
		}
	}
}

// Three points have no interval, four have one; every challenger is compared with the first; by parameters no
// correlation is estimated.
func TestScalingMatches(t *testing.T) {
	xs := []float64{1e6, 2e6, 4e6, 8e6, 1.6e7}
	for n, interval := range map[int]bool{3: false, 4: true, 5: true} {
		first, other := curveOf("first", 2, 100, 0.35, 0, nil, xs[:n]...), curveOf("other", 2, 90, 0.35, 0, nil, xs...)
		r, err := Scaling("parameters", []ScalingCurve{first, other, curveOf("third", 2, 80, 0.35, 0, nil, xs...)}, 0,
			1)
		if err != nil || len(r.Matches) != 2 || r.By != "parameters" || r.Matches[0].Name != "other" ||
			r.Matches[1].Name != "third" {
			t.Fatalf("%+v, %v", r, err)
		}
		for i, a := range []float64{90, 80} {
			m := r.Matches[i]
			ratio := math.Pow(a/100, 1/0.35) // 100·x^−0.35 = a·y^−0.35
			if !near(m.Ratio, ratio, 1e-3) || m.At != xs[n-1] || !near(m.Needs/xs[n-1], ratio, 1e-3) ||
				!near(m.Loss, 2+100*math.Pow(xs[n-1], -0.35), 1e-4) {
				t.Errorf("%d points: %+v, want the ratio %g", n, m, ratio)
			}
			if (m.Low != 0 || m.High != 0) != interval || (m.Draws > 0) != interval || m.Draws > BootstrapDraws {
				t.Errorf("%d points: interval %g to %g of %d draws", n, m.Low, m.High, m.Draws)
			}
		}
		if r.Curves[0].Rho != 0 || len(r.Curves) != 3 {
			t.Errorf("%+v", r.Curves[0])
		}
	}
	three, five := curveOf("three", 2, 100, 0.35, 0, nil, xs[:3]...), curveOf("five", 2, 90, 0.35, 0, nil, xs...)
	if r, err := Scaling("parameters", []ScalingCurve{five, three}, 0, 1); err != nil || r.Matches[0].Draws != 0 {
		t.Errorf("three points of a challenger: %+v, %v", r, err)
	}
	bent := func(name string, sign float64) ScalingCurve {
		c := curveOf(name, 2, 3, 0.5, 0, nil, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
		for i := range c.Points {
			c.Points[i].Loss += sign * 0.01 * float64(i/2%2)
		}
		return c
	}
	r, err := Scaling("tokens", []ScalingCurve{bent("a", 1), bent("b", -1)}, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Curves {
		if c.Rho == 0 || c.Rho != c.correlation() {
			t.Errorf("by tokens ρ of %s is %g, want %g", c.Name, c.Rho, c.correlation())
		}
	}
	// Within a thousandth two x are one place; a loss below every E ≥ 0 is not reached.
	close := ScalingCurve{Points: []ScalingPoint{{1000, 3}, {1000.5, 3}, {2000, 2}}}
	if close.fit() == nil {
		t.Error("three numbers were fitted to two places")
	}
	close.Points[1].X = 1002
	if err := close.fit(); err != nil {
		t.Error(err)
	}
	flat := ScalingCurve{Points: []ScalingPoint{{1, 4}, {2, 2}, {4, 1}, {8, 0.4}}}
	if err := flat.fit(); err != nil || flat.E < 0 {
		t.Errorf("E = %g, %v", flat.E, err)
	}
}
