package chat

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/nikolalohinski/gonja/v2/config"
	"github.com/nikolalohinski/gonja/v2/exec"
)

// ErrText marks an error in a text template.
var ErrText = errors.New("template")

// ParseText reads a text template with Jinja's own rules: white space is kept, an unknown name is an error, and values
// are printed as in Python. Task files of lm-evaluation-harness use this form.
func ParseText(source string) (t *Template, err error) {
	defer func() { err = finish(ErrText, err, recover()) }()
	cfg := config.New()
	cfg.StrictUndefined, cfg.KeepTrailingNewline = true, true
	return parse(source, nil, cfg)
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
	return t.execute(values, &budget{python: true})
}

// printable is Python's str of a value, as Jinja prints it. In a chat template None is empty, because nothing tells it from
// an unknown name.
func printable(e *exec.Evaluator, in *exec.Value, _ *exec.VarArgs) *exec.Value {
	b := budgetOf(e)
	if in.IsError() || in.IsString() || in.IsNil() && !b.python {
		return in
	}
	out := &boundedText{left: maxValue}
	if err := python(out, in.Interface(), 0); err != nil {
		if !b.python {
			return in // what Python prints by its address, such as a macro
		}
		return b.fail("%w", err)
	}
	return exec.AsSafeValue(out.String())
}

// asText is Python's str of a value, with None as in printable.
func asText(b *budget, v *exec.Value) string {
	out := &boundedText{left: maxValue}
	if v.IsString() || v.IsNil() && !b.python || python(out, v.Interface(), 0) != nil {
		return v.String()
	}
	return out.String()
}

// python writes a value like Python's repr.
func python(w *boundedText, v any, depth int) (err error) {
	if depth > maxNesting {
		return errDeep
	}
	switch v := v.(type) {
	case *exec.Value:
		return python(w, v.Interface(), depth)
	case nil:
		_, err = w.WriteString("None")
	case bool:
		_, err = w.WriteString(map[bool]string{true: "True", false: "False"}[v])
	case int:
		_, err = w.WriteString(strconv.Itoa(v))
	case float64:
		_, err = w.WriteString(pythonFloat(v))
	case string:
		_, err = w.WriteString(PythonQuote(v))
	case *exec.Dict:
		return pythonList(w, "{", "}", len(v.Pairs), func(i int) error {
			if err := python(w, v.Pairs[i].Key, depth+1); err != nil {
				return err
			}
			if _, err := w.WriteString(": "); err != nil {
				return err
			}
			return python(w, v.Pairs[i].Value, depth+1)
		})
	default:
		x := exec.AsValue(v)
		if !x.IsList() {
			return fmt.Errorf("%T cannot be printed", v)
		}
		list := items(x)
		return pythonList(w, "[", "]", len(list), func(i int) error { return python(w, list[i], depth+1) })
	}
	return err
}

func pythonList(w *boundedText, left, right string, n int, item func(i int) error) error {
	if _, err := w.WriteString(left); err != nil {
		return err
	}
	for i := range n {
		if i > 0 {
			if _, err := w.WriteString(", "); err != nil {
				return err
			}
		}
		if err := item(i); err != nil {
			return err
		}
	}
	_, err := w.WriteString(right)
	return err
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
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteRune(quote)
	return b.String()
}

// groupReference is \1 in a replacement, which is ${1} in Go.
var groupReference = regexp.MustCompile(`\\(\d)`)

// regexReplace is Python's re.sub, a filter that the harness's task files may use.
func regexReplace(e *exec.Evaluator, in *exec.Value, p *exec.VarArgs) *exec.Value {
	b := budgetOf(e)
	if in.IsError() {
		return in
	}
	pattern, err := regexp.Compile(argument(p, 0, "pattern").String())
	if err != nil {
		return b.fail("regex_replace: %w", err)
	}
	with := groupReference.ReplaceAllString(strings.ReplaceAll(argument(p, 1, "repl").String(), "$", "$$"), "${$1}")
	return b.made(exec.AsValue(pattern.ReplaceAllString(in.String(), with)))
}
