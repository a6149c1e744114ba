package chat

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode"
)

// ErrText marks an error in a text template.
var ErrText = errors.New("template")

// ParseText reads a text template with Jinja's own rules: white space is kept, an unknown name is an error, and values
// are printed as in Python. Task files of lm-evaluation-harness use this form.
func ParseText(source string) (t *Template, err error) {
	defer func() { err = finish(ErrText, err, recover()) }()
	return parse(source, nil, false)
}

// RenderText renders the template with these variables, each of which must marshal to JSON.
func (t *Template) RenderText(vars map[string]any) (text string, err error) {
	defer func() { err = finish(ErrText, err, recover()) }()
	values := map[string]any{}
	for k, v := range vars {
		if values[k], err = ordered(v); err != nil {
			return "", fmt.Errorf("%s: %w", k, err)
		}
	}
	return t.execute(values, &run{budget: &budget{}, strict: true}), nil
}

// str is Python's str of a value, as Jinja prints it.
func str(v any) string {
	if s, ok := isText(v); ok {
		return s
	}
	if u, ok := v.(*undefined); ok {
		u.use()
		return ""
	}
	return repr(v)
}

// repr is Python's.
func repr(v any) string {
	out := &boundedText{left: maxValue}
	writeRepr(out, v)
	return out.String()
}

func writeRepr(w *boundedText, v any) {
	switch v := v.(type) {
	case nil:
		w.print("None")
	case bool:
		w.print(map[bool]string{true: "True", false: "False"}[v])
	case int:
		w.print(strconv.Itoa(v))
	case float64:
		w.print(pythonFloat(v))
	case string:
		w.print(PythonQuote(v))
	case markup:
		w.print("Markup(" + PythonQuote(string(v)) + ")")
	case list:
		writeList(w, "[", "]", v, nil)
	case tuple:
		end := ")"
		if len(v) == 1 {
			end = ",)"
		}
		writeList(w, "(", end, v, nil)
	case *dict:
		writeList(w, "{", "}", v.keys, v.values)
	case *view:
		writeList(w, v.kind+"([", "])", v.list, nil)
	case *namespace:
		w.print("<Namespace ")
		writeRepr(w, v.attributes)
		w.print(">")
	case *undefined:
		w.print("Undefined")
	default:
		w.print(nameOf(v))
	}
}

// nameOf is what is printed for objects.
func nameOf(v any) string {
	switch v := v.(type) {
	case *numbers:
		if v.step != 1 {
			return fmt.Sprintf("range(%d, %d, %d)", v.start, v.stop, v.step)
		}
		return fmt.Sprintf("range(%d, %d)", v.start, v.stop)
	case *loop:
		return fmt.Sprintf("<LoopContext %d/%d>", v.at+1, len(v.items))
	case *function:
		if v.macro != nil {
			return "<Macro " + PythonQuote(v.name) + ">"
		}
		return "<function " + v.name + ">"
	}
	return "<generator object>"
}

// writeList writes items, or keys with values.
func writeList(w *boundedText, left, right string, items, values []any) {
	w.print(left)
	for i, x := range items {
		if i > 0 {
			w.print(", ")
		}
		writeRepr(w, x)
		if values != nil {
			w.print(": ")
			writeRepr(w, values[i])
		}
	}
	w.print(right)
}

// pythonFloat is the shortest decimal that reads back, with a point or an exponent; or inf, -inf, nan.
func pythonFloat(x float64) string {
	switch {
	case math.IsNaN(x):
		return "nan"
	case math.IsInf(x, 1):
		return "inf"
	case math.IsInf(x, -1):
		return "-inf"
	}
	format := byte('f')
	if a := max(x, -x); a != 0 && (a < 1e-4 || a >= 1e16) {
		format = 'e'
	}
	s := strconv.FormatFloat(x, format, -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

// PythonQuote is Python's repr of a text: in single quotation marks, unless it contains those and no double ones.
func PythonQuote(s string) string {
	quote := '\''
	if strings.ContainsRune(s, '\'') && !strings.ContainsRune(s, '"') {
		quote = '"'
	}
	var b strings.Builder
	b.WriteRune(quote)
	for _, r := range s {
		switch {
		case r == quote || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(escapeRune(r))
		}
	}
	b.WriteRune(quote)
	return b.String()
}

// ascii is Python's: a repr with every other character as an escape.
func ascii(v any) string {
	var b strings.Builder
	for _, r := range repr(v) {
		if r < 0x80 {
			b.WriteRune(r)
		} else {
			b.WriteString(escapeRune(r))
		}
	}
	return b.String()
}

// groupReference is \1 in a replacement, which is ${1} in Go.
var groupReference = regexp.MustCompile(`\\(\d)`)

// maxMatching bounds a pattern's steps times a text's bytes, which may all be taken.
const maxMatching = 1 << 26

// regexReplace is Python's re.sub, a filter that the harness's task files may use.
func regexReplace(r *run, v any, p params) any {
	a := p.bind("regex_replace", 2, "pattern", "repl")
	if !r.strict {
		fail("filter regex_replace is not supported in chat templates")
	}
	pattern, err := regexp.Compile(str(a[0]))
	if err != nil {
		fail("regex_replace: %w", err)
	}
	s, with := str(v), str(a[1])
	if tree, err := syntax.Parse(pattern.String(), syntax.Perl); err == nil {
		if program, err := syntax.Compile(tree.Simplify()); err == nil && len(program.Inst)*len(s) > maxMatching {
			fail("regex_replace: a pattern of %d steps for a text of %d bytes", len(program.Inst), len(s))
		}
	}
	references, left := len(groupReference.FindAllString(with, -1)), maxValue-len(s)
	pattern.ReplaceAllStringFunc(s, func(match string) string {
		if left -= len(with) + references*len(match); left < 0 {
			fail("%w", errLarge)
		}
		return match
	})
	with = groupReference.ReplaceAllString(strings.ReplaceAll(with, "$", "$$"), "${$1}")
	return pattern.ReplaceAllString(s, with)
}
