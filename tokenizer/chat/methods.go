package chat

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/nikolalohinski/gonja/v2/exec"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// textMethods are Python's str methods whose results are no larger than the text itself; casings are others.
var textMethods = map[string]func(s string, arg func(int) *exec.Value) any{
	"strip": func(s string, arg func(int) *exec.Value) any { return strip(s, arg(0), strings.Trim, strings.TrimFunc) },
	"lstrip": func(s string, arg func(int) *exec.Value) any {
		return strip(s, arg(0), strings.TrimLeft, strings.TrimLeftFunc)
	},
	"rstrip": func(s string, arg func(int) *exec.Value) any {
		return strip(s, arg(0), strings.TrimRight, strings.TrimRightFunc)
	},
	"startswith": func(s string, arg func(int) *exec.Value) any { return atEnd(s, arg, strings.HasPrefix) },
	"endswith":   func(s string, arg func(int) *exec.Value) any { return atEnd(s, arg, strings.HasSuffix) },
	"find":       func(s string, arg func(int) *exec.Value) any { return found(s, arg, strings.Index) },
	"rfind":      func(s string, arg func(int) *exec.Value) any { return found(s, arg, strings.LastIndex) },
	"count": func(s string, arg func(int) *exec.Value) any {
		if part, _, ok := window(s, arg(1), arg(2)); ok {
			return strings.Count(part, arg(0).String())
		}
		return 0
	},
	"removeprefix": func(s string, arg func(int) *exec.Value) any { return strings.TrimPrefix(s, arg(0).String()) },
	"removesuffix": func(s string, arg func(int) *exec.Value) any { return strings.TrimSuffix(s, arg(0).String()) },
	"split":        func(s string, arg func(int) *exec.Value) any { return split(s, arg(0), arg(1), false) },
	"rsplit":       func(s string, arg func(int) *exec.Value) any { return split(s, arg(0), arg(1), true) },
	"splitlines":   func(s string, arg func(int) *exec.Value) any { return splitLines(s, arg(0).IsTrue()) },
	"isdigit":      func(s string, _ func(int) *exec.Value) any { return every(s, unicode.IsDigit) },
	"isalpha":      func(s string, _ func(int) *exec.Value) any { return every(s, unicode.IsLetter) },
	"isspace":      func(s string, _ func(int) *exec.Value) any { return every(s, isSpace) },
	"isupper":      func(s string, _ func(int) *exec.Value) any { return allCased(s, isUpper) },
	"islower":      func(s string, _ func(int) *exec.Value) any { return allCased(s, isLower) },
}

// method calls a method of a text, a list or a dict.
func method(b *budget, self *exec.Value, name string, args []*exec.Value, named map[string]*exec.Value) *exec.Value {
	if self.IsError() {
		return self
	}
	if self.IsString() {
		return textMethod(b, self.String(), name, args, named)
	}
	arg := func(i int) *exec.Value {
		if i < len(args) {
			return args[i]
		}
		return exec.AsValue(nil)
	}
	switch {
	case self.IsDict():
		return dictMethod(b, self, name, arg)
	case self.IsList() && name == "index":
		return listIndex(b, self, arg(0))
	}
	return b.fail("method %.40q is not known for %.40T", name, self.Interface())
}

// textMethod calls a method of a text.
func textMethod(b *budget, s, name string, args []*exec.Value, named map[string]*exec.Value) *exec.Value {
	call, mapping := textMethods[name], casings[name]
	if call == nil && mapping == nil && !slices.Contains([]string{"join", "replace", "index"}, name) {
		return b.fail("method %.40q is not known for a text", name)
	}
	args, err := arguments(name, args, named)
	if err != nil {
		return b.fail("%w", err)
	}
	switch name {
	case "join":
		return joined(b, args[0], s)
	case "replace":
		return replaced(b, s, args[0].String(), args[1].String(), args[2])
	case "split", "rsplit":
		if args[0].IsString() && args[0].String() == "" {
			return b.fail("%s: the separator is empty", name)
		}
	}
	size := len(s)
	if mapping != nil {
		size *= mostCased
	}
	if over := b.charge(size); over != nil {
		return over
	}
	if mapping != nil {
		return exec.AsValue(mapping(s))
	}
	arg := func(i int) *exec.Value { return args[i] }
	if name != "index" {
		return exec.AsValue(call(s, arg))
	}
	at := found(s, arg, strings.Index)
	if at < 0 {
		return b.fail("index: %.80q is not there", args[0].String())
	}
	return exec.AsValue(at)
}

// dictMethod implements the methods of a dict, in key order.
func dictMethod(b *budget, self *exec.Value, name string, arg func(int) *exec.Value) *exec.Value {
	d, ok := self.Interface().(*exec.Dict)
	if !ok {
		return b.fail("method %.40q is not known for a namespace", name)
	}
	if over := b.charge(16 * len(d.Pairs)); over != nil {
		return over
	}
	list := make([]any, 0, len(d.Pairs))
	switch name {
	case "get":
		for _, p := range d.Pairs {
			if p.Key.EqualValueTo(arg(0)) {
				return p.Value
			}
		}
		return arg(1)
	case "keys":
		for _, p := range d.Pairs {
			list = append(list, p.Key.Interface())
		}
	case "values":
		for _, p := range d.Pairs {
			list = append(list, p.Value.Interface())
		}
	case "items":
		for _, p := range d.Pairs {
			list = append(list, []any{p.Key.Interface(), p.Value.Interface()})
		}
	default:
		return b.fail("method %.40q is not known for a dict", name)
	}
	return exec.AsValue(list)
}

// listIndex is the index of a value in a list; it must occur.
func listIndex(b *budget, self, want *exec.Value) *exec.Value {
	list := items(self)
	if over := b.charge(16 * len(list)); over != nil {
		return over
	}
	at := slices.IndexFunc(list, func(x any) bool { return exec.AsValue(x).EqualValueTo(want) })
	if at < 0 {
		return b.fail("index: %.80q is not there", want.String())
	}
	return exec.AsValue(at)
}

// isSpace is str.isspace of a character: Unicode's white space and the four separators of ASCII.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

func strip(s string, cut *exec.Value, set func(string, string) string, space func(string, func(rune) bool) string) string {
	if cut.IsString() {
		return set(s, cut.String())
	}
	return space(s, isSpace)
}

// atEnd is str.startswith and str.endswith: of one text or any of several, within bounds.
func atEnd(s string, arg func(int) *exec.Value, has func(string, string) bool) bool {
	part, _, ok := window(s, arg(1), arg(2))
	if !ok {
		return false
	}
	if arg(0).IsString() {
		return has(part, arg(0).String())
	}
	for _, x := range items(arg(0)) {
		if t, ok := x.(string); ok && has(part, t) {
			return true
		}
	}
	return false
}

// found is the index of a text within bounds, in characters; -1 if it is not there.
func found(s string, arg func(int) *exec.Value, index func(string, string) int) int {
	part, before, ok := window(s, arg(1), arg(2))
	if !ok {
		return -1
	}
	at := index(part, arg(0).String())
	if at < 0 {
		return -1
	}
	return before + utf8.RuneCountInString(part[:at])
}

func every(s string, f func(rune) bool) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return !f(r) }) < 0
}

// split is str.split and str.rsplit: at white space if there is no separator, at most limit times.
func split(s string, sep, limit *exec.Value, fromRight bool) []any {
	n := -1
	if limit.IsInteger() {
		n = limit.Integer()
	}
	var parts []string
	switch {
	case !sep.IsString():
		parts = splitSpace(s, n, fromRight)
	case n < 0:
		parts = strings.Split(s, sep.String())
	case !fromRight:
		parts = strings.SplitN(s, sep.String(), n+1)
	default:
		parts = strings.Split(s, sep.String())
		if k := len(parts) - n; k > 1 {
			parts = append([]string{strings.Join(parts[:k], sep.String())}, parts[k:]...)
		}
	}
	list := make([]any, len(parts))
	for i, p := range parts {
		list[i] = p
	}
	return list
}

// splitSpace splits at white space, at most n times if n is not negative. The rest keeps the white space at its far end.
func splitSpace(s string, n int, fromRight bool) []string {
	parts := strings.FieldsFunc(s, isSpace)
	switch {
	case n < 0 || len(parts) <= n:
		return parts
	case fromRight:
		last := parts[len(parts)-n:]
		for i := range last {
			s = strings.TrimRightFunc(s, isSpace)
			s = s[:len(s)-len(last[len(last)-1-i])]
		}
		return append([]string{strings.TrimRightFunc(s, isSpace)}, last...)
	}
	for _, p := range parts[:n] {
		s = strings.TrimLeftFunc(s, isSpace)[len(p):]
	}
	return append(parts[:n:n], strings.TrimLeftFunc(s, isSpace))
}

// lineEnds are the characters at which str.splitlines splits; \r\n is one end.
const lineEnds = "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029"

func splitLines(s string, keep bool) []any {
	list := []any{}
	for s != "" {
		i := strings.IndexAny(s, lineEnds)
		if i < 0 {
			return append(list, s)
		}
		_, width := utf8.DecodeRuneInString(s[i:])
		if strings.HasPrefix(s[i:], "\r\n") {
			width = 2
		}
		end := i
		if keep {
			end += width
		}
		list, s = append(list, s[:end]), s[i+width:]
	}
	return list
}

// directives are the strftime directives that templates use, in Go's layout notation.
var directives = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'd': "02", 'e': "_2", 'H': "15", 'I': "03", 'j': "002", 'm': "01", 'M': "04",
	'p': "PM", 'S': "05", 'y': "06", 'Y': "2006", 'Z': "MST", 'z': "-0700", 'F': "2006-01-02", 'T': "15:04:05", 'D': "01/02/06",
}

// strftimeNow formats the date with a C format string.
func strftimeNow(e *exec.Evaluator, p *exec.VarArgs) string {
	return strftime(budgetOf(e).now, argument(p, 0, "format").String())
}

func strftime(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		switch layout, ok := directives[format[i]]; {
		case ok:
			b.WriteString(t.Format(layout))
		case format[i] == '%':
			b.WriteByte('%')
		default:
			b.WriteString(format[i-1 : i+1])
		}
	}
	return b.String()
}
