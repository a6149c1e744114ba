package chat

import (
	"math"
	"slices"
	"strings"
)

// attribute is v.name: an attribute, or else an item.
func (r *run) attribute(v any, name string) any {
	if x, ok := r.attributeOf(v, name); ok {
		return x
	}
	if d, ok := v.(*dict); ok {
		if x, ok := d.get(name); ok {
			return x
		}
	}
	return r.missing(kindOf(v) + " has no attribute '" + name + "'")
}

// attributeOf is an attribute of an object, as Python's getattr.
func (r *run) attributeOf(v any, name string) (any, bool) {
	switch v := v.(type) {
	case *undefined:
		v.fail()
	case *namespace:
		return v.attributes.get(name)
	case *loop:
		return v.attribute(r, name)
	case *function:
		if v.macro != nil {
			return v.macro.attribute(name)
		}
	case tuple:
		if at := slices.Index([]string{"grouper", "list"}, name); at >= 0 && len(v) == 2 &&
			is[list](v[1]) { // of groupby
			return v[at], true
		}
	}
	if strings.HasPrefix(name, "__") || isMutating(v, name) {
		return r.missing("attribute '" + name + "' of " + kindOf(v) + " is not safe"), true
	}
	return boundMethod(v, name)
}

// item is v[key]: an item, or else an attribute.
func (r *run) item(v, key any) any {
	r.beforeHash(key)
	if s, ok := isText(v); ok {
		r.take(len(s))
	}
	switch v := v.(type) {
	case *undefined:
		v.fail()
	case *dict:
		if x, ok := v.get(key); ok {
			return x
		}
	default:
		i, ok := isInt(key)
		n, sized := length(v)
		if !ok || !sized {
			break
		}
		if at := fromEnd(i, n); at >= 0 {
			if x, ok := nth(v, at); ok {
				return x
			}
		}
	}
	if name, ok := isText(key); ok {
		if x, ok := r.attributeOf(v, name); ok {
			return x
		}
	}
	return r.missing(kindOf(v) + " has no item " + short(key))
}

// short is the beginning of a value's repr.
func short(v any) string {
	s, ok := isText(v)
	switch {
	case !ok && printed(v) > 1000:
		return kindOf(v)
	case !ok:
		s = repr(v)
	case len(s) > 40:
		return PythonQuote(strings.ToValidUTF8(s[:40], "")) + "…"
	default:
		s = PythonQuote(s)
	}
	return s
}

// nth is an item of a sequence by its place.
func nth(v any, i int) (any, bool) {
	if s, ok := isText(v); ok {
		for _, c := range s {
			if i--; i < 0 {
				return string(c), true
			}
		}
	}
	if list, _, ok := seqItems(v); ok {
		return list[i], true
	}
	if n, ok := v.(*numbers); ok {
		return n.start + i*n.step, true
	}
	return nil, false
}

// slice is v[from:to:step].
func (r *run) slice(v any, at [3]any) any {
	if u, ok := v.(*undefined); ok {
		u.fail()
	}
	step := 1
	for i, x := range at {
		n, ok := isInt(x)
		if x != nil && !ok || i == 2 && ok && n == 0 {
			fail("a slice by %s", short(x))
		}
		if i == 2 && ok {
			step = n
		}
	}
	switch v := v.(type) {
	case string, markup:
		r.take(len(str(v)))
		return string(sliced([]rune(str(v)), at[0], at[1], step))
	case list:
		return sliced(v, at[0], at[1], step)
	case tuple:
		return sliced(v, at[0], at[1], step)
	case *numbers:
		out := sliced(each(v), at[0], at[1], step)
		first := 0
		if len(out) > 0 {
			first = out[0].(int) // numbers are integers
		}
		return &numbers{first, first + len(out)*step*v.step, step * v.step, len(out)}
	}
	fail("%s has no slices", kindOf(v))
	return nil
}

// sliced takes every step-th item between two bounds, each of which may be None.
func sliced[S ~[]T, T any](of S, from, to any, step int) S {
	n := len(of)
	low, high := 0, n
	if step < 0 {
		low, high = -1, n-1
	}
	bound := func(v any, otherwise int) int {
		i, ok := isInt(v)
		if !ok {
			return otherwise
		}
		if i < 0 {
			i += n
		}
		return min(max(i, low), high)
	}
	out := S{}
	if step > 0 {
		for i, end := bound(from, low), bound(to, high); i < end; i += min(step, math.MaxInt-n) {
			out = append(out, of[i])
		}
		return out
	}
	for i, end := bound(from, high), bound(to, low); i > end; i += max(step, n-math.MaxInt) {
		out = append(out, of[i])
	}
	return out
}
