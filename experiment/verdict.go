package experiment

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"antiphase/eval"
	"antiphase/eval/report"
)

// The verdicts.
const (
	Holds    = "holds"
	HoldsNot = "does not hold"
	Unclear  = "cannot be told here"
	NotRun   = "not run"
)

// verdicts judges every claim that the experiment measures, for every size.
func (f *final) verdicts() []report.Verdict {
	var out []report.Verdict
	for i := range claims {
		for _, size := range f.sizes {
			if x, ok := f.find(&claims[i], size); ok {
				out = append(out, f.verdict(&claims[i], size, x))
			}
		}
	}
	return out
}

// finding is a difference or a ratio with its 95 % interval, which is infinite where there is none.
type finding struct {
	diff, low, high float64
	arch, than      float64 // the two sides' own values
	floors          map[string]float64
	seeds           int      // of the side that has fewer
	more            int      // of the other side, if it has more
	doubts          []string // why no verdict can be given
	note            string   // takes the place of the numbers
}

// find looks a claim's measure up: paired by item where rows have items, with all seeds of either side, else by seed.
// The sides' own values are over the same runs as the difference.
func (f *final) find(c *claim, size string) (finding, bool) {
	if c.measure == "" {
		return finding{}, false
	}
	if c.measure == tokensTo90 {
		return f.reach(c, size)
	}
	a, b := f.values(size, c.than, c.measure), f.values(size, c.arch, c.measure)
	var x finding
	var one, two, diffs []float64
	var row *Row
	for _, seed := range slices.Sorted(maps.Keys(a)) {
		if y := b[seed]; y != nil {
			row = y
			one, two, diffs = append(one, a[seed].Value), append(two, y.Value), append(diffs, y.Value-a[seed].Value)
		}
	}
	if len(diffs) == 0 {
		return finding{note: "–"}, c.lost(f, size) && c.measured(f.all)
	}
	x.arch, x.than, x.seeds, x.floors = mean(two), mean(one), len(diffs), row.Floors
	switch {
	case c.ratio:
		x.ratios(one, two)
	case row.Task != nil && len(row.Items) > 0:
		if !f.paired(&x, row, f.side(size, c.than), f.side(size, c.arch)) {
			return x, false
		}
		x.arch, x.than = meanValue(b), meanValue(a)
	default:
		x.low, x.diff, x.high = studentInterval(diffs)
	}
	if x.seeds < 2 { // what is left would be over items alone
		x.low, x.high = math.Inf(-1), math.Inf(1)
	}
	x.doubts = append(x.doubts, f.unfair(c, size)...)
	if x.seeds > 1 && f.floored(c, size, row) {
		x.doubts = append(x.doubts, c.arch+" is not above its floor")
	}
	return x, true
}

// ratios compares two sides by seed, in logarithms. The sides' own values are geometric means, so that their ratio is
// the one found.
func (x *finding) ratios(than, arch []float64) {
	var one, two, both []float64
	for i := range than {
		one, two = append(one, math.Log(than[i])), append(two, math.Log(arch[i]))
		both = append(both, math.Log(arch[i]/than[i]))
	}
	lo, mid, hi := studentInterval(both)
	x.diff, x.low, x.high = math.Exp(mid), math.Exp(lo), math.Exp(hi)
	x.than, x.arch = math.Exp(mean(one)), math.Exp(mean(two))
}

// lost reports whether the runs of a side of the claim all diverged: there is nothing to compare, and the verdict
// counts those runs.
func (c *claim) lost(f *final, size string) bool {
	all := false
	for _, arch := range []string{c.than, c.arch} {
		runs := len(f.seeds(size, arch))
		if runs == 0 {
			return false
		}
		all = all || f.diverged(size, arch) == runs
	}
	return all
}

// measured reports whether any of an experiment's rows has the claim's measure.
func (c *claim) measured(rows []Row) bool {
	return slices.ContainsFunc(rows, func(r Row) bool { return r.Measure == c.measure })
}

// unfair lists what the two sides of a claim do not have in common.
func (f *final) unfair(c *claim, size string) (out []string) {
	for _, s := range []string{f.untuned(size, c.than, c.arch), f.sized(size, c.arch).differs(f.sized(size, c.than))} {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// paired takes a difference over seeds and items from the evaluation.
func (f *final) paired(x *finding, row *Row, one, two string) bool {
	for _, p := range f.eval.Paired {
		if p.Question != row.Task.Question || p.Metric != row.Metric {
			continue
		}
		switch {
		case p.A == one && p.B == two:
			x.diff, x.low, x.high = p.Diff, p.Low, p.High
		case p.A == two && p.B == one:
			x.diff, x.low, x.high = -p.Diff, -p.High, -p.Low
		default:
			continue
		}
		x.seeds, x.more = min(p.Seeds[0], p.Seeds[1]), max(p.Seeds[0], p.Seeds[1])
		return true
	}
	return false
}

// floored says that what a claim calls more can be had without knowing anything: its interval reaches a floor.
func (f *final) floored(c *claim, size string, row *Row) bool {
	floor := 0.0
	for _, x := range row.Floors {
		if x < 1 { // of a single needle copying earns everything
			floor = max(floor, x)
		}
	}
	if !c.above || floor == 0 || row.Task == nil {
		return false
	}
	return slices.ContainsFunc(f.eval.Sides(), func(s eval.Side) bool {
		m, ok := s.Metric(row.Task.Question, row.Metric)
		return ok && s.Name == f.side(size, c.arch) && m.Low <= floor
	})
}

// studentInterval is the mean of a few values with its 95 % interval; of one value there is none.
func studentInterval(x []float64) (lo, mid, hi float64) {
	n := float64(len(x))
	mid = mean(x)
	if n < 2 {
		return math.Inf(-1), mid, math.Inf(1)
	}
	sum := 0.0
	for _, v := range x {
		sum += (v - mid) * (v - mid)
	}
	half := eval.StudentQuantile(0.975, n-1) * math.Sqrt(sum/(n-1)/n)
	return mid - half, mid, mid + half
}

// meanValue is the mean of a measure over seeds.
func meanValue(rows map[uint64]*Row) float64 {
	var list []float64
	for _, seed := range slices.Sorted(maps.Keys(rows)) { // the order of a sum affects its last bits
		list = append(list, rows[seed].Value)
	}
	return mean(list)
}

// counted is the number of seeds behind a finding.
func (x *finding) counted() string {
	s := plural(x.seeds, "seed")
	if x.more > x.seeds {
		s = fmt.Sprintf("%d seeds against %d", x.more, x.seeds)
	}
	if x.seeds < fewestSeeds {
		s += fmt.Sprintf(" (a verdict needs %d)", fewestSeeds)
	}
	return s
}

// fewestSeeds is how many seeds a verdict needs on both sides.
const fewestSeeds = 3

// decide turns a finding into a verdict.
func (c *claim) decide(x finding) string {
	low, high := x.low-c.border, x.high-c.border
	if c.above {
		low, high = -high, -low
	}
	switch {
	case x.seeds < fewestSeeds || math.IsNaN(x.diff) || math.IsNaN(low) || math.IsNaN(high):
		return Unclear
	case c.within > 0:
		return c.near(x)
	case high < 0:
		return Holds
	case low > 0 || low > -c.least && c.least > 0:
		return HoldsNot
	}
	return Unclear
}

// near judges a ratio that should be at most a factor from 1.
func (c *claim) near(x finding) string {
	switch least := 1 / c.within; {
	case x.low > least && x.high < c.within:
		return Holds
	case x.high < least || x.low > c.within:
		return HoldsNot
	}
	return Unclear
}

// verdict judges a finding. A doubt takes any verdict back; runs that diverged speak against their own side, so they
// take back a verdict in its favour.
func (f *final) verdict(c *claim, size string, x finding) report.Verdict {
	v := report.Verdict{Claim: c.text, Source: c.from(), Verdict: c.decide(x), Figure: c.figure(x),
		Basis: fmt.Sprintf("%s, %s tokens, %s", size, big(float64(f.tokens(size))), x.counted())}
	if c.measure == trainSpeed {
		v.Basis += speedBuilds(f.rows, size, c.arch, c.than)
	}
	for _, d := range x.doubts {
		v.Basis, v.Verdict = v.Basis+"; "+d, Unclear
	}
	for _, side := range []struct{ arch, favours string }{{c.arch, Holds}, {c.than, HoldsNot}} {
		if n := f.diverged(size, side.arch); n > 0 {
			v.Basis += fmt.Sprintf("; %d of %d runs of %s diverged", n, len(f.seeds(size, side.arch)), side.arch)
			if v.Verdict == side.favours && c.measure != tokensTo90 {
				v.Verdict = Unclear
			}
		}
	}
	if i := slices.IndexFunc(f.rows, func(r Row) bool { return r.Size == size && r.Arch == c.arch }); i >= 0 {
		v.Command = f.rows[i].Command
	}
	return v
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// big is a number for people.
func big(n float64) string { return report.Short(n, 3) }
