package chat

import (
	"slices"

	"github.com/nikolalohinski/gonja/v2/exec"
)

// items returns the elements of a list, the keys of a dict, or the characters of a text.
func items(v *exec.Value) []any {
	var list []any
	if v.IsString() { // gonja would give bytes
		for _, r := range v.String() {
			list = append(list, string(r))
		}
		return list
	}
	v.Iterate(func(_, _ int, key, _ *exec.Value) bool {
		list = append(list, key.Interface())
		return true
	}, func() {})
	return list
}

// index makes a text or a list one of which items are taken by Python's rules.
func index(e *exec.Evaluator, in *exec.Value, _ *exec.VarArgs) *exec.Value {
	if in.IsString() {
		if over := budgetOf(e).charge(len(in.String())); over != nil {
			return over
		}
	}
	if in.IsString() || in.IsList() {
		return exec.AsValue(indexed{in})
	}
	return in
}

// indexed is a text or a list whose items are had by their index, which may be negative. gonja takes bytes of a text, and
// does not find the first item by its negative index.
type indexed struct{ of *exec.Value }

// GetItem is called by gonja.
func (x indexed) GetItem(key any) (*exec.Value, bool) {
	i, ok := key.(int)
	if !ok {
		return exec.AsValue(nil), false
	}
	if !x.of.IsString() {
		if i = fromEnd(i, x.of.Len()); i < 0 {
			return exec.AsValue(nil), false
		}
		return x.of.GetItem(i)
	}
	text := []rune(x.of.String())
	if i = fromEnd(i, len(text)); i < 0 {
		return exec.AsValue(nil), false
	}
	return exec.AsValue(string(text[i])), true
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

// reversed is a text or a list from its end to its beginning.
func reversed(e *exec.Evaluator, in *exec.Value, _ *exec.VarArgs) *exec.Value {
	b := budgetOf(e)
	if in.IsError() {
		return in
	}
	if n := in.Len(); n > maxItems {
		return b.fail("reverses %d items, at most %d are allowed", n, maxItems)
	}
	list := items(in)
	if over := b.charge(16 * len(list)); over != nil {
		return over
	}
	slices.Reverse(list)
	if in.IsString() {
		return joined(b, exec.AsValue(list), "")
	}
	return exec.AsValue(list)
}
