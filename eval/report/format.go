package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"antiphase/eval"
)

// show formats a number for display: the minus sign is as wide as a plus, and a value that is not finite is a dash.
func show(verb string, x float64) string {
	if !eval.Finite(x) {
		return "–"
	}
	return strings.Replace(fmt.Sprintf(verb, x), "-", "−", 1)
}

// percent reports whether a metric is a share, shown in percent: its label then ends in %.
func percent(m *eval.Metric) bool { return strings.HasSuffix(m.Label, ", %") }

// label is a metric's name for readers.
func label(m *eval.Metric) string {
	if m.Label != "" {
		return m.Label
	}
	return m.Name
}

// decimals is the precision that shows two digits of an error.
func decimals(err float64) int {
	digits := 0
	for x := err; x < 9.5 && digits < 6; x *= 10 {
		digits++
	}
	return digits
}

// rowDecimals is the precision of a row: that of its smallest error, so that all its numbers have the same number of
// decimals.
func rowDecimals(percent bool, list []eval.Metric) int {
	if percent {
		return 1
	}
	digits := -1
	for _, m := range list {
		if m.StdErr > 0 {
			digits = max(digits, decimals(m.StdErr))
		}
	}
	return min(digits, 4)
}

// text shows a value with its error; without one, four digits.
func text(m *eval.Metric, digits int) string {
	f := 1.0
	if percent(m) {
		f = 100
	}
	v, err := f*m.Value, f*m.StdErr
	switch {
	case !eval.Finite(v):
		return "not a number"
	case math.Abs(v) >= 1e6 && !percent(m):
		return show("%.3g", v)
	case err == 0 && percent(m):
		return show("%.1f", v)
	case err == 0:
		return plain(v)
	}
	verb := fmt.Sprintf("%%.%df", max(digits, 0))
	return show(verb, v) + " ± " + show(verb, err)
}

// plain shows three digits or more.
func plain(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1000:
		return count(v)
	case a >= 100:
		return show("%.0f", v)
	case a >= 10:
		return show("%.1f", v)
	case a == 0:
		return "0"
	}
	return show("%.3g", v)
}

// difference shows B − A with its error and stars.
func difference(p *eval.Paired, percent bool, digits int) string {
	f := 1.0
	if percent {
		f = 100
	}
	if digits < 0 {
		digits = 4
	}
	if p.Diff == 0 && p.StdErr == 0 {
		return "equal   "
	}
	verb := fmt.Sprintf("%%+.%df", digits)
	out := show(verb, f*p.Diff) + " ± " + show(fmt.Sprintf("%%.%df", digits), f*p.StdErr)
	switch {
	case p.PHolm < 0.01:
		return out + " **"
	case p.PHolm < 0.05:
		return out + " * "
	}
	return out + "   "
}

// magnitude shows three digits or more.
func magnitude(v float64) string { return plain(v) }

// count writes an integer in groups of three digits; empty for zero, which means unknown.
func count(v float64) string {
	if v == 0 {
		return ""
	}
	s := show("%.0f", math.Abs(v))
	for i := len(s) - 3; i > 0 && eval.Finite(v); i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return minus(v) + s
}

// minus is the sign of a number whose digits are written without it.
func minus(v float64) string {
	if v < 0 && eval.Finite(v) {
		return "−"
	}
	return ""
}

// Short writes a large number with a letter and this many digits: 725k, 6.144M.
func Short(x float64, digits int) string {
	if !eval.Finite(x) {
		return "–"
	}
	sign := minus(x)
	x = math.Abs(x)
	for _, letter := range []string{"", "k", "M", "B"} {
		s := strconv.FormatFloat(x, 'g', digits, 64)
		// A number that rounds to a thousand has the next letter.
		if r, err := strconv.ParseFloat(s, 64); err == nil && r < 1000 {
			return sign + strings.Replace(s, "-", "−", 1) + letter
		}
		x /= 1000
	}
	return sign + show("%.0f", x) + "T"
}

// short has three digits, for an axis.
func short(x float64) string { return Short(x, 3) }

func percents(values []float64) string {
	var out []string
	for _, v := range values {
		out = append(out, show("%.0f", 100*v))
	}
	return strings.Join(out, " ")
}

// tokens formats a length in binary units: 4K is 4096.
func tokens(n int) string {
	if n >= 1024 && n%1024 == 0 {
		return fmt.Sprintf("%dK", n/1024)
	}
	return fmt.Sprint(n)
}

func runes(s string) int { return utf8.RuneCountInString(s) }

// paint wraps text in a terminal style.
func paint(color bool, style, text string) string {
	if !color || style == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}
