package chat

// test is one that a template can apply with is: how many arguments it takes, and what it asks.
type test struct {
	args  int
	holds func(r *run, v, arg any) bool
}

// ask is a test without arguments.
func ask(f func(v any) bool) test { return test{holds: func(_ *run, v, _ any) bool { return f(v) }} }

// is is the test of a type.
func is[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

// tests are all tests.
var tests = map[string]test{
	"defined":   ask(func(v any) bool { return !is[*undefined](v) }),
	"undefined": ask(is[*undefined]),
	"none":      ask(func(v any) bool { return v == nil }),
	"boolean":   ask(is[bool]),
	"true":      ask(func(v any) bool { return same(v, true) }),
	"false":     ask(func(v any) bool { return same(v, false) }),
	"integer":   ask(is[int]),
	"float":     ask(is[float64]),
	"mapping":   ask(is[*dict]),
	"callable":  ask(func(v any) bool { return is[*function](v) || is[*undefined](v) || is[*loop](v) }),
	"escaped":   ask(is[markup]),
	"number": ask(func(v any) bool {
		_, ok := isNumber(v)
		return ok
	}),
	"string": ask(func(v any) bool {
		_, ok := isText(v)
		return ok
	}),
	"sequence": ask(isSequence),
	"iterable": ask(func(v any) bool {
		if u, ok := v.(*undefined); ok {
			u.use()
		}
		_, ok := length(v)
		return ok || is[*generator](v)
	}),
	"lower":       ask(func(v any) bool { return allCased(str(v), isLower) }),
	"upper":       ask(func(v any) bool { return allCased(str(v), isUpper) }),
	"odd":         {holds: func(r *run, v, _ any) bool { return equal(r.arithmetic("%", v, 2), 1) }},
	"even":        {holds: func(r *run, v, _ any) bool { return equal(r.arithmetic("%", v, 2), 0) }},
	"divisibleby": {1, func(r *run, v, by any) bool { return equal(r.arithmetic("%", v, by), 0) }},
	"sameas":      {1, func(_ *run, v, other any) bool { return same(v, other) }},
	"filter":      ask(func(v any) bool { return isFilter(lookup(v)) }),
	"test":        ask(func(v any) bool { return isTest(lookup(v)) }),
}

// lookup is a name that is looked up, "" for a value that is none.
func lookup(v any) string {
	if u, ok := v.(*undefined); ok {
		u.use()
	}
	if _, ok := hash(v); !ok {
		fail("%s cannot be a name", kindOf(v))
	}
	s, _ := isText(v)
	return s
}

// isTest and isFilter look up names; the tables refer to them.
var isTest, isFilter func(name string) bool

func init() {
	for op, names := range map[string][]string{"==": {"==", "eq", "equalto"}, "!=": {"!=", "ne"},
		"<": {"<", "lt", "lessthan"}, "<=": {"<=", "le"},
		">": {">", "gt", "greaterthan"}, ">=": {">=", "ge"}, "in": {"in"}} {
		for _, name := range names {
			tests[name] = test{1, func(r *run, v, other any) bool { return r.compares(op, v, other) }}
		}
	}
	isTest = func(name string) bool {
		_, ok := tests[name]
		return ok
	}
	isFilter = func(name string) bool { return filters[name] != nil }
}

// isSequence is jinja2's: what has a length and items by their keys.
func isSequence(v any) bool {
	switch v := v.(type) {
	case *undefined:
		return !v.strict
	case *view, *loop:
		return false
	}
	_, ok := length(v)
	return ok
}
