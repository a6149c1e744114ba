package report

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"antiphase/eval"
	"antiphase/eval/task"
)

// shapes are the elements of a drawing: name, class, then the numbers of their attributes.
func shapes(svg string, element string) (out []string) {
	for _, m := range regexp.MustCompile(`<`+element+
		` class="([^"]*)"((?: [a-z0-9-]+="[^"]*")*)`).FindAllStringSubmatch(svg, -1) {
		line := m[1]
		for _, a := range regexp.MustCompile(`="([^"]*)"`).FindAllStringSubmatch(m[2], -1) {
			line += " " + a[1]
		}
		out = append(out, line)
	}
	return out
}

// labels are the texts of a drawing by class.
func labels(svg, class string) (out []string) {
	for _, m := range regexp.MustCompile(`<text class="`+class+`"[^>]*>([^<]*)</text>`).FindAllStringSubmatch(svg, -1) {
		out = append(out, m[1])
	}
	return out
}

// places are where the texts of a class stand.
func places(svg, class string) (out []string) {
	for _, m := range regexp.MustCompile(`<text class="`+class+`" x="([^"]*)" y="([^"]*)"`).FindAllStringSubmatch(svg,
		-1) {
		out = append(out, m[1]+" "+m[2])
	}
	return out
}

// A scale maps its ends to its ends, logarithmic ones by octaves; values of a scale without extent are in the middle.
func TestScales(t *testing.T) {
	for _, x := range []struct {
		s        scale
		at, want float64
	}{
		{scale{lo: 0, hi: 10, from: 100, to: 200}, 0, 100}, {scale{lo: 0, hi: 10, from: 100, to: 200}, 10, 200},
		{scale{lo: 0, hi: 10, from: 200, to: 100}, 2.5, 175},
		{scale{lo: 1, hi: 16, from: 0, to: 4, log: true}, 4, 2},
		{scale{lo: 1, hi: 16, from: 0, to: 4, log: true}, 1, 0}, {scale{lo: 3, hi: 3, from: 0, to: 4}, 3, 2},
	} {
		if got := x.s.at(x.at); !(math.Abs(got-x.want) <= 1e-9) {
			t.Errorf("%+v: %g is at %g, want %g", x.s, x.at, got, x.want)
		}
	}
	for in, want := range map[float64]float64{0.9: 1, 1: 1, 1.1: 2, 2.1: 5, 5.1: 10, 0.03: 0.05, 70: 100, 0: 1, -3: 1} {
		if got := roundStep(in); !(math.Abs(got-want) <= 1e-12) {
			t.Errorf("a step of %g becomes %g, want %g", in, got, want)
		}
	}
	for want, s := range map[string]scale{"1 2 5 10 20 50 100": {lo: 1, hi: 100, tens: true},
		"0.01 0.1 1 10 100 1k 10k": {lo: 0.01, hi: 20000, tens: true}, "5 10": {lo: 4, hi: 12, tens: true}} {
		if got := strings.Join(s.texts(s.ticks(4)), " "); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
	if got := strings.Join(tickText([]float64{5e8, 1e9, 1.5e9, 2e10}), " "); got != "500M 1B 1.5B 20B" {
		t.Errorf("%q", got)
	}
	if got := strings.Join(tickText([]float64{0, 500000, 1e6, 1.5e6, 2500000}), " "); got != "0 500k 1M 1.5M 2.5M" {
		t.Errorf("%q", got)
	}
	if lo, hi := extent([][2]float64{{0, 1}, {0, 3}},
		[][2]float64{{0, math.NaN()}, {0, 2}}); !(math.Abs(lo-0.9) <= 1e-12) || !(math.Abs(hi-3.1) <= 1e-12) {
		t.Errorf("%g to %g", lo, hi)
	}
	if lo, hi := extent(); lo != 0 || hi != 1 {
		t.Errorf("of nothing: %g to %g", lo, hi)
	}
	for x, want := range map[float64]string{1.256: "1.26", 3: "3", math.Inf(1): "0", -0.5: "-0.5"} {
		if got := num(x); got != want {
			t.Errorf("%g is written %s", x, got)
		}
	}
}

// Labels are moved apart, keep their order and stay in the frame.
func TestSpread(t *testing.T) {
	for _, x := range []struct{ at, want []float64 }{
		{[]float64{50, 90}, []float64{50, 90}}, {[]float64{50, 50}, []float64{43, 57}},
		{[]float64{54, 50}, []float64{59, 45}}, {[]float64{0, 0}, []float64{14, 28}},
		{[]float64{100, 99}, []float64{100, 86}},
	} {
		got := slices.Clone(x.at)
		spread(got, 14, 14, 100)
		for i := range got {
			if !(math.Abs(got[i]-x.want[i]) <= 1e-6) {
				t.Errorf("%v: %v, want %v", x.at, got, x.want)
				break
			}
		}
	}
	many := []float64{40, 41, 42, 43, 44}
	spread(many, 14, 14, 100)
	for i := 1; i < len(many); i++ {
		if many[i]-many[i-1] < 13.9 {
			t.Errorf("%v", many)
		}
	}
}

// Boxes have the quartiles, the median and the extremes of their samples, on an axis from 150 to 422; the spread is in
// points.
func TestBoxes(t *testing.T) {
	svg := string(boxChart("x", []box{{"a", "s0", []float64{0.75, 0, 0.25, 1, 0.5}}, {"b", "s1", nil},
		{"c", "s1", []float64{0.5}}}))
	if got := shapes(svg, "rect"); !slices.Equal(got, []string{"s0 bar 218 16 136 16", "s1 bar 286 72 1 16"}) {
		t.Errorf("%q", got)
	}
	var whiskers []string
	for _, l := range shapes(svg, "line") {
		if strings.HasPrefix(l, "whisker") {
			whiskers = append(whiskers, l)
		}
	}
	if !slices.Equal(whiskers, []string{"whisker 150 24 422 24", "whisker 286 16 286 32", "whisker 286 80 286 80",
		"whisker 286 72 286 88"}) {
		t.Errorf("%q", whiskers)
	}
	if got := labels(svg, "tick"); !slices.Equal(got, []string{"100.0", "0.0", "spread"}) ||
		!strings.Contains(svg, "a: worst 0.0, median 50.0, best 100.0 %") {
		t.Errorf("%q in %s", got, svg)
	}
	if got := labels(svg, "tick mid"); !slices.Equal(got, []string{"0 %", "25 %", "50 %", "75 %", "100 %"}) {
		t.Errorf("%q", got)
	}
}

// A heat map has a field for each known cell, whose strength is the share, at most 0.85, and the number in percent.
func TestHeat(t *testing.T) {
	svg := string(heatChart("x", "s1", "row", "col", []string{"r1", "r2"}, []string{"c1", "c2"},
		func(r, c int) (eval.Mean, bool) {
			return eval.Mean{Value: []float64{0, 0.5, 1, 2}[2*r+c]}, r+c < 2
		}))
	if got := shapes(svg, "rect"); !slices.Equal(got,
		[]string{"field 52.5 20.5 211 25", "s1 bar 52.5 20.5 211 25 0", "field 264.5 20.5 211 25",
			"s1 bar 264.5 20.5 211 25 0.43", "field 52.5 46.5 211 25", "s1 bar 52.5 46.5 211 25 0.85"}) {
		t.Errorf("%q", got)
	}
	if got := labels(svg, "value mid"); !slices.Equal(got, []string{"0", "50", "100"}) ||
		!strings.Contains(svg, "row r1, col c2: 50.0 %") {
		t.Errorf("%q", got)
	}
	if got := labels(svg, "tick mid"); !slices.Equal(got, []string{"c1", "c2"}) {
		t.Errorf("%q", got)
	}
	// The middles of the cells.
	if got := places(svg, "value mid"); !slices.Equal(got, []string{"158 36.5", "370 36.5", "158 62.5"}) {
		t.Errorf("%q", got)
	}
	if got := places(svg, "tick mid"); !slices.Equal(got, []string{"158 86", "370 86"}) {
		t.Errorf("%q", got)
	}
	var many []string
	for i := range 60 {
		many = append(many, fmt.Sprint(i))
	}
	svg = string(heatChart("x", "s1", "row", "col", []string{"r"}, many,
		func(int, int) (eval.Mean, bool) { return eval.Mean{Value: 1}, true }))
	if n := len(labels(svg, "value mid")); n != 0 {
		t.Errorf("%d numbers in cells of 7 units", n)
	}
	if got := labels(svg, "tick mid"); len(got) != 15 || got[1] != "4" {
		t.Errorf("%q", got)
	}
}

// Segments are stacked from zero, negative ones to the left; the sums and the noise stand beside them.
func TestSegmentBars(t *testing.T) {
	svg := string(segmentBars("x", []float64{0.5},
		[]task.Segments{{BOS: 0.25, Before: -0.5, Answer: 0.5, After: -0.5, Query: 0.25}}))
	// x runs from −1 to 1 over 46 to 262: 108 for each.
	if got := shapes(svg, "rect"); !slices.Equal(got,
		[]string{"g0 154 20 27 17", "g1 100 20 54 17", "g2 181 20 54 17", "g3 46 20 54 17", "g4 235 20 27 17"}) {
		t.Errorf("%q", got)
	}
	if got := places(svg, "tick end"); !slices.Equal(got, []string{"38 13", "310 13", "358 13", "38 32", "358 32"}) {
		t.Errorf("%q", got)
	}
	if got := labels(svg, "answer end"); !slices.Equal(got, []string{"50.0 %"}) {
		t.Errorf("%q", got)
	}
	if got := labels(svg, "tick end"); !slices.Equal(got, []string{"depth", "answer", "noise", "50 %", "−100.0 %"}) {
		t.Errorf("%q", got)
	}
}

// Bars of outliers stand on a power of ten and have a logarithmic height; a value that is not positive has none.
func TestOutlierBars(t *testing.T) {
	svg := string(outlierBars("x", []barGroup{{"a", "s0", task.Extreme{Top1: 1000, Top2: 10, Top3: math.NaN()}}}))
	got := shapes(svg, "rect")
	if len(got) != 2 {
		t.Fatalf("%q", got)
	}
	top := 12 + 194*(1-math.Log2(100)/math.Log2(160)) // of 10 to 1600 over 194 units
	for i, want := range []float64{top, 206} {
		f := strings.Fields(got[i])
		y, _ := strconv.ParseFloat(f[3], 64)
		h, _ := strconv.ParseFloat(f[5], 64)
		if !(math.Abs(y-want) <= 0.01) || !(math.Abs(y+h-206) <= 0.02) {
			t.Errorf("bar %d: %q, want y = %g", i, got[i], want)
		}
	}
	if outlierBars("x", []barGroup{{"a", "s0", task.Extreme{}}}) != "" {
		t.Error("bars of nothing")
	}
}

// A map's cells are coloured by sign with the root of the score; scores below the visible are not drawn; the prompt is
// coloured by the last row.
func TestMapDrawing(t *testing.T) {
	x := &task.MapExample{Layer: 2, Head: 3, Units: []string{"a ", "b\n"}, Answer: [2]int{1, 2}, Query: 1,
		Maps: []task.Matrix{{Name: "A", Rows: [][]float64{{0.25}, {-0.01, 0.0001}}}}}
	svg := string(mapChart(x, &x.Maps[0]))
	if got := shapes(svg, "rect"); !slices.Equal(got, []string{"pos 14 4 150 150 0.5", "neg 14 154 150 150 0.1"}) ||
		!strings.Contains(svg, "b⏎ → a␣: −0.010") {
		t.Errorf("%q in %s", got, svg)
	}
	if got := shapes(svg, "line"); !slices.Equal(got,
		[]string{"bracket 164 308 314 308", "bracket quiet 10 154 10 304"}) {
		t.Errorf("%q", got)
	}
	if got := string(promptHeat(x)); got !=
		`<span class="u neg" style="--a:10%" title="−0.010">a </span><span class="u pos in" style="--a:1%" title="+0.000">b⏎`+
			"\n</span>" {
		t.Errorf("%s", got)
	}
	if got := mapRows(x, &x.Maps[0]); len(got) != 4 || strings.Join(got[2], "/") != "b\n/a /-0.01" {
		t.Errorf("%q", got)
	}
	for what, change := range map[string]func(*task.MapExample){
		"no units": func(x *task.MapExample) { x.Units = nil }, "no maps": func(x *task.MapExample) { x.Maps = nil },
		"an answer before": func(x *task.MapExample) { x.Answer[0] = -1 },
		"an answer beyond": func(x *task.MapExample) { x.Answer[1] = 3 },
		"a query before":   func(x *task.MapExample) { x.Query = -1 },
		"a query beyond":   func(x *task.MapExample) { x.Query = 3 },
		"few rows":         func(x *task.MapExample) { x.Maps = []task.Matrix{{Rows: [][]float64{{1}}}} },
		"long rows":        func(x *task.MapExample) { x.Maps = []task.Matrix{{Rows: [][]float64{{1}, {1, 2, 3}}}} },
	} {
		bad := *x
		if change(&bad); checkMaps(&bad) == nil {
			t.Errorf("%s: taken", what)
		}
	}
	if err := checkMaps(x); err != nil {
		t.Error(err)
	}
}

// The lead figure: every headline measure in units of half its interval, right is better, whatever direction the
// measure has.
func TestLeadBars(t *testing.T) {
	var cells []*eval.Cell
	for i, name := range []string{"A", "B"} {
		for k, better := range []eval.Better{eval.Higher, eval.Lower} {
			r := &eval.Result{Question: fmt.Sprint("q", k), Task: fmt.Sprint("t", k), Kind: fmt.Sprint("t", k), N: 40}
			for j := range 40 {
				r.Answers = append(r.Answers, eval.Answer{ID: fmt.Sprint(j),
					Values: map[string]float64{"m": float64(j%7) + float64(i)*(0.5+0.01*float64(j%5))}})
			}
			r.Add("m", "measure", better, eval.MeanOf(r.Answers, "m"))
			cells = append(cells, cellOf(eval.Model{Name: name, Hash: name}, k, r))
		}
	}
	e := eval.Assemble(cells)
	f := leadFigure(e)
	if f == nil || f.Title != "B against A" || len(f.rows) != 3 {
		t.Fatalf("%+v", f)
	}
	bars := leadBars(e, e.Sides(), &figure{})
	if len(bars) != 2 || bars[0].mid <= 1 || !(math.Abs(bars[0].mid+bars[1].mid) <= 1e-9) || bars[0].p >= 0.05 {
		t.Errorf("%+v", bars)
	}
	p, _ := e.Between("q0", "m", "A", "B")
	if half := (p.High - p.Low) / 2; !(math.Abs(bars[0].mid-p.Diff/half) <= 1e-9) {
		t.Errorf("%g, want %g", bars[0].mid, p.Diff/half)
	}
	if got := shapes(string(f.SVG), "circle"); len(got) != 2 || !strings.HasPrefix(got[0], "s1 dot") ||
		!strings.HasPrefix(got[1], "s0 dot") {
		t.Errorf("%q", got)
	}
	if leadFigure(&eval.Evaluation{}) != nil {
		t.Error("a figure of nothing")
	}
}

// The CSV of scores has every metric of every side with its interval, its floors and its difference to the first; minus
// signs are those of programs.
func TestScoreRows(t *testing.T) {
	e := fakePage(t).Evaluation
	rows, err := csv.NewReader(bytes.NewReader(csvBytes(scoreRows(e)))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i
	}
	found := 0
	for _, r := range rows[1:] {
		if r[at["task"]] != "needle" {
			continue
		}
		found++
		want := map[string]string{"value": "0.4", "n": "100", "chance": "0.01", "copy": "0.25", "difference": "",
			"p_holm": "", "models": "1", "shots": "0", "settings": "needle N=4 R=2"}
		if r[at["side"]] == "other" {
			want["value"], want["difference"] = "0.7", "0.3"
			i := slices.IndexFunc(e.Paired,
				func(p eval.Paired) bool { return p.Task == "needle" && p.Metric == r[at["metric"]] })
			p := &e.Paired[i]
			if !(0 < p.P && p.P < p.PHolm && p.PHolm < 0.01) {
				t.Errorf("p is %g before Holm's correction, %g after it", p.P, p.PHolm)
			}
			want["p_holm"], want["difference_stderr"] = value(p.PHolm), value(p.StdErr)
		}
		for name, v := range want {
			if r[at[name]] != v {
				t.Errorf("%s: %s is %q, want %q", r[at["side"]], name, r[at[name]], v)
			}
		}
		low, _ := strconv.ParseFloat(r[at["low95"]], 64)
		high, _ := strconv.ParseFloat(r[at["high95"]], 64)
		value, _ := strconv.ParseFloat(r[at["value"]], 64)
		if !(low < value && value < high && high-low < 0.25) {
			t.Errorf("%g in [%g, %g]", value, low, high)
		}
	}
	if found != 2 {
		t.Errorf("%d rows of needle", found)
	}
	if got := string(csvBytes([][]string{{"−1", "a,b"}})); got != "-1,\"a,b\"\n" {
		t.Errorf("%q", got)
	}
	for in, want := range map[string]string{"a_b & 5 % {x}": `a\_b \& 5 \% \{x\}`, "−1 ± 2": `$-$1 $\pm$ 2`,
		"你\n": "??", "λ^2~": `$\lambda$\textasciicircum{}2\textasciitilde{}`, `\`: `\textbackslash{}`} {
		if got := latexText(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
