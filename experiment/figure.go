package experiment

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"antiphase/eval"
)

// figure writes a finding: the two sides' values with their floors, then the difference or the ratio with its interval.
func (c *claim) figure(x finding) string {
	switch {
	case x.note != "":
		return x.note
	case c.ratio:
		return fmt.Sprintf("%s against %s: %s", big(x.arch), big(x.than), c.times(x))
	}
	verb, digits, scale, unit := "f", 3, 1.0, c.unit
	switch {
	case c.percent:
		digits, scale, unit = 1, 100, "points"
	case math.Abs(x.arch) >= 10 || math.Abs(x.than) >= 10:
		digits = 1
	case math.Abs(x.arch) < 0.01 && math.Abs(x.than) < 0.01 && x.diff != 0: // a divergence of small models
		verb, digits = "g", 2
	}
	sides := fmt.Sprintf("%.*"+verb+" against %.*"+verb, digits, scale*x.arch, digits, scale*x.than)
	for _, name := range slices.Sorted(maps.Keys(x.floors)) {
		if x.floors[name] < 1 {
			sides += fmt.Sprintf(", %s %.1f", name, 100*x.floors[name])
		}
	}
	s := c.interval(x, scale, func(v float64, more int) string { return fmt.Sprintf("%+.*"+verb, digits+more, v) })
	return sides + ": " + joined(strings.ReplaceAll(s, "-", "−"), unit, x.unbounded())
}

// interval writes a difference or a ratio, and its ends if there are any. They have more digits where it takes them to
// show on which side of the claim's borders an end lies: it decides the verdict.
func (c *claim) interval(x finding, scale float64, write func(v float64, more int) string) string {
	text := func(more int) (mid, low, high string) {
		return write(scale*x.diff, more), write(scale*x.low, more), write(scale*x.high, more)
	}
	mid, low, high := text(0)
	if !x.bounded() {
		return mid
	}
	for more := range 7 {
		m, l, h := text(more)
		hidden := func(border float64) bool {
			return !tells(l, scale*x.low, scale*border) || !tells(h, scale*x.high, scale*border)
		}
		if !slices.ContainsFunc(c.borders(), hidden) {
			mid, low, high = m, l, h
			break
		}
	}
	return fmt.Sprintf("%s [%s, %s]", mid, low, high)
}

// tells reports whether a text tells on which side of a border a value lies. Text without a number is far from any.
func tells(text string, value, border float64) bool {
	said, err := strconv.ParseFloat(strings.TrimPrefix(text, "×"), 64)
	return err != nil || cmp.Compare(said, border) == cmp.Compare(value, border)
}

// borders are the values that the ends of an interval are compared with to judge the claim.
func (c *claim) borders() []float64 {
	switch {
	case c.within > 0:
		return []float64{1 / c.within, c.within}
	case c.least > 0 && c.above:
		return []float64{c.border, c.border + c.least}
	case c.least > 0:
		return []float64{c.border, c.border - c.least}
	}
	return []float64{c.border}
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

// times writes a ratio with its interval. Ends a hundredfold apart come from two or three seeds that differ much: the
// ratio is then no estimate, and the text says so.
func (c *claim) times(x finding) string {
	if !eval.Finite(x.diff) || x.diff == 0 {
		return "no ratio, a value is 0"
	}
	s := joined(c.interval(x, 1, times), x.unbounded())
	if x.bounded() && x.high > 100*x.low {
		s += " (unreliable: the seeds differ too much)"
	}
	return s
}

// times is a ratio with the digits that can mean something: two decimals near 1, else two or three digits, and none
// beyond a thousandfold; and some more.
func times(x float64, more int) string {
	switch {
	case x > 1000:
		return "over ×1000"
	case x < 0.001:
		return "under ×0.001"
	case x >= 99.95:
		return fmt.Sprintf("×%.*f", more, x)
	case x >= 9.995:
		return fmt.Sprintf("×%.*f", 1+more, x)
	case x < 0.0995:
		return fmt.Sprintf("×%.*g", 2+more, x)
	}
	return fmt.Sprintf("×%.*f", 2+more, x)
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
