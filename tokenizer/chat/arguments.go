package chat

import (
	"slices"
)

// bind puts a function's arguments into the order of its parameters, with nil for those left out; need must be given. A
// parameter without a name is taken by position only.
func (p params) bind(function string, need int, names ...string) []any {
	if len(p.args) > len(names) {
		fail("%s takes at most %d arguments, got %d", function, len(names), len(p.args))
	}
	out := make([]any, len(names))
	given := len(p.args)
	copy(out, p.args)
	for _, name := range p.names {
		i := slices.Index(names, name)
		if name == "" || i < 0 || i < len(p.args) {
			fail("%s takes no argument %.40q here", function, name)
		}
		if i < need {
			given++
		}
		out[i] = p.named[name]
	}
	if given < need {
		fail("%s needs %d arguments, got %d", function, need, given)
	}
	return out
}

// textOf is an argument that must be a text.
func textOf(function string, v any) string {
	s, ok := isText(v)
	if !ok {
		fail("%s needs a text, not %s", function, kindOf(v))
	}
	return s
}

// intOf is an argument that must be an integer; otherwise if it is None.
func intOf(function string, v any, otherwise int) int {
	if v == nil {
		return otherwise
	}
	n, ok := isInt(v)
	if !ok {
		fail("%s needs an integer, not %s", function, kindOf(v))
	}
	return n
}

// window is the part of s between two positions as str.find takes them, and the characters before it; ok is false if
// the part begins after its end.
func window(s string, from, to any) (part string, before int, ok bool) {
	if from == nil && to == nil {
		return s, 0, true
	}
	r := []rune(s)
	position := func(v any, otherwise int) int {
		n := intOf("a bound", v, otherwise)
		if n < 0 {
			n = max(n+len(r), 0)
		}
		return n
	}
	first, end := position(from, 0), min(position(to, len(r)), len(r))
	if first > end {
		return "", 0, false
	}
	return string(r[first:end]), first, true
}

// fromEnd is the place of index i among n items, -1 if there is none.
func fromEnd(i, n int) int {
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		return -1
	}
	return i
}
