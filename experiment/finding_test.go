package experiment

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"antiphase/eval"
)

// seeded are the rows of a measure without items, one for each value: seeds 1, 2, …; each with a held-out loss.
func seeded(arch, measure string, values ...float64) (rows []Row) {
	for i, v := range values {
		for _, m := range []string{heldOut, measure} {
			r := at(arch, 1, uint64(i+1), m, 1)
			if m == measure {
				r.Value = v
			}
			r.Experiment, r.Run, r.Tokens = "x", fmt.Sprintf("%s-s%d", arch, i+1), 2_000_000
			r.Command = "antiphase compare " + arch
			rows = append(rows, r)
		}
	}
	return rows
}

// The interval over seeds is Student's: t of 2 degrees of freedom is 4.302653 in tables, of one 12.7062.
func TestFindBySeed(t *testing.T) {
	rows := slices.Concat(seeded(plain, "outliers.hidden_max", 10, 20, 30, 99),
		seeded(v1, "outliers.hidden_max", 11, 22, 36))
	c := &claim{arch: v1, than: plain, measure: "outliers.hidden_max"}
	x, ok := newFinal(rows).find(c, "tiny")
	half := 4.302653 * math.Sqrt(7.0/3) // differences 1, 2, 6: mean 3, variance 7; the fourth seed has no partner
	if !ok || x.seeds != 3 || x.arch != 23 || x.than != 20 || !(math.Abs(x.diff-3) <= 1e-12) ||
		!(math.Abs(x.low-3+half) <= 1e-5) || !(math.Abs(x.high-3-half) <= 1e-5) || x.doubts != nil {
		t.Errorf("differences: %+v, want 3 ± %g", x, half)
	}
	for _, change := range []func(*Row){func(r *Row) {
		r.Metric, r.Task = "hidden_max", &TaskInfo{Name: "outliers", Kind: "outliers", Question: "q"}
	}, func(r *Row) { r.Items = []float64{1, 2} }} {
		bare := slices.Clone(rows) // a question without items, and items without a question
		for i := range bare {
			change(&bare[i])
		}
		if got, ok := newFinal(bare).find(c, "tiny"); !ok || got.diff != x.diff || got.low != x.low ||
			got.high != x.high || got.seeds != 3 {
			t.Errorf("without pairs: %+v, want %+v", got, x)
		}
	}
	if lo, mid, hi := studentInterval([]float64{3}); !math.IsInf(lo, -1) || mid != 3 || !math.IsInf(hi, 1) {
		t.Errorf("one value: %g [%g, %g]", mid, lo, hi)
	}
	c = &claim{arch: v1, than: plain, measure: "outliers.hidden_max", ratio: true}
	rows = slices.Concat(seeded(plain, "outliers.hidden_max", 2, 4), seeded(v1, "outliers.hidden_max", 4, 32))
	x, ok = newFinal(rows).find(c, "tiny")
	half = 12.7062 * math.Log(4) / 2 // logarithms of the ratios ln 2 and ln 8: mean ln 4, standard error ln 4 / 2
	if !ok || !(math.Abs(x.diff-4) <= 1e-9) || !(math.Abs(math.Log(x.low)-(math.Log(4)-half)) <= 1e-4) ||
		!(math.Abs(math.Log(x.high)-(math.Log(4)+half)) <= 1e-4) || !(math.Abs(x.arch-8*math.Sqrt2) <= 1e-9) ||
		!(math.Abs(x.than-2*math.Sqrt2) <= 1e-9) { // √(4·32) against √(2·4): the ratio is that of the figures
		t.Errorf("ratios: %+v, want 4 and half a width of %g", x, half)
	}
	x, ok = newFinal(slices.Concat(seeded(plain, "outliers.hidden_max", 1),
		seeded(v1, "outliers.hidden_max", 2))).find(c, "tiny")
	if !ok || x.diff != 2 || !math.IsInf(x.low, -1) || !math.IsInf(x.high, 1) {
		t.Errorf("one seed: %+v", x)
	}
	if _, ok := newFinal(seeded(plain, "outliers.hidden_max", 1)).find(c, "tiny"); ok {
		t.Error("one side alone has a difference")
	}
}

// A score counts as above its floors only if the lower end of its interval is, over all items of all seeds; a floor of
// 1 is none. A claim that is not about more, or has one seed, is not concerned.
func TestFloored(t *testing.T) {
	made := func(level float64, floors map[string]float64, seeds int) *final {
		var rows []Row
		for _, arch := range []string{plain, v1} {
			list := seeded(arch, "needle.bound N=4 R=2", make([]float64, seeds)...)
			for i := range list {
				r := &list[i]
				if r.Measure == heldOut {
					continue
				}
				r.Metric, r.Better, r.Floors, r.N = "bound", eval.Higher, floors, 40
				r.Task = &TaskInfo{Name: "needle", Kind: "needle", Question: "q"}
				for k := range 40 {
					v := 0.0
					if float64(k) < level*40 && arch == v1 {
						v = 1
					}
					r.Items = append(r.Items, v)
					r.Value += v / 40
				}
			}
			rows = append(rows, list...)
		}
		return newFinal(rows)
	}
	both := map[string]float64{"chance": 0.01, "copy": 0.5}
	for _, x := range []struct {
		what   string
		level  float64
		floors map[string]float64
		seeds  int
		above  bool
		want   bool
	}{
		{"at the copy floor", 0.5, both, 3, true, true},
		{"a little above", 0.55, both, 3, true, true}, // ± 0.16
		{"far above", 0.9, both, 3, true, false},
		{"a claim of less", 0.5, both, 3, false, false},
		{"one seed", 0.5, both, 1, true, false},
		{"no floor", 0.5, nil, 3, true, false}, {"nothing, and no floor", 0, nil, 3, true, false},
		{"a floor of 1", 0.5, map[string]float64{"copy": 1, "chance": 0.01}, 3, true, false},
	} {
		c := &claim{arch: v1, than: plain, measure: "needle.bound N=4 R=2", above: x.above, percent: true}
		f, ok := made(x.level, x.floors, x.seeds).find(c, "tiny")
		if got := slices.Contains(f.doubts, "diff is not above its floor"); !ok || got != x.want {
			t.Errorf("%s: %v, %+v", x.what, ok, f)
		}
		if !(math.Abs(f.arch-x.level) <= 1e-9) || f.than != 0 || !(math.Abs(f.diff-x.level) <= 1e-9) {
			t.Errorf("%s: %g against %g, difference %g", x.what, f.arch, f.than, f.diff)
		}
	}
}

// A doubt takes any verdict back. Runs that diverged take back a verdict in favour of their own side and no other; a
// comparison of ranks has counted them already.
func TestVerdictAndDivergence(t *testing.T) {
	sides := slices.Concat(seeded(plain, "lm.loss", 1, 1, 1), seeded(v1, "lm.loss", 1, 1, 1))
	failed := func(arch string) Row {
		r := at(arch, 1, 4, Failed, 60)
		r.Run = arch + "-s4"
		return r
	}
	better := finding{diff: -1, low: -2, high: -0.5, seeds: 3}
	worse := finding{diff: 1, low: 0.5, high: 2, seeds: 3}
	for _, x := range []struct {
		what    string
		failed  []string
		found   finding
		measure string
		want    string
	}{
		{"none", nil, better, "lm.loss", Holds},
		{"none", nil, worse, "lm.loss", HoldsNot},
		{"of its own side", []string{v1}, better, "lm.loss", Unclear},
		{"of its own side", []string{v1}, worse, "lm.loss", HoldsNot},
		{"of the other side", []string{plain}, better, "lm.loss", Holds},
		{"of the other side", []string{plain}, worse, "lm.loss", Unclear},
		{"of both", []string{plain, v1}, worse, "lm.loss", Unclear},
		{"ranked", []string{v1}, better, tokensTo90, Holds},
		{"doubtful", nil, finding{diff: -1, low: -2, high: -0.5, seeds: 3, doubts: []string{"a doubt"}},
			"lm.loss", Unclear},
		{"doubtful", nil, finding{diff: 1, low: 0.5, high: 2, seeds: 3, doubts: []string{"a doubt"}},
			"lm.loss", Unclear},
		{"two seeds", nil, finding{diff: -1, low: -2, high: -0.5, seeds: 2}, "lm.loss", Unclear},
		{"no number", nil, finding{diff: math.NaN(), low: -2, high: -0.5, seeds: 3}, "lm.loss", Unclear},
		{"no end", nil, finding{diff: -1, low: math.NaN(), high: -0.5, seeds: 3}, "lm.loss", Unclear},
		{"no other end", nil, finding{diff: 1, low: 0.5, high: math.NaN(), seeds: 3}, "lm.loss", Unclear},
	} {
		rows := slices.Clone(sides)
		for _, arch := range x.failed {
			rows = append(rows, failed(arch))
		}
		c := &claim{text: "it is so", source: "paper", arch: v1, than: plain, measure: x.measure}
		v := newFinal(rows).verdict(c, "tiny", x.found)
		if v.Verdict != x.want || v.Claim != "it is so" || v.Source != "paper" ||
			v.Command != "antiphase compare diff" {
			t.Errorf("%s diverged: %+v, want %s", x.what, v, x.want)
		}
		basis := "tiny, 2M tokens, 3 seeds"
		for _, s := range x.found.doubts {
			basis += "; " + s
		}
		for _, arch := range []string{v1, plain} {
			if slices.Contains(x.failed, arch) {
				basis += "; 1 of 4 runs of " + arch + " diverged"
			}
		}
		if x.found.seeds == 3 && v.Basis != basis {
			t.Errorf("%s: the basis is %q, want %q", x.what, v.Basis, basis)
		}
	}
}

// The seeds behind a figure, as it says them.
func TestCounted(t *testing.T) {
	for want, x := range map[string]finding{
		"3 seeds": {seeds: 3}, "5 seeds": {seeds: 5, more: 5}, "5 seeds against 4": {seeds: 4, more: 5},
		"1 seed (a verdict needs 3)": {seeds: 1, more: 1}, "3 seeds against 2 (a verdict needs 3)": {seeds: 2, more: 3},
	} {
		if got := x.counted(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Figures by kind: shares in percent with the floors that can be missed, ratios with both sides as they are, one seed
// without an interval.
func TestFigureByKind(t *testing.T) {
	inf := math.Inf(1)
	for _, x := range []struct {
		claim claim
		found finding
		want  string
	}{
		{claim{percent: true, unit: "nats"}, finding{diff: 0.125, low: 0.1, high: 0.15, arch: 0.5, than: 0.375,
			floors: map[string]float64{"copy": 0.25, "chance": 0.011, "all": 1}},
			"50.0 against 37.5, chance 1.1, copy 25.0: +12.5 [+10.0, +15.0] points"},
		{claim{unit: "nats"}, finding{diff: 0.125, low: 0.1, high: 0.15, arch: 0.5, than: 0.375,
			floors: map[string]float64{"chance": 0.25}},
			"0.500 against 0.375, chance 25.0: +0.125 [+0.100, +0.150] nats"},
		{claim{ratio: true, unit: "tokens/s"}, finding{diff: 0.9, low: 0.8, high: 1.05, arch: 45_000, than: 50_000},
			"45k against 50k: ×0.90 [×0.80, ×1.05]"},
		{claim{unit: "nats"}, finding{diff: -0.1, low: -inf, high: inf, arch: 1.5, than: 1.6},
			"1.500 against 1.600: −0.100 nats (one seed: no interval)"},
		{claim{}, finding{diff: -9.9, low: -10, high: -9.8, arch: 0.1, than: 10},
			"0.1 against 10.0: −9.9 [−10.0, −9.8]"},
		{claim{}, finding{diff: 9.9, low: 9.8, high: 10, arch: 10, than: 0.1}, "10.0 against 0.1: +9.9 [+9.8, +10.0]"},
		{claim{}, finding{diff: 9.89, low: 9.8, high: 10, arch: 9.99, than: 0.1},
			"9.990 against 0.100: +9.890 [+9.800, +10.000]"},
		{claim{}, finding{diff: 0.001, low: 0.001, high: 0.001, arch: 0.011, than: 0.009},
			"0.011 against 0.009: +0.001 [+0.001, +0.001]"},
		{claim{}, finding{diff: -0.001, low: -0.002, high: 0.001, arch: 0.009, than: 0.01},
			"0.009 against 0.010: −0.001 [−0.002, +0.001]"},
		{claim{}, finding{diff: 0.001, low: -0.001, high: 0.002, arch: 0.01, than: 0.009},
			"0.010 against 0.009: +0.001 [−0.001, +0.002]"},
		{claim{}, finding{diff: 0.0002, low: -0.0001, high: 0.0005, arch: 0.0012, than: 0.001},
			"0.0012 against 0.001: +0.0002 [−0.0001, +0.0005]"},
		{claim{}, finding{diff: 0.0033, low: 0.001, high: 0.006, arch: 0.0123, than: 0.009},
			"0.012 against 0.009: +0.003 [+0.001, +0.006]"},
		{claim{}, finding{diff: -0.0033, low: -0.006, high: -0.001, arch: 0.009, than: 0.0123},
			"0.009 against 0.012: −0.003 [−0.006, −0.001]"},
		{claim{}, finding{arch: 0, than: 0}, "0.000 against 0.000: +0.000 [+0.000, +0.000]"},
		{claim{}, finding{diff: 1, low: -inf, high: 2, arch: 2, than: 1, seeds: 2},
			"2.000 against 1.000: +1.000 (no interval)"},
		{claim{}, finding{diff: 1, low: 0, high: inf, arch: 2, than: 1, seeds: 2},
			"2.000 against 1.000: +1.000 (no interval)"},
		{claim{}, finding{note: "in words", diff: 3}, "in words"},
	} {
		if got := x.claim.figure(x.found); got != x.want {
			t.Errorf("%q, want %q", got, x.want)
		}
	}
}

// probed are the curves of two sides' needle probes by seed: each reaches 90 % at the tokens given, or never.
func probed(arch string, tokens ...float64) []Row {
	rows := seeded(arch, "probe.needle.bound N=4 R=2", make([]float64, len(tokens))...)
	for i := range rows {
		if r := &rows[i]; r.Measure != heldOut {
			r.Curve = [][2]float64{{1e5, 0.899}, {5e6, 0.2}}
			if n := tokens[r.Seed-1]; !math.IsInf(n, 1) {
				r.Curve = [][2]float64{{1e5, 0.899}, {n, 0.9}, {n + 1e6, 0.1}, {9e6, 1}}
			}
		}
	}
	return rows
}

// Tokens to 90 % are compared by ranks, whichever side is first: 5 against 5 apart is p = 2/252, 3 against 3 is 0.1.
func TestReach(t *testing.T) {
	inf := math.Inf(1)
	c := &claim{arch: v1, than: plain, measure: tokensTo90, ratio: true, border: 1}
	for _, x := range []struct {
		than, arch []float64
		verdict    string
		note       string
	}{
		{[]float64{6e5, 7e5, 8e5, 9e5, 10e5}, []float64{1e5 + 1, 2e5, 3e5, 4e5, 5e5}, Holds,
			"median 300k against 800k, reached by 5 of 5 against 5 of 5, p = 0.008 (rank sum)"},
		{[]float64{2e5, 2e5, 3e5, 4e5, 5e5}, []float64{6e5, 7e5, inf, inf, inf}, HoldsNot,
			"median never against 300k, reached by 2 of 5 against 5 of 5, p = 0.008 (rank sum)"},
		{[]float64{4e5, 5e5, 6e5}, []float64{2e5, 2.5e5, 3e5}, Unclear,
			"median 250k against 500k, reached by 3 of 3 against 3 of 3, p = 0.100 (rank sum)"},
		{[]float64{4e5, inf}, []float64{2e5, 3e5}, Unclear,
			"median 250k against never, reached by 2 of 2 against 1 of 2, p = 0.333 (rank sum)"},
		{[]float64{4e5, 5e5, 6e5, 7e5, 8e5}, []float64{2e5, 3e5}, Unclear, // too few seeds of one side
			"median 250k against 600k, reached by 2 of 2 against 5 of 5, p = 0.095 (rank sum)"},
		{[]float64{4e5, 5e5}, []float64{2e5, 3e5, 3.5e5, 3.6e5, 3.7e5}, Unclear,
			"median 350k against 450k, reached by 5 of 5 against 2 of 2, p = 0.095 (rank sum)"},
	} {
		f := newFinal(slices.Concat(probed(plain, x.than...), probed(v1, x.arch...)))
		got, ok := f.find(c, "tiny")
		if !ok || got.note != x.note || got.seeds != min(len(x.arch), len(x.than)) || c.decide(got) != x.verdict {
			t.Errorf("%v against %v: %s, %+v", x.arch, x.than, c.decide(got), got)
		}
	}
	for _, x := range []struct {
		list []float64
		want float64
	}{{[]float64{3, 1, 2}, 2}, {[]float64{4, 1, 3, 2}, 2.5}, {[]float64{1, 2, inf, inf}, inf},
		{[]float64{1, inf, 2}, 2}, {[]float64{7}, 7}} {
		if got := median(x.list); got != x.want {
			t.Errorf("median of %v: %g", x.list, got)
		}
	}
	for _, arch := range []string{plain, v1} {
		if _, ok := newFinal(probed(arch, 1e6)).find(c, "tiny"); ok {
			t.Errorf("%s alone is compared", arch)
		}
	}
	rows := slices.Concat(probed(plain, 6e5, 7e5, 8e5, 9e5), probed(v1, 2e5, 3e5, 4e5, 5e5))
	for i := range rows {
		if rows[i].Parameters = 100; rows[i].Arch == v1 {
			rows[i].Parameters = 110
		}
	}
	if got, ok := newFinal(rows).find(c, "tiny"); !ok ||
		!slices.Equal(got.doubts, []string{"unequal parameters: diff has 110, transformer 100 (+10.0 %)"}) {
		t.Errorf("models of other sizes: %+v", got)
	}
}

// A probe of a single needle says nothing about tokens to 90 %, also where it stands before the one that does.
func TestReachOfASingleNeedle(t *testing.T) {
	c := &claim{arch: v1, than: plain, measure: tokensTo90, ratio: true, border: 1}
	two := slices.Concat(probed(plain, 6e5), probed(v1, 2e5))
	one := slices.Clone(two)
	for i := range one {
		if r := &one[i]; r.Measure != heldOut {
			r.Measure, r.Curve = "probe.needle.bound N=1 R=1", [][2]float64{{1e4, 1}}
		}
	}
	f := newFinal(one)
	if x, ok := f.find(c, "tiny"); ok || f.runRow("tiny", v1, 1)[4] != "–" {
		t.Errorf("one needle: %+v, %q", x, f.runRow("tiny", v1, 1))
	}
	if f.probe() == "" {
		t.Error("the probe has no figure")
	}
	f = newFinal(slices.Concat(one, two))
	if x, ok := f.find(c, "tiny"); !ok || !strings.HasPrefix(x.note, "median 200k against 600k") ||
		f.runRow("tiny", v1, 1)[4] != "200k" {
		t.Errorf("both: %+v, %q", x, f.runRow("tiny", v1, 1))
	}
}

// A claim is judged for every size that has it, and a side is named with its size where there are several.
func TestVerdictsOfSizes(t *testing.T) {
	var rows []Row
	for _, size := range []string{"tiny", "small"} {
		for _, r := range slices.Concat(seeded(plain, "outliers.hidden_max", 3, 3.1, 3.2),
			seeded(v1, "outliers.hidden_max", 1, 1.1, 1.2)) {
			if size == "small" {
				r.Size, r.Run, r.Tokens, r.Value, r.Command = size, "small-"+r.Run, 7_000_000, -r.Value,
					"antiphase compare small"
			}
			rows = append(rows, r)
		}
	}
	f := newFinal(rows)
	var got []string
	for _, v := range f.verdicts() {
		if strings.Contains(v.Claim, "hidden states") {
			got = append(got, v.Verdict+": "+v.Basis+": "+v.Command)
		}
	}
	if want := []string{"holds: tiny, 2M tokens, 3 seeds: antiphase compare diff",
		"does not hold: small, 7M tokens, 3 seeds: antiphase compare small"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if name := f.side("small", v1); name != "small diff" {
		t.Errorf("of two sizes a side is %q", name)
	}
	if name := newFinal(rows[:12]).side("tiny", v1); name != "diff" {
		t.Errorf("of one size a side is %q", name)
	}
	if n := f.names()["small-diff-s2"]; n != "small diff s2" {
		t.Errorf("a run is %q", n)
	}
}
