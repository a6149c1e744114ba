package chat

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// A value of a template is nil (None), a bool, an int, a float64, a string or one of these. No value but a namespace
// and a generator changes.
type (
	// undefined is an unknown name, or an item or attribute that is not there. Unlike None it prints nothing, and most
	// uses of it are errors; in a text template nearly all.
	undefined struct {
		why    string
		strict bool
	}
	markup string // a text that is escaped for HTML
	list   []any
	tuple  []any
	dict   struct {
		keys, values []any
		at           map[any]int // by the hash of the key
	}
	numbers   struct{ start, stop, step, n int } // of range
	generator struct {                           // items that can be had once
		rest []any
		late string // an error, once they are had
	}
	view struct { // of a dict
		kind string
		list
	}
	namespace struct{ attributes *dict }
	function  struct {
		name  string
		macro *macroDef // nil for others
		call  func(r *run, p params) any
	}
)

// failure is an error that ends a rendering, or the reading of a template.
type failure struct{ error }

// fail panics with a failure, which Parse and Render recover: nearly every step of a rendering may fail.
func fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// isText gives the text of a text or of markup.
func isText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case markup:
		return string(v), true
	}
	return "", false
}

// isNumber gives the value of a number or a bool.
func isNumber(v any) (float64, bool) {
	if n, ok := isInt(v); ok {
		return float64(n), true
	}
	f, ok := v.(float64)
	return f, ok
}

// isInt gives the value of an integer or a bool.
func isInt(v any) (int, bool) {
	switch v := v.(type) {
	case int:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// use fails where an undefined value of a text template is used.
func (u *undefined) use() {
	if u.strict {
		u.fail()
	}
}

func (u *undefined) fail() { fail("%s", u.why) }

// truth is Python's bool.
func truth(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case int:
		return v != 0
	case float64:
		return v != 0
	case string: // length would count its characters
		return v != ""
	case markup:
		return v != ""
	case *undefined:
		v.use()
		return false
	}
	n, ok := length(v)
	return !ok || n > 0
}

// length is Python's len, if the value has one.
func length(v any) (int, bool) {
	switch v := v.(type) {
	case string:
		return utf8.RuneCountInString(v), true
	case markup:
		return utf8.RuneCountInString(string(v)), true
	case list:
		return len(v), true
	case tuple:
		return len(v), true
	case *dict:
		return len(v.keys), true
	case *numbers:
		return v.n, true
	case *view:
		return len(v.list), true
	case *loop:
		return len(v.items), true
	case *undefined:
		v.use()
		return 0, true
	}
	return 0, false
}

// items are what an iteration goes over, if the value has any. The items of a generator are gone then.
func items(v any) ([]any, bool) {
	switch v := v.(type) {
	case string:
		return characters(v), true
	case markup:
		return characters(string(v)), true
	case list:
		return v, true
	case tuple:
		return v, true
	case *dict:
		return v.keys, true
	case *view:
		return v.list, true
	case *numbers:
		out := make([]any, v.n)
		for i := range out {
			out[i] = v.start + i*v.step
		}
		return out, true
	case *generator:
		if v.late != "" {
			fail("%s", v.late)
		}
		out := v.rest
		v.rest = nil
		return out, true
	case *undefined:
		v.use()
		return nil, true
	}
	return nil, false
}

// characters are those of a text, unless their list would be too large.
func characters(s string) []any {
	n := utf8.RuneCountInString(s)
	if n > maxListed {
		fail("%w", errLarge)
	}
	out := make([]any, 0, n)
	for _, r := range s {
		out = append(out, string(r))
	}
	return out
}

// each is items of a value that must have some.
func each(v any) []any {
	out, ok := items(v)
	if !ok {
		fail("%s has no items", kindOf(v))
	}
	return out
}

// kindOf is the name of a value's type in Python.
func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return "a bool"
	case int:
		return "an int"
	case float64:
		return "a float"
	case string, markup:
		return "a text"
	case list:
		return "a list"
	case tuple:
		return "a tuple"
	case *dict:
		return "a dict"
	case *undefined:
		return "an undefined value"
	case *numbers:
		return "a range"
	case *generator:
		return "a generator"
	case *view:
		return v.kind
	case *namespace:
		return "a namespace"
	case *loop:
		return "loop"
	}
	return "a function"
}

// seqItems are the items of a list or a tuple.
func seqItems(v any) (out []any, isTuple, ok bool) {
	switch v := v.(type) {
	case list:
		return v, false, true
	case tuple:
		return v, true, true
	}
	return nil, false, false
}

// equal is Python's ==, for which True is 1.
func equal(x, y any) bool {
	for _, v := range []any{x, y} {
		if u, ok := v.(*undefined); ok {
			u.use()
		}
	}
	if a, ok := isText(x); ok {
		b, ok := isText(y)
		return ok && a == b
	}
	if a, ok := isInt(x); ok {
		if b, ok := isInt(y); ok {
			return a == b
		}
	}
	if a, ok := isNumber(x); ok {
		b, ok := isNumber(y)
		return ok && a == b
	}
	if a, isTuple, ok := seqItems(x); ok {
		b, other, ok := seqItems(y)
		return ok && isTuple == other && equalItems(a, b)
	}
	switch x := x.(type) {
	case nil:
		return y == nil
	case *undefined:
		_, ok := y.(*undefined)
		return ok
	case *dict:
		d, ok := y.(*dict)
		return ok && x.equal(d)
	case *numbers:
		n, ok := y.(*numbers)
		return ok && n.n == x.n && (x.n == 0 || x.start == n.start && (x.n == 1 || x.step == n.step))
	case *view:
		v, ok := y.(*view)
		return ok && x.kind == v.kind && equalItems(x.list, v.list)
	}
	return same(x, y)
}

func equalItems(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// same is Python's is, as far as values have an identity here.
func same(x, y any) bool {
	if a, _, ok := seqItems(x); ok {
		b, _, ok := seqItems(y)
		return ok && len(a) == len(b) && len(a) > 0 && &a[0] == &b[0]
	}
	if _, _, ok := seqItems(y); ok {
		return false
	}
	return x == y
}

// compare orders two numbers, two texts or two lists; Python has no order for other pairs.
func compare(x, y any) int {
	if a, ok := isText(x); ok {
		if b, ok := isText(y); ok {
			return strings.Compare(a, b)
		}
	}
	if a, ok := isInt(x); ok {
		if b, ok := isInt(y); ok {
			return cmp.Compare(a, b)
		}
	}
	if a, ok := isNumber(x); ok {
		if b, ok := isNumber(y); ok {
			return cmp.Compare(a, b)
		}
	}
	if a, isTuple, ok := seqItems(x); ok {
		if b, other, ok := seqItems(y); ok && isTuple == other {
			for i := range min(len(a), len(b)) {
				if !equal(a[i], b[i]) {
					return compare(a[i], b[i])
				}
			}
			return cmp.Compare(len(a), len(b))
		}
	}
	for _, v := range []any{x, y} {
		if u, ok := v.(*undefined); ok {
			u.fail()
		}
	}
	fail("there is no order of %s and %s", kindOf(x), kindOf(y))
	return 0
}

// orders are the comparisons, by the result of compare.
var orders = map[string]func(int) bool{
	"<": func(c int) bool { return c < 0 }, "<=": func(c int) bool { return c <= 0 },
	">": func(c int) bool { return c > 0 }, ">=": func(c int) bool { return c >= 0 },
}

// ordered reports whether x op y; nothing has an order with NaN.
func inOrder(op string, x, y any) bool {
	for _, v := range []any{x, y} {
		if f, ok := v.(float64); ok && math.IsNaN(f) {
			compare(x, y) // fails for what is not a number
			return false
		}
	}
	return orders[op](compare(x, y))
}
