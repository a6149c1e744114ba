package experiment

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"antiphase/eval"
)

// figure writes a finding: the two sides' values with their floors, then the difference or the ratio with its interval.
func (c *claim) figure(x finding) string {
	switch {
	case x.note != "":
		return x.note
	case c.ratio:
		return fmt.Sprintf("%s against %s: %s", big(x.arch), big(x.than), x.ratio())
	}
	form, scale, unit := "%.3f", 1.0, c.unit
	switch {
	case c.percent:
		form, scale, unit = "%.1f", 100, "points"
	case math.Abs(x.arch) >= 10 || math.Abs(x.than) >= 10:
		form = "%.1f"
	case math.Abs(x.arch) < 0.01 && math.Abs(x.than) < 0.01 && x.diff != 0: // a divergence of small models
		form = "%.2g"
	}
	sides := fmt.Sprintf(form+" against "+form, scale*x.arch, scale*x.than)
	for _, name := range slices.Sorted(maps.Keys(x.floors)) {
		if x.floors[name] < 1 {
			sides += fmt.Sprintf(", %s %.1f", name, 100*x.floors[name])
		}
	}
	plus := "%+" + form[1:]
	s := fmt.Sprintf(plus, scale*x.diff)
	if x.bounded() {
		s += fmt.Sprintf(" ["+plus+", "+plus+"]", scale*x.low, scale*x.high)
	}
	return sides + ": " + joined(strings.ReplaceAll(s, "-", "−"), unit, x.unbounded())
}

// from is where a claim is made, with the published figure.
func (c *claim) from() string {
	published := c.published
	if c.least > 0 {
		size := -c.least
		if c.above {
			size = c.least
		}
		published = strings.ReplaceAll(fmt.Sprintf("%+.3f %s", size, c.unit), "-", "−")
	}
	if published == "" {
		return c.source
	}
	return c.source + ": " + published
}

// ratio writes a ratio with its interval. Ends a hundredfold apart come from two or three seeds that differ much: the
// ratio is then no estimate, and the text says so.
func (x *finding) ratio() string {
	if !eval.Finite(x.diff) || x.diff == 0 {
		return "no ratio, a value is 0"
	}
	if !x.bounded() {
		return joined(times(x.diff), x.unbounded())
	}
	s := fmt.Sprintf("%s [%s, %s]", times(x.diff), times(x.low), times(x.high))
	if x.high > 100*x.low {
		s += " (unreliable: the seeds differ too much)"
	}
	return s
}

// times is a ratio with the digits that can mean something: two decimals near 1, else two or three digits, and none
// beyond a thousandfold.
func times(x float64) string {
	switch {
	case x > 1000:
		return "over ×1000"
	case x < 0.001:
		return "under ×0.001"
	case x >= 99.95:
		return fmt.Sprintf("×%.0f", x)
	case x >= 9.995:
		return fmt.Sprintf("×%.1f", x)
	case x < 0.0995:
		return fmt.Sprintf("×%.2g", x)
	}
	return fmt.Sprintf("×%.2f", x)
}

// bounded reports whether there is an interval.
func (x *finding) bounded() bool { return eval.Finite(x.low) && eval.Finite(x.high) }

// unbounded says why there is no interval, "" if there is one.
func (x *finding) unbounded() string {
	switch {
	case x.bounded():
		return ""
	case x.seeds < 2:
		return "(one seed: no interval)"
	}
	return "(no interval)"
}

// joined are the words that are not empty, with spaces between them.
func joined(words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), " ")
}
