package eval

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// direction is which way a metric is better.
type direction int8

const (
	neither direction = iota
	lower
	higher
)

// verdict is what a cell is marked with.
type verdict int8

const (
	unmarked verdict = iota
	best             // better than every other side by more than twice the combined standard error
	tied             // no side is
)

// row is one metric over all sides.
type row struct {
	name   string
	better direction
	minor  bool // detail of the row above
	cells  []cell
}

// cell is one side's value as it is shown.
type cell struct {
	value, err float64
	text       string // empty where it was not measured
	verdict    verdict
}

// metric is how a row is made.
type metric struct {
	name   string
	better direction
	minor  bool
	value  func(*Side) (value, err float64, ok bool)
	format func(value, err float64) string
	text   func(*Side) string // instead of value and format, for rows that are not compared
}

// rows evaluates all metrics that any side has.
func (r *Report) rows() []row {
	var out []row
	for _, m := range r.metrics() {
		x := row{name: m.name, better: m.better, minor: m.minor}
		measured := false
		for i := range r.Sides {
			c := m.cell(&r.Sides[i])
			measured = measured || c.text != ""
			x.cells = append(x.cells, c)
		}
		if measured {
			x.judge()
			out = append(out, x)
		}
	}
	return out
}

func (m *metric) cell(s *Side) cell {
	if m.text != nil {
		return cell{text: m.text(s)}
	}
	v, err, ok := m.value(s)
	switch {
	case !ok:
		return cell{}
	case !finite(v):
		return cell{value: v, text: "not a number"}
	}
	return cell{value: v, err: err, text: m.format(v, err)}
}

// judge marks the best cell, or the cells that cannot be told from it. Errors count as independent.
func (x *row) judge() {
	if x.better == neither {
		return
	}
	var known []*cell
	for i := range x.cells {
		if c := &x.cells[i]; c.text != "" && finite(c.value) {
			known = append(known, c)
		}
	}
	if len(known) < 2 {
		return
	}
	sign := 1.0
	if x.better == higher {
		sign = -1
	}
	top := slices.MinFunc(known, func(a, b *cell) int { return cmp.Compare(sign*a.value, sign*b.value) })
	alone := true
	for _, c := range known {
		if c != top && !(math.Abs(c.value-top.value) > 2*math.Hypot(c.err, top.err)) {
			c.verdict, alone = tied, false
		}
	}
	top.verdict = best
	if !alone {
		top.verdict = tied
	}
}

// metrics lists what the table shows, in order.
func (r *Report) metrics() []metric {
	list := []metric{
		{name: "parameters", text: func(s *Side) string { return count(float64(s.Parameters)) }},
		{name: "training tokens", text: func(s *Side) string { return count(float64(s.TrainTokens)) }},
		{name: "training speed, tokens/s", better: higher, format: func(v, _ float64) string { return count(v) },
			value: func(s *Side) (float64, float64, bool) { return s.TokensPerSecond, 0, s.TokensPerSecond > 0 }},
		{name: "held-out loss, nats/token", better: lower, format: plusMinus("%.4f"),
			value: func(s *Side) (float64, float64, bool) { return known(s.Loss.Loss) }},
		{name: "perplexity", minor: true, format: plusMinus("%.3f"),
			value: func(s *Side) (float64, float64, bool) { // d exp(x) = exp(x) dx
				return s.Loss.Perplexity, s.Loss.Perplexity * s.Loss.Loss.StdErr, s.Loss.Loss.N > 0
			}},
	}
	for _, kind := range r.needleKinds() {
		list = append(list, kind.metrics(depthLabel(kind.depths(r.Sides)))...)
	}
	for _, s := range r.Sides[:min(1, len(r.Sides))] {
		list = append(list, attentionMetrics(depthLabel(s.Attention.Depths))...)
	}
	list = append(list, outlierMetrics("attention logits", func(s *Side) Extreme { return s.Outliers.Logits })...)
	list = append(list, outlierMetrics("hidden states", func(s *Side) Extreme { return s.Outliers.Hidden })...)
	return append(list, metric{name: "λ, mean over layers (range)", text: lambdaText})
}

// needleKind is a needle test that sides are compared on.
type needleKind struct{ needles, queries int }

// needleKinds are the tests any side took, in order.
func (r *Report) needleKinds() []needleKind {
	var out []needleKind
	for _, s := range r.Sides {
		for _, n := range s.Needles {
			if k := (needleKind{n.Needles, n.Queries}); !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}
	return out
}

// of is a side's result of the test; an empty one when it did not take it.
func (k needleKind) of(s *Side) NeedleResult {
	for _, n := range s.Needles {
		if n.Needles == k.needles && n.Queries == k.queries {
			return n
		}
	}
	return NeedleResult{}
}

func (k needleKind) String() string { return fmt.Sprintf("N=%d R=%d", k.needles, k.queries) }

// depths are those of the side that has most of them.
func (k needleKind) depths(sides []Side) []float64 {
	var out []float64
	for i := range sides {
		if r := k.of(&sides[i]); len(r.Depths) > len(out) {
			out = r.Depths
		}
	}
	return out
}

func depthLabel(depths []float64) string { return "at depths " + percents(depths) }

func (k needleKind) metrics(depths string) []metric {
	return []metric{
		{name: "needle retrieval " + k.String() + ", %", better: higher, format: percent,
			value: func(s *Side) (float64, float64, bool) { return known(k.of(s).Accuracy) }},
		{name: depths, minor: true, text: func(s *Side) string {
			var values []float64
			for _, m := range k.of(s).ByDepth {
				values = append(values, m.Value)
			}
			return percents(values)
		}},
	}
}

func attentionMetrics(depths string) []metric {
	byDepth := func(pick func(Segments) float64) func(*Side) string {
		return func(s *Side) string {
			var values []float64
			for _, x := range s.Attention.Absolute {
				values = append(values, pick(x))
			}
			return percents(values)
		}
	}
	// Signed shares can be negative or beyond 1, so neither end is better: they are shown and not judged.
	return []metric{
		{name: "attention to the answer, %", better: higher, format: percent,
			value: func(s *Side) (float64, float64, bool) { return known(s.Attention.Answer) }},
		{name: depths, minor: true, text: byDepth(func(x Segments) float64 { return x.Answer })},
		{name: "with sign", minor: true, format: percent,
			value: func(s *Side) (float64, float64, bool) { return known(s.Attention.SignedAnswer) }},
		{name: "attention noise, %", better: lower, format: percent,
			value: func(s *Side) (float64, float64, bool) { return known(s.Attention.Noise) }},
		{name: depths, minor: true, text: byDepth(Segments.Noise)},
		{name: "with sign", minor: true, format: percent,
			value: func(s *Side) (float64, float64, bool) { return known(s.Attention.SignedNoise) }},
	}
}

func outlierMetrics(name string, of func(*Side) Extreme) []metric {
	format := func(v, _ float64) string { return magnitude(v) }
	return []metric{
		{name: "largest of " + name, better: lower, format: format,
			value: func(s *Side) (float64, float64, bool) { return of(s).Top1, 0, s.Outliers.Tokens > 0 }},
		{name: "median", minor: true, format: format,
			value: func(s *Side) (float64, float64, bool) { return of(s).Median, 0, s.Outliers.Tokens > 0 }},
	}
}

func lambdaText(s *Side) string {
	if len(s.Lambda) == 0 {
		return ""
	}
	sum := 0.0
	for _, x := range s.Lambda {
		sum += x
	}
	return show("%.3f", sum/float64(len(s.Lambda))) + show(" (%.2f", slices.Min(s.Lambda)) + show(" to %.2f)", slices.Max(s.Lambda))
}

func known(m Mean) (value, err float64, ok bool) { return m.Value, m.StdErr, m.N > 0 }

// plusMinus formats a value and its error alike.
func plusMinus(verb string) func(v, err float64) string {
	return func(v, err float64) string { return show(verb, v) + " ± " + show(verb, err) }
}

func percent(v, err float64) string { return show("%.1f", 100*v) + " ± " + show("%.1f", 100*err) }

func percents(values []float64) string {
	var out []string
	for _, v := range values {
		out = append(out, show("%.0f", 100*v))
	}
	return strings.Join(out, " ")
}

// magnitude shows three digits or more.
func magnitude(v float64) string {
	switch {
	case v >= 1000:
		return count(v)
	case v >= 100:
		return show("%.0f", v)
	case v >= 10:
		return show("%.1f", v)
	}
	return show("%.2f", v)
}

// count writes a whole number in groups of three digits; empty for zero, which stands for unknown.
func count(v float64) string {
	if v == 0 {
		return ""
	}
	s := show("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
