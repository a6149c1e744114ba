package experiment

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"antiphase/eval"
	"antiphase/eval/report"
)

// The verdicts.
const (
	Holds    = "holds"
	HoldsNot = "does not hold"
	Unclear  = "cannot be told here"
)

// claim is a sentence that rows can speak for or against: in measure, arch lies below (or above) than.
type claim struct {
	text, source string
	arch, than   string
	measure      string  // of rows; empty: nothing here measures it
	above        bool    // the claim is that arch has more of it
	least        float64 // the published size of the effect: an interval that excludes it speaks against the claim
	ratio        bool    // compared as a ratio, by seed
	percent      bool
	unit         string
	why          string // there is no measure
}

// claims are those of the paper (Ye et al., arXiv 2410.05258v2), of DIFF V2's page (2026-01-20), and what this
// project asks beside them.
var claims = []claim{
	{text: "DIFF has a lower loss than a Transformer of equal size on equal tokens", source: "paper, Fig. 3, Table 6",
		arch: "diff", than: "transformer", measure: "lm.loss", least: 0.025, unit: "nats"},
	{text: "DIFF has a lower loss on tokens that recall an earlier bigram (AR-Hit)", source: "paper, Table 6",
		arch: "diff", than: "transformer", measure: "lm.ar_hit", least: 0.018, unit: "nats"},
	{text: "DIFF has a lower loss on other tokens", source: "paper, Table 6", arch: "diff", than: "transformer",
		measure: "lm.others", least: 0.025, unit: "nats"},
	{text: "DIFF retrieves more of several needles", source: "paper, Table 2 (N=4, R=2)", arch: "diff",
		than: "transformer", measure: "needle.bound N=4 R=2", above: true, percent: true},
	{text: "DIFF learns to retrieve (90 %) from fewer tokens", source: "asked here", arch: "diff",
		than: "transformer", measure: tokensTo90, ratio: true},
	{text: "DIFF attends more to the answer", source: "paper, Table 3", arch: "diff", than: "transformer",
		measure: "attention.answer N=4 R=1", above: true, percent: true},
	{text: "DIFF attends less to noise", source: "paper, Table 3", arch: "diff", than: "transformer",
		measure: "attention.noise N=4 R=1", percent: true},
	{text: "DIFF has smaller outliers among attention logits", source: "paper, Table 5", arch: "diff",
		than: "transformer", measure: "outliers.logits_max"},
	{text: "DIFF has smaller outliers among hidden states", source: "paper, Table 5", arch: "diff",
		than: "transformer", measure: "outliers.hidden_max"},
	{text: "DIFF loses less by attention logits of 4 bits (KL to exact)", source: "paper, Fig. 8", arch: "diff",
		than: "transformer", measure: "lowbit.kl logits@4", unit: "nats"},
	{text: "DIFF trains at 88 % or more of the Transformer's speed", source: "paper, Table 7", arch: "diff",
		than: "transformer", measure: trainSpeed, ratio: true, above: true, least: 0.88},
	{text: "DIFF needs 62 % of the parameters and 64 % of the tokens for the same loss", source: "paper, Fig. 3",
		arch: "diff", than: "transformer", why: "needs a fit over several sizes; the sizes here are too few and " +
			"too small"},
	{text: "DIFF gains in long context (64K), many-shot learning, its robustness to order, hallucination and " +
		"mathematics", source: "paper, Fig. 4–10, Table 4", arch: "diff", than: "transformer", why: "models of " +
		"this size and training do not solve these tasks above chance"},
	{text: "DIFF V2 has a lower loss than a Transformer of equal size on equal tokens", source: "V2", arch: "diff2",
		than: "transformer", measure: "lm.loss", least: 0.02, unit: "nats"},
	{text: "DIFF V2 has a lower loss than DIFF", source: "asked here", arch: "diff2", than: "diff",
		measure: "lm.loss", unit: "nats"},
	{text: "DIFF V2 retrieves more of several needles", source: "asked here", arch: "diff2", than: "transformer",
		measure: "needle.bound N=4 R=2", above: true, percent: true},
	{text: "DIFF V2 learns to retrieve (90 %) from fewer tokens", source: "asked here", arch: "diff2",
		than: "transformer", measure: tokensTo90, ratio: true},
	{text: "DIFF V2 has smaller outliers among attention logits", source: "V2", arch: "diff2", than: "transformer",
		measure: "outliers.logits_max"},
	{text: "DIFF V2 has smaller outliers among hidden states", source: "V2", arch: "diff2", than: "transformer",
		measure: "outliers.hidden_max"},
	{text: "DIFF V2 has fewer spikes of loss and gradient", source: "V2", arch: "diff2", than: "transformer",
		measure: "train.spikes"},
	{text: "DIFF's gradient norm is larger late in training than DIFF V2's", source: "V2", arch: "diff",
		than: "diff2", measure: "train.grad_norm_late", ratio: true, above: true},
	{text: "DIFF V2 trains at 95 % or more of the Transformer's speed (“negligible” loss)", source: "V2",
		arch: "diff2", than: "transformer", measure: trainSpeed, ratio: true, above: true, least: 0.95},
}

// verdicts judges every claim for every size. Claims whose architectures are not there are left out, unless all is set.
func (f *final) verdicts(all bool) []report.Verdict {
	var out []report.Verdict
	for i := range claims {
		c := &claims[i]
		there := slices.Contains(f.archs, c.arch) && slices.Contains(f.archs, c.than)
		if !there && !all {
			continue
		}
		found := false
		for _, size := range f.sizes {
			if x, ok := f.find(c, size); ok {
				out, found = append(out, f.verdict(c, size, x)), true
			}
		}
		if !found && all {
			why := c.why
			if why == "" {
				why = "no row measures it yet"
			}
			out = append(out, report.Verdict{Claim: c.text, Source: c.source, Figure: "–", Basis: why,
				Verdict: Unclear})
		}
	}
	return out
}

// finding is a difference or a ratio with its 95 % interval.
type finding struct {
	diff, low, high float64
	seeds           int // of the side that has fewer
	note            string
}

// find looks a claim's measure up: paired by item where rows have items, else by seed.
func (f *final) find(c *claim, size string) (finding, bool) {
	if c.measure == "" {
		return finding{}, false
	}
	if c.measure == tokensTo90 {
		return f.reach(c, size)
	}
	a, b := f.values(size, c.than, c.measure), f.values(size, c.arch, c.measure)
	var ratios, diffs []float64
	items := false
	var question, metric string
	for _, seed := range slices.Sorted(maps.Keys(a)) {
		x, y := a[seed], b[seed]
		if y == nil {
			continue
		}
		diffs, ratios = append(diffs, y.Value-x.Value), append(ratios, math.Log(y.Value/x.Value))
		if x.Task != nil {
			items, question, metric = len(x.Items) > 0, x.Task.Question, x.Metric
		}
	}
	if len(diffs) == 0 {
		return finding{}, false
	}
	n := len(diffs)
	switch {
	case c.ratio:
		lo, mid, hi := studentInterval(ratios)
		return finding{math.Exp(mid), math.Exp(lo), math.Exp(hi), n, ""}, true
	case items:
		for _, p := range f.eval.Paired {
			if p.Question != question || p.Metric != metric {
				continue
			}
			one, two := f.side(size, c.than), f.side(size, c.arch)
			switch {
			case p.A == one && p.B == two:
				return finding{p.Diff, p.Low, p.High, min(p.Seeds[0], p.Seeds[1]), ""}, true
			case p.A == two && p.B == one:
				return finding{-p.Diff, -p.High, -p.Low, min(p.Seeds[0], p.Seeds[1]), ""}, true
			}
		}
		return finding{}, false
	}
	lo, mid, hi := studentInterval(diffs)
	return finding{mid, lo, hi, n, ""}, true
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

// fewestSeeds is how many seeds a verdict needs on both sides.
const fewestSeeds = 3

// decide turns a finding into a verdict.
func (c *claim) decide(x finding) string {
	zero, least := 0.0, c.least
	if c.ratio {
		zero = 1
		if least != 0 {
			zero, least = least, 0 // at least this share
		}
	}
	low, high := x.low-zero, x.high-zero
	if c.above {
		low, high = -high, -low
	}
	switch {
	case x.seeds < fewestSeeds || math.IsNaN(x.diff):
		return Unclear
	case high < 0:
		return Holds
	case low > 0 || low > -least && least > 0:
		return HoldsNot
	}
	return Unclear
}

func (f *final) verdict(c *claim, size string, x finding) report.Verdict {
	v := report.Verdict{Claim: c.text, Source: c.source, Verdict: c.decide(x),
		Basis: fmt.Sprintf("%s, %s tokens, %s", size, big(float64(f.tokens(size))), plural(x.seeds, "seed"))}
	if x.seeds < fewestSeeds {
		v.Basis += fmt.Sprintf(" (fewer than %d)", fewestSeeds)
	}
	v.Figure = c.figure(x)
	if i := slices.IndexFunc(f.rows, func(r Row) bool { return r.Size == size && r.Arch == c.arch }); i >= 0 {
		v.Command = f.rows[i].Command
	}
	return v
}

// figure writes a finding.
func (c *claim) figure(x finding) string {
	form, scale, unit := "%+.3f", 1.0, c.unit
	switch {
	case x.note != "":
		return x.note
	case c.ratio:
		form, unit = "×%.2f", ""
	case c.percent:
		form, scale, unit = "%+.1f", 100, "points"
	case math.Abs(x.diff) >= 10:
		form = "%+.1f"
	}
	s := fmt.Sprintf(form, scale*x.diff)
	if !math.IsInf(x.low, 0) && !math.IsInf(x.high, 0) {
		s += fmt.Sprintf(" ["+form+", "+form+"]", scale*x.low, scale*x.high)
	}
	return strings.TrimSpace(strings.ReplaceAll(s, "-", "−") + " " + unit)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// big is a number for people.
func big(n float64) string { return report.Short(n, 3) }
