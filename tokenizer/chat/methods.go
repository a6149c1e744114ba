package chat

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/nikolalohinski/gonja/v2/exec"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// textMethods are Python's str methods whose results are no larger than the text itself.
var textMethods = map[string]func(s string, arg func(int) *exec.Value) any{
	"strip": func(s string, arg func(int) *exec.Value) any { return strip(s, arg(0), strings.Trim, strings.TrimFunc) },
	"lstrip": func(s string, arg func(int) *exec.Value) any {
		return strip(s, arg(0), strings.TrimLeft, strings.TrimLeftFunc)
	},
	"rstrip": func(s string, arg func(int) *exec.Value) any {
		return strip(s, arg(0), strings.TrimRight, strings.TrimRightFunc)
	},
	"upper":      func(s string, _ func(int) *exec.Value) any { return strings.ToUpper(s) },
	"lower":      func(s string, _ func(int) *exec.Value) any { return strings.ToLower(s) },
	"capitalize": func(s string, _ func(int) *exec.Value) any { return capitalize(s) },
	"title":      func(s string, _ func(int) *exec.Value) any { return title(s) },
	"startswith": func(s string, arg func(int) *exec.Value) any { return anyOf(arg(0), s, strings.HasPrefix) },
	"endswith":   func(s string, arg func(int) *exec.Value) any { return anyOf(arg(0), s, strings.HasSuffix) },
	"find": func(s string, arg func(int) *exec.Value) any {
		return runesBefore(s, strings.Index(s, arg(0).String()))
	},
	"rfind": func(s string, arg func(int) *exec.Value) any {
		return runesBefore(s, strings.LastIndex(s, arg(0).String()))
	},
	"count":        func(s string, arg func(int) *exec.Value) any { return strings.Count(s, arg(0).String()) },
	"removeprefix": func(s string, arg func(int) *exec.Value) any { return strings.TrimPrefix(s, arg(0).String()) },
	"removesuffix": func(s string, arg func(int) *exec.Value) any { return strings.TrimSuffix(s, arg(0).String()) },
	"split":        func(s string, arg func(int) *exec.Value) any { return split(s, arg(0), arg(1), false) },
	"rsplit":       func(s string, arg func(int) *exec.Value) any { return split(s, arg(0), arg(1), true) },
	"splitlines":   func(s string, _ func(int) *exec.Value) any { return splitLines(s) },
	"isdigit":      func(s string, _ func(int) *exec.Value) any { return every(s, unicode.IsDigit) },
	"isalpha":      func(s string, _ func(int) *exec.Value) any { return every(s, unicode.IsLetter) },
	"isspace":      func(s string, _ func(int) *exec.Value) any { return every(s, unicode.IsSpace) },
	"isupper":      func(s string, _ func(int) *exec.Value) any { return s != strings.ToLower(s) && s == strings.ToUpper(s) },
	"islower":      func(s string, _ func(int) *exec.Value) any { return s != strings.ToUpper(s) && s == strings.ToLower(s) },
}

// method calls a method of a text or a dict.
func method(b *budget, self *exec.Value, name string, args []*exec.Value, named map[string]*exec.Value) *exec.Value {
	if self.IsError() {
		return self
	}
	arg := func(i int) *exec.Value {
		if i < len(args) {
			return args[i]
		}
		return exec.AsValue(nil)
	}
	switch {
	case self.IsString() && name == "join":
		return joined(b, arg(0), self.String())
	case self.IsString() && name == "replace":
		return replaced(b, self.String(), arg(0).String(), arg(1).String(), arg(2))
	case self.IsString() && textMethods[name] != nil:
		if v, ok := named["maxsplit"]; ok {
			args = []*exec.Value{arg(0), v}
		}
		if over := b.charge(len(self.String())); over != nil {
			return over
		}
		return exec.AsValue(textMethods[name](self.String(), arg))
	case self.IsDict():
		return dictMethod(b, self, name, arg)
	case self.IsList() && name == "index" || self.IsString() && name == "index":
		return indexOf(b, self, arg(0))
	}
	return b.fail("method %.40q is not known for %.40T", name, self.Interface())
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

// indexOf is the index of a value in a list or of a text in a text; it must occur.
func indexOf(b *budget, self, want *exec.Value) *exec.Value {
	at := -1
	if self.IsString() {
		at = runesBefore(self.String(), strings.Index(self.String(), want.String()))
	} else {
		list := items(self)
		if over := b.charge(16 * len(list)); over != nil {
			return over
		}
		at = slices.IndexFunc(list, func(x any) bool { return exec.AsValue(x).EqualValueTo(want) })
	}
	if at < 0 {
		return b.fail("index: %.80q is not there", want.String())
	}
	return exec.AsValue(at)
}

func strip(s string, cut *exec.Value, set func(string, string) string, space func(string, func(rune) bool) string) string {
	if cut.IsString() {
		return set(s, cut.String())
	}
	return space(s, unicode.IsSpace)
}

func anyOf(v *exec.Value, s string, has func(string, string) bool) bool {
	if v.IsString() {
		return has(s, v.String())
	}
	for _, x := range items(v) {
		if t, ok := x.(string); ok && has(s, t) {
			return true
		}
	}
	return false
}

func runesBefore(s string, at int) int {
	if at < 0 {
		return -1
	}
	return len([]rune(s[:at]))
}

func capitalize(s string) string {
	r := []rune(strings.ToLower(s))
	if len(r) > 0 {
		r[0] = unicode.ToUpper(r[0])
	}
	return string(r)
}

func title(s string) string {
	inWord := false
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) {
			inWord = false
			return r
		}
		if inWord {
			return unicode.ToLower(r)
		}
		inWord = true
		return unicode.ToTitle(r)
	}, s)
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
	case !sep.IsString() || sep.String() == "":
		parts = strings.Fields(s)
		if n >= 0 && len(parts) > n+1 && !fromRight {
			rest := s
			for _, p := range parts[:n] {
				rest = strings.TrimLeftFunc(rest, unicode.IsSpace)[len(p):]
			}
			parts = append(parts[:n:n], strings.TrimLeftFunc(rest, unicode.IsSpace))
		}
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

func splitLines(s string) []any {
	list := []any{}
	for line := range strings.Lines(strings.ReplaceAll(s, "\r\n", "\n")) {
		list = append(list, strings.TrimSuffix(line, "\n"))
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
