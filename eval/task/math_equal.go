package task

import (
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// extractAnswer finds the final answer in a solution: after "####", in the last \boxed{}, after "answer is", or the
// last number.
func extractAnswer(text string) string {
	if _, after, ok := cutLast(text, "####"); ok {
		return strings.TrimSpace(firstLine(after))
	}
	if boxed, ok := lastBoxed(text); ok {
		return boxed
	}
	if all := answerIs.FindAllStringIndex(text, -1); len(all) > 0 {
		after := firstLine(strings.TrimLeft(text[all[len(all)-1][1]:], " :"))
		if i := strings.Index(after, ". "); i >= 0 {
			after = after[:i]
		}
		return strings.TrimSpace(strings.TrimRight(after, ". "))
	}
	if all := numberPattern.FindAllString(text, -1); len(all) > 0 {
		return strings.TrimRight(all[len(all)-1], ".,")
	}
	return ""
}

// answerIs is matched in the original text: lower-casing could shift offsets, because some letters change length.
var answerIs = regexp.MustCompile(`(?i)answer is`)

var numberPattern = regexp.MustCompile(`-?\$?[0-9][0-9,]*(\.[0-9]+)?`)

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimLeft(s, " "), "\n")
	return s
}

// cutLast is strings.Cut at the last sep.
func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// lastBoxed is the content of the last \boxed{…}, with matched braces.
func lastBoxed(text string) (string, bool) {
	_, after, ok := cutLast(text, `\boxed{`)
	if !ok {
		return "", false
	}
	depth := 1
	for i, r := range after {
		switch r {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return after[:i], true
			}
		}
	}
	return "", false
}

var (
	mathDrop = strings.NewReplacer(`\left`, "", `\right`, "", `\!`, "", `\,`, "", `\;`, "", `\ `, " ", `\$`, "", "$",
		"", `\%`, "", "%", "",
		`^\circ`, "", `^{\circ}`, "", `\degree`, "")
	mathName = strings.NewReplacer(`\cdot`, "*", `\times`, "*", "×", "*", "÷", "/", `\div`, "/", `\pi`, "pi", "π",
		"pi", "−", "-",
		`\dfrac`, `\frac`, `\tfrac`, `\frac`, "**", "^")
	mathText     = regexp.MustCompile(`\\(?:text|mathrm|mbox|textbf)\s*\{([^{}]*)\}`)
	mathFrac     = regexp.MustCompile(`\\frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}`)
	mathShort    = regexp.MustCompile(`\\frac\s*(\d)\s*(\d)`)
	mathSqrt     = regexp.MustCompile(`\\sqrt\s*\{([^{}]*)\}`)
	mathThousand = regexp.MustCompile(`(\d),(\d{3})\b`)
	mathUnit     = regexp.MustCompile(`^(-?[0-9.,/ ]*[0-9])(?:\s*\([^()]*\)|\s+[a-z]{2}[a-z ./]*)$`)
	mathMixed    = regexp.MustCompile(`(^|[^\d.^a-zA-Z/)])(\d+)\s*\\frac\s*\{\s*(\d+)\s*\}\s*\{\s*(\d+)\s*\}`)
	mathMixedBar = regexp.MustCompile(`^([-+]?)(\d+) (\d+)/(\d+)$`)
	mathWord     = regexp.MustCompile(`[a-zA-Z]{3,}`)
	mathName1    = regexp.MustCompile(`^[a-zA-Z](?:\([a-z]\))?\s*=\s*`)
)

// normalAnswer normalises an answer: LaTeX removed, fractions and roots expanded, units and thousands separators
// dropped.
func normalAnswer(s string) string {
	s = mathText.ReplaceAllString(mathDrop.Replace(strings.TrimSpace(s)), " $1 ")
	s = mathShort.ReplaceAllString(mathName.Replace(s), `\frac{$1}{$2}`)
	s = mixedNumbers(s)
	for range 4 { // innermost first
		s = mathFrac.ReplaceAllString(s, "(($1)/($2))")
		s = mathSqrt.ReplaceAllString(s, "sqrt($1)")
	}
	s = strings.NewReplacer("{", "(", "}", ")", `\`, "").Replace(s)
	s = mathName1.ReplaceAllString(strings.TrimRight(strings.TrimSpace(s), "."), "")
	if m := mathUnit.FindStringSubmatch(strings.ToLower(s)); m != nil {
		s = m[1]
	}
	for mathThousand.MatchString(s) && !strings.ContainsAny(s, "([") {
		s = mathThousand.ReplaceAllString(s, "$1$2")
	}
	return strings.Join(strings.Fields(s), " ")
}

// mixedNumbers writes integers with a proper fraction as sums: 3\frac{1}{2} and 3 1/2 are 3.5, not 1.5.
func mixedNumbers(s string) string {
	s = mathMixed.ReplaceAllStringFunc(s, func(m string) string {
		p := mathMixed.FindStringSubmatch(m)
		if !proper(p[3], p[4]) {
			return m
		}
		return p[1] + "(" + p[2] + "+" + p[3] + "/" + p[4] + ")"
	})
	if p := mathMixedBar.FindStringSubmatch(strings.TrimSpace(s)); p != nil && proper(p[3], p[4]) {
		return p[1] + "(" + p[2] + "+" + p[3] + "/" + p[4] + ")"
	}
	return s
}

// proper reports whether a fraction is below 1.
func proper(over, under string) bool {
	a, errA := strconv.Atoi(over)
	b, errB := strconv.Atoi(under)
	return errA == nil && errB == nil && a < b
}

// isWord reports whether an answer contains a word, as opposed to a product of letters: three consecutive letters are a
// word.
func isWord(s string) bool {
	for _, w := range mathWord.FindAllString(s, -1) {
		w = strings.TrimPrefix(strings.TrimPrefix(strings.ToLower(w), "sqrt"), "pi")
		formula := slices.ContainsFunc([]string{"abc", "xyz", "pqr", "mnk"},
			func(set string) bool { return strings.Trim(w, set) == "" })
		if len(w) >= 3 && !formula {
			return true
		}
	}
	return false
}

// sameAnswer reports whether two answers are equal: in normal form, as lists element by element, or in value.
func sameAnswer(a, b string) bool {
	a, b = normalAnswer(a), normalAnswer(b)
	if a == "" || b == "" {
		return false
	}
	return sameForm(a, b)
}

func sameForm(a, b string) bool {
	if strings.EqualFold(strings.ReplaceAll(a, " ", ""), strings.ReplaceAll(b, " ", "")) {
		return true
	}
	x, y := elements(a), elements(b)
	if len(x) != len(y) {
		return false
	}
	if len(x) == 1 {
		return sameValue(a, b)
	}
	if bracket(a) != bracket(b) {
		return false
	}
	for i := range x {
		if !sameForm(x[i], y[i]) {
			return false
		}
	}
	return true
}

// bracket is the kind of brackets of a list, which distinguishes open intervals from closed ones.
func bracket(s string) string {
	s = strings.TrimSpace(s)
	if s != "" && strings.ContainsAny(s[:1], "([") && strings.ContainsAny(s[len(s)-1:], ")]") {
		return s[:1] + s[len(s)-1:]
	}
	return ""
}

// elements splits at commas outside inner brackets, after removing an enclosing pair.
func elements(s string) []string {
	if bracket(s) != "" && strings.Contains(s, ",") {
		s = s[1 : len(s)-1]
	}
	var out []string
	depth, from := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, strings.TrimSpace(s[from:i]))
				from = i + 1
			}
		}
	}
	return append(out, strings.TrimSpace(s[from:]))
}

// sameValue evaluates both at random points of their variables; text that is not an expression equals nothing.
func sameValue(a, b string) bool {
	if isWord(a) || isWord(b) {
		return false
	}
	g := rand.New(rand.NewPCG(3, 1))
	agreed := 0
	for range 6 {
		vars := map[rune]float64{}
		for r := 'a'; r <= 'z'; r++ {
			vars[r], vars[r-'a'+'A'] = 0.5+2*g.Float64(), 0.5+2*g.Float64()
		}
		x, errX := evaluate(a, vars)
		y, errY := evaluate(b, vars)
		if errX != nil || errY != nil { // for example a root of a negative number: another point may work
			continue
		}
		integers := x == math.Trunc(x) && y == math.Trunc(y) // a rounding error would not be one
		if math.Abs(x-y) > 1e-6*max(1, math.Abs(x), math.Abs(y)) || integers && x != y {
			return false
		}
		agreed++
	}
	return agreed >= 2
}
