package eval

import (
	"math"
	"testing"

	"antiphase/layer"
	"antiphase/model"
)

// What each row of the paper's Table 6 and of DIFF V2's list changes, and of which model. Everything that a row does
// not name stays as it was. 1.5 h heads cost 2·(h/2)·d rows of the model's width, a third of which is taken from each
// of the MLP's three matrices, rounded down to a multiple of 8.
func TestAblationRows(t *testing.T) {
	base := model.Config{Arch: "x", Vocab: 1, Context: 2, Layers: 3, Dim: 512, Heads: 16, KVHeads: 16, HeadDim: 32, FFN: 1024}
	with := func(change func(c *model.Config)) model.Config { c := base; change(&c); return c }
	groups := func(c *model.Config) { c.KVHeads = 8 }
	want := map[string]struct {
		challenger bool
		config     model.Config
	}{
		"base":             {false, base},
		"base-wide":        {false, with(func(c *model.Config) { c.Heads, c.KVHeads, c.HeadDim = 8, 8, 64 })},
		"base-wide-norm":   {false, with(func(c *model.Config) { c.Heads, c.KVHeads, c.HeadDim, c.HeadNorm = 8, 8, 64, layer.HeadNormAffine })},
		"diff":             {true, base},
		"diff-no-norm":     {true, with(func(c *model.Config) { c.HeadNorm = layer.HeadNormOff })},
		"diff-lambda-0.8":  {true, with(func(c *model.Config) { c.LambdaInit, c.LambdaConst = "constant", 0.8 })},
		"diff-lambda-0.5":  {true, with(func(c *model.Config) { c.LambdaInit, c.LambdaConst = "constant", 0.5 })},
		"v2-base":          {false, with(groups)},
		"v2-base-1.5h":     {false, with(func(c *model.Config) { groups(c); c.Heads, c.FFN = 24, 1024-168 })}, // 512/3 = 170.7
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

// Two groups by the formula of compare's comment, with the parts of a textbook's analysis of variance; weights that are
// all equal change nothing.
func TestCrossedByHand(t *testing.T) {
	a := [][]float64{{1, 4, 2, 8, 5}, {3, 5, 9, 7, 1}, {9, 9, 8, 12, 7}}
	b := [][]float64{{6, 2, 9, 4, 15}, {14, 8, 12, 17, 11}}
	S, I := []float64{3, 2}, 5.0
	var s2, e2 [2]float64
	s2[0], e2[0] = anova(a)
	s2[1], e2[1] = anova(b)
	diffs, mean := make([]float64, 5), 0.0
	for i := range diffs {
		for _, x := range b {
			diffs[i] += x[i] / S[1]
		}
		for _, x := range a {
			diffs[i] -= x[i] / S[0]
		}
		mean += diffs[i] / I
	}
	d2 := 0.0
	for _, d := range diffs {
		d2 += (d - mean) * (d - mean) / (I - 1)
	}
	parts := []float64{s2[0] / S[0], s2[1] / S[1], d2 / I}
	v := parts[0] + parts[1] + parts[2] - (e2[0]/S[0]+e2[1]/S[1])/I
	df := v * v / (parts[0]*parts[0]/2 + parts[1]*parts[1]/1 + parts[2]*parts[2]/4)
	if v <= parts[2] {
		t.Fatalf("models differ too little for this test: %g of %v", v, parts)
	}
	for _, w := range []float64{1, 3} {
		tab := &table{n: 5, w: []float64{w, w, w, w, w}}
		for _, x := range append(a[:3:3], b...) {
			row := make([]float64, 5)
			for i := range row {
				row[i] = w * x[i]
			}
			tab.x = append(tab.x, row)
		}
		m, got := tab.compare(3)
		if !near(m.Value, mean, 1e-12) || !near(m.StdErr, math.Sqrt(v), 1e-12) || !near(got, max(df, 1), 1e-9) || m.N != 5 {
			t.Errorf("weight %g: %+v with %g degrees of freedom, want %g ± %g with %g", w, m, got, mean, math.Sqrt(v), df)
		}
		one := &table{n: 5, w: tab.w, x: tab.x[:3]}
		side, half := one.side()
		items := 0.0 // of the means over models
		for i := range 5 {
			d := (a[0][i]+a[1][i]+a[2][i])/3 - side.Value
			items += d * d / (I - 1)
		}
		q2, q4 := StudentQuantile(0.975, 2), StudentQuantile(0.975, 4)
		rest := e2[0] / (3 * I)
		h := math.Sqrt(q2*q2*s2[0]/3 + q4*q4*max(items/I-rest, 0))
		if !near(half, h, 1e-9) || s2[0]/3 <= rest {
			t.Errorf("weight %g: half an interval is %g, want %g", w, half, h)
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
		return &Result{Answers: []Answer{{ID: "a", Values: map[string]float64{"x": 2}}, {ID: "b", Values: map[string]float64{"x": 2}}}}
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

// A metric that only some of a group's models have is the mean of those, with Student's interval over them.
func TestSideWithGaps(t *testing.T) {
	e := &Evaluation{}
	for i, x := range []float64{2, 5, 0} {
		r := Result{Question: "q", Task: "t", Kind: "t", Metrics: []Metric{{Name: "other"}}}
		if i < 2 {
			r.Metrics = append(r.Metrics, Metric{Name: "m", Mean: Mean{x, 9, 40}, Better: Lower})
		}
		e.Models = append(e.Models, Judged{Model: Model{Name: string(rune('a' + i)), Group: "g"}, Results: []Result{r}})
	}
	m, ok := e.Sides()[0].Metric("q", "m")
	half := 12.7062 * 1.5 // variance 4.5 of two: error 1.5, t(1) = 12.7062
	if !ok || m.Value != 3.5 || !near(m.StdErr, 1.5, 1e-12) || m.N != 40 || m.Better != Lower || !near(m.Low, 3.5-half, 1e-3) || !near(m.High, 3.5+half, 1e-3) {
		t.Errorf("%+v, %v", m, ok)
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
		r, err := Scaling("parameters", []ScalingCurve{first, other, curveOf("third", 2, 80, 0.35, 0, nil, xs...)}, 0, 1)
		if err != nil || len(r.Matches) != 2 || r.By != "parameters" || r.Matches[0].Name != "other" || r.Matches[1].Name != "third" {
			t.Fatalf("%+v, %v", r, err)
		}
		for i, a := range []float64{90, 80} {
			m := r.Matches[i]
			ratio := math.Pow(a/100, 1/0.35) // 100·x^−0.35 = a·y^−0.35
			if !near(m.Ratio, ratio, 1e-3) || m.At != xs[n-1] || !near(m.Needs/xs[n-1], ratio, 1e-3) || !near(m.Loss, 2+100*math.Pow(xs[n-1], -0.35), 1e-4) {
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
