package chat

import "strings"

// run is one rendering.
type run struct {
	*budget
	strict bool // of a text template
}

// scope holds variables. Those of the scopes around it can be read.
type scope struct {
	vars map[string]any
	up   *scope
}

func (s *scope) inner() *scope { return &scope{vars: map[string]any{}, up: s} }

func (s *scope) get(name string) (any, bool) {
	for ; s != nil; s = s.up {
		if v, ok := s.vars[name]; ok {
			return v, true
		}
	}
	return nil, false
}

// missing is an undefined value.
func (r *run) missing(why string) any { return &undefined{why: why, strict: r.strict} }

func (n *constant) eval(*run, *scope) any { return n.value }

func (n *nameExpr) eval(r *run, s *scope) any {
	if v, ok := s.get(n.name); ok {
		return v
	}
	return r.missing("'" + n.name + "' is undefined")
}

func evalAll(r *run, s *scope, list []expr) []any {
	out := make([]any, len(list))
	for i, e := range list {
		out[i] = e.eval(r, s)
	}
	return out
}

func (n *listExpr) eval(r *run, s *scope) any { return r.made(list(evalAll(r, s, n.items))) }

func (n *tupleExpr) eval(r *run, s *scope) any { return r.made(tuple(evalAll(r, s, n.items))) }

func (n *dictExpr) eval(r *run, s *scope) any {
	d := newDict()
	for i, k := range n.keys {
		key := k.eval(r, s)
		r.beforeHash(key)
		d.set(key, n.values[i].eval(r, s))
	}
	return r.made(d)
}

func (n *notExpr) eval(r *run, s *scope) any { return !truth(n.of.eval(r, s)) }

func (n *signExpr) eval(r *run, s *scope) any {
	switch v := n.of.eval(r, s).(type) {
	case float64:
		if n.op == "-" {
			return -v
		}
		return v
	case *undefined:
		v.fail()
	default:
		i, ok := isInt(v)
		if !ok {
			fail("operator %s does not go with %s", n.op, kindOf(v))
		}
		if n.op == "-" {
			return integers("-", 0, i)
		}
		return i
	}
	return nil
}

func (n *arithExpr) eval(r *run, s *scope) any {
	x := n.x.eval(r, s)
	return r.arithmetic(n.op, x, n.y.eval(r, s))
}

func (n *concatExpr) eval(r *run, s *scope) any {
	parts := evalAll(r, s, n.parts)
	size := 0
	for _, v := range parts {
		size += printed(v)
	}
	r.take(size)
	var out strings.Builder
	for _, v := range parts {
		out.WriteString(str(v))
	}
	return out.String()
}

func (n *compareExpr) eval(r *run, s *scope) any {
	x := n.first.eval(r, s)
	for i, op := range n.ops {
		y := n.rest[i].eval(r, s)
		if !r.compares(op, x, y) {
			return false
		}
		x = y
	}
	return true
}

// compares is x op y. Large values take long to compare.
func (r *run) compares(op string, x, y any) bool {
	if _, ok := length(y); ok {
		r.checkTime()
	}
	switch op {
	case "==":
		return equal(x, y)
	case "!=":
		return !equal(x, y)
	case "in":
		return contains(y, x)
	case "not in":
		return !contains(y, x)
	}
	return inOrder(op, x, y)
}

// contains is Python's x in v.
func contains(v, x any) bool {
	if s, ok := isText(v); ok {
		part, ok := isText(x)
		if !ok {
			fail("in: %s cannot be in a text", kindOf(x))
		}
		return strings.Contains(s, part)
	}
	if d, ok := v.(*dict); ok {
		if _, ok := hash(x); !ok {
			fail("in: %s cannot be a key", kindOf(x))
		}
		_, ok := d.get(x)
		return ok
	}
	all := each(v)
	for i, y := range all {
		if same(x, y) || equal(x, y) {
			if g, ok := v.(*generator); ok {
				g.rest = all[i+1:]
			}
			return true
		}
	}
	return false
}

func (n *logicExpr) eval(r *run, s *scope) any {
	if x := n.x.eval(r, s); truth(x) == n.or {
		return x
	}
	return n.y.eval(r, s)
}

func (n *condExpr) eval(r *run, s *scope) any {
	switch {
	case truth(n.test.eval(r, s)):
		return n.yes.eval(r, s)
	case n.no == nil:
		return &undefined{why: "an inline if without else, whose condition is false"}
	}
	return n.no.eval(r, s)
}

func (n *attrExpr) eval(r *run, s *scope) any { return r.attribute(n.of.eval(r, s), n.name) }

func (n *itemExpr) eval(r *run, s *scope) any {
	of := n.of.eval(r, s)
	return r.item(of, n.key.eval(r, s))
}

func (n *sliceExpr) eval(r *run, s *scope) any {
	of := n.of.eval(r, s)
	var at [3]any
	for i, e := range []expr{n.from, n.to, n.step} {
		if e != nil {
			at[i] = e.eval(r, s)
		}
	}
	return r.made(r.slice(of, at))
}

// params are the arguments of a call.
type params struct {
	args  []any
	names []string // of the named ones, in the order in which they are written
	named map[string]any
}

func (a *argExprs) eval(r *run, s *scope) params {
	p := params{args: evalAll(r, s, a.args), named: map[string]any{}}
	add := func(name string, v any) {
		if _, twice := p.named[name]; twice {
			fail("argument %.40q is given twice", name)
		}
		p.names, p.named[name] = append(p.names, name), v
	}
	if a.star != nil {
		p.args = append(p.args, each(a.star.eval(r, s))...)
	}
	for i, name := range a.names {
		add(name, a.named[i].eval(r, s))
	}
	if a.keys != nil {
		d, ok := a.keys.eval(r, s).(*dict)
		if !ok {
			fail("** needs a dict")
		}
		for i, k := range d.keys {
			add(str(k), d.values[i])
		}
	}
	return p
}

func (n *callExpr) eval(r *run, s *scope) any {
	f := n.f.eval(r, s)
	return r.call(f, n.args.eval(r, s))
}

// call calls a function.
func (r *run) call(f any, p params) any {
	switch f := f.(type) {
	case *function:
		r.checkTime() // a small result may take long
		return r.made(f.call(r, p))
	case *undefined:
		f.fail()
	}
	fail("%s is not callable", kindOf(f))
	return nil
}

func (n *filterExpr) eval(r *run, s *scope) any {
	return r.filter(n.name, n.of.eval(r, s), n.args.eval(r, s))
}

// filter applies a filter.
func (r *run) filter(name string, v any, p params) any {
	r.checkTime() // a small result may take long
	f := filters[name]
	if f == nil {
		fail("filter %.40q is not supported", name)
	}
	return r.made(f(r, v, p))
}

func (n *testExpr) eval(r *run, s *scope) any {
	of := n.of.eval(r, s)
	return r.test(n.name, of, n.args.eval(r, s))
}

// test applies a test.
func (r *run) test(name string, v any, p params) bool {
	r.checkTime() // some look at a whole text
	t, ok := tests[name]
	if !ok {
		fail("test %.40q is not supported", name)
	}
	if len(p.args) != t.args || len(p.named) > 0 {
		fail("test %s takes %d arguments, got %d", name, t.args, len(p.args)+len(p.named))
	}
	var arg any
	if t.args > 0 {
		arg = p.args[0]
	}
	return t.holds(r, v, arg)
}
