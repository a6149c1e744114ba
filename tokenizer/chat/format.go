package chat

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// formatSpec is how a value is written: {:spec} of str.format, or what is after a percent sign.
type formatSpec struct {
	fill      rune
	align     byte // < > ^ =, or 0
	zero      bool // = is meant by a zero before the width
	sign      byte // + - space, or 0
	alternate bool // 0x before hexadecimal digits
	comma     string
	width     int
	precision int  // -1: not given
	verb      byte // 0: not given
}

var (
	specForm    = regexp.MustCompile(`^(?:(.)?([<>^=]))?([-+ ])?(#)?(0)?(\d+)?([,_])?(?:\.(\d+))?([a-zA-Z%])?$`)
	percentForm = regexp.MustCompile(`^%(?:\(([^)]*)\))?([-+ #0]*)(\d+|\*)?(?:\.(\d+|\*)?)?[hlL]?(.)`)
)

// widthOf bounds a width.
func widthOf(n int) int {
	if n > maxValue {
		fail("%w", errLarge)
	}
	return max(n, -maxValue) // differences of widths fit
}

// atoi reads digits; otherwise if there are none.
func atoi(digits string, otherwise int) int {
	if digits == "" {
		return otherwise
	}
	n, err := strconv.Atoi(digits)
	if err != nil {
		fail("%w", errLarge)
	}
	return widthOf(n)
}

// parseSpec reads the part of a field of str.format after its colon.
func parseSpec(s string) formatSpec {
	m := specForm.FindStringSubmatch(s)
	if m == nil {
		fail("format: %.40q is not a format", s)
	}
	f := formatSpec{fill: ' ', alternate: m[4] != "", comma: m[7], width: atoi(m[6], 0), precision: atoi(m[8], -1)}
	if m[5] != "" {
		f.fill, f.align, f.zero = '0', '=', true
	}
	if m[2] != "" {
		f.align, f.zero = m[2][0], false
	}
	if m[1] != "" {
		f.fill, _ = utf8.DecodeRuneInString(m[1])
	} else if m[2] != "" && m[5] == "" {
		f.fill = ' '
	}
	if m[3] != "" {
		f.sign = m[3][0]
	}
	if m[9] != "" {
		f.verb = m[9][0]
	}
	return f
}

// padded fills a text up to a width in characters.
func padded(s string, fill rune, align byte, width int) string {
	n := width - utf8.RuneCountInString(s)
	if n <= 0 {
		return s
	}
	left := map[byte]int{'>': n, '=': n, '^': n / 2}[align]
	return strings.Repeat(string(fill), left) + s + strings.Repeat(string(fill), n-left)
}

// text writes a text.
func (f formatSpec) text(s string) string {
	if f.precision >= 0 {
		if r := []rune(s); len(r) > f.precision {
			s = string(r[:f.precision])
		}
	}
	align := f.align
	if align == 0 {
		align = '<'
	}
	return padded(s, f.fill, align, f.width)
}

// number writes a number whose digits are given without their sign and prefix.
func (f formatSpec) number(prefix, digits string, negative bool) string {
	sign := prefix
	switch {
	case negative:
		sign = "-" + prefix
	case f.sign == '+' || f.sign == ' ':
		sign = string(f.sign) + prefix
	}
	if f.comma != "" {
		digits = f.grouped(digits, f.width-len(sign))
	}
	switch f.align {
	case '=':
		return sign + padded(digits, f.fill, '>', f.width-len(sign))
	case 0:
		return padded(sign+digits, f.fill, '>', f.width)
	}
	return padded(sign+digits, f.fill, f.align, f.width)
}

// grouped puts separators between the digits before a point. Zeros that fill up to a width are separated too.
func (f formatSpec) grouped(digits string, width int) string {
	whole, rest := digits, ""
	if i := strings.IndexFunc(digits,
		func(r rune) bool { return !unicode.Is(unicode.ASCII_Hex_Digit, r) || r == 'e' && f.verb != 'x' }); i >= 0 {
		whole, rest = digits[:i], digits[i:]
	}
	if whole == "" { // inf or nan
		return digits
	}
	size := 3
	if f.verb != 0 && strings.IndexByte("boxX", f.verb) >= 0 {
		size = 4
	}
	if f.align == '=' && f.fill == '0' {
		width -= len(rest)
		n := max(width*size/(size+1), len(whole))
		for n+(n-1)/size < width {
			n++
		}
		whole = strings.Repeat("0", n-len(whole)) + whole
	}
	var out strings.Builder
	for i := range len(whole) {
		if left := len(whole) - i; i > 0 && left%size == 0 {
			out.WriteString(f.comma)
		}
		out.WriteByte(whole[i])
	}
	return out.String() + rest
}

// value writes a value by its type and the verb.
func (f formatSpec) value(v any) string {
	if s, ok := isText(v); ok {
		if f.zero {
			f.align = '<'
		}
		if f.verb != 0 && f.verb != 's' || f.align == '=' || f.sign != 0 || f.comma != "" || f.alternate {
			fail("format: a text as %q", string(rune(f.verb)))
		}
		return f.text(s)
	}
	n, isInteger := isInt(v)
	if isInteger && (f.verb == 0 || strings.IndexByte("dboxXcn", f.verb) >= 0) {
		if f.precision >= 0 {
			fail("format: an integer with a precision")
		}
		if f.verb == 'c' && f.sign != 0 || f.comma == "," && strings.IndexByte("boxXcn", f.verb) >= 0 ||
			f.comma != "" && (f.verb == 'c' || f.verb == 'n') {
			fail("format: an integer as %q with a sign or with separators", string(rune(f.verb)))
		}
		return f.integer(n)
	}
	if x, ok := isNumber(v); ok {
		return f.float(x)
	}
	if f.width > 0 || f.precision >= 0 || f.verb != 0 || f.align != 0 {
		fail("format: %s with a format", kindOf(v))
	}
	return str(v)
}

func (f formatSpec) integer(n int) string {
	base, prefix := 10, ""
	switch f.verb {
	case 'b':
		base, prefix = 2, "0b"
	case 'o':
		base, prefix = 8, "0o"
	case 'x', 'X':
		base, prefix = 16, "0"+string(rune(f.verb))
	case 'c':
		if n < 0 || n > utf8.MaxRune {
			fail("format: %d is not a character", n)
		}
		return f.text(string(rune(n)))
	}
	digits := strings.TrimPrefix(strconv.FormatInt(int64(n), base), "-")
	if f.verb == 'X' {
		digits = strings.ToUpper(digits)
	}
	if f.precision > len(digits) {
		digits = strings.Repeat("0", f.precision-len(digits)) + digits
	}
	if !f.alternate {
		prefix = ""
	}
	return f.number(prefix, digits, n < 0)
}

func (f formatSpec) float(x float64) string {
	verb, precision, unit := f.verb, f.precision, ""
	if precision < 0 {
		precision = 6
	}
	if precision > 400 {
		fail("format: %d digits", precision)
	}
	if f.alternate && (precision == 0 || verb == 'g' || verb == 'G') {
		fail("format: # with a float")
	}
	negative := math.Signbit(x) && !math.IsNaN(x)
	size := math.Abs(x)
	var digits string
	switch verb {
	case 0:
		if digits = pythonFloat(size); f.precision >= 0 {
			digits = general(size, precision, true)
		}
	case '%':
		size, unit = size*100, "%"
		digits = strconv.FormatFloat(size, 'f', precision, 64)
	case 'f', 'F', 'e', 'E':
		digits = strconv.FormatFloat(size, strings.ToLower(string(rune(verb)))[0], precision, 64)
	case 'g', 'G', 'n':
		digits = general(size, precision, false)
	default:
		fail("format: a float as %q", string(rune(verb)))
	}
	if math.IsInf(x, 0) || math.IsNaN(x) {
		digits = pythonFloat(size)
	}
	if verb == 'F' || verb == 'E' || verb == 'G' {
		digits = strings.ToUpper(digits)
	}
	return f.number("", digits+unit, negative)
}

// general is %g: an exponent for very large and very small numbers, and no zeros at the end.
func general(x float64, precision int, point bool) string {
	precision = max(precision, 1)
	e := strconv.FormatFloat(x, 'e', precision-1, 64)
	mantissa, exponent, _ := strings.Cut(e, "e")
	n, _ := strconv.Atoi(exponent) // FormatFloat writes it
	limit := precision
	if point { // str of a float has a digit after the point
		limit--
	}
	if x != 0 && (n < -4 || n >= limit) {
		if strings.Contains(mantissa, ".") {
			mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
		}
		return mantissa + "e" + exponent
	}
	s := strconv.FormatFloat(x, 'f', max(precision-1-n, 0), 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if point && !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
