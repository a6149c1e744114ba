package chat

import "strings"

// execAll runs statements up to one that asks something of the loop.
func execAll(r *run, s *scope, out *boundedText, list []stmt) signal {
	for _, x := range list {
		if sig := x.exec(r, s, out); sig != goOn {
			return sig
		}
	}
	return goOn
}

// text runs statements and returns what they print.
func text(r *run, s *scope, list []stmt) string {
	out := &boundedText{left: maxValue}
	execAll(r, s, out, list)
	return out.String()
}

func (n *dataStmt) exec(_ *run, _ *scope, out *boundedText) signal {
	out.print(n.text)
	return goOn
}

func (n *printStmt) exec(r *run, s *scope, out *boundedText) signal {
	v := r.made(n.value.eval(r, s))
	out.print(str(v))
	return goOn
}

func (n *signalStmt) exec(*run, *scope, *boundedText) signal { return n.signal }

func (n *ifStmt) exec(r *run, s *scope, out *boundedText) signal {
	r.checkTime()
	for i, t := range n.tests {
		if truth(t.eval(r, s)) {
			return execAll(r, s, out, n.bodies[i])
		}
	}
	if len(n.bodies) > len(n.tests) {
		return execAll(r, s, out, n.bodies[len(n.tests)])
	}
	return goOn
}

func (n *forStmt) exec(r *run, s *scope, out *boundedText) signal {
	all := r.iterable(n.over.eval(r, s))
	l := &loop{}
	for _, v := range all {
		if n.test != nil {
			r.take(0)
			in := s.inner()
			n.target.assign(r, in, v)
			if !truth(n.test.eval(r, in)) {
				continue
			}
		}
		l.items = append(l.items, v)
	}
	ended := false // an iteration, without break or continue
	for l.at = range l.items {
		r.take(0)
		in := s.inner()
		in.vars["loop"] = l
		n.target.assign(r, in, l.items[l.at])
		sig := execAll(r, in, out, n.body)
		if sig == breakLoop {
			break
		}
		ended = ended || sig == goOn
	}
	if !ended { // as in jinja2, not only if there are no items
		return execAll(r, s.inner(), out, n.otherwise)
	}
	return goOn
}

// iterable bounds the iterations of a loop before it begins.
func (r *run) iterable(v any) []any {
	if n, ok := length(v); ok && n > maxItems {
		fail("loops over %d items, at most %d are allowed", n, maxItems)
	}
	all := each(v)
	r.steps -= len(all) / 4
	r.take(64 * len(all)) // the memory of the scopes
	return all
}

// assign gives a value to a target.
func (t *target) assign(r *run, s *scope, v any) {
	switch {
	case t.many:
		parts := each(v)
		if len(parts) != len(t.parts) {
			fail("%d values for %d names", len(parts), len(t.parts))
		}
		for i, p := range t.parts {
			p.assign(r, s, parts[i])
		}
	case t.attribute == "":
		s.vars[t.name] = v
	default:
		of, _ := s.get(t.name)
		ns, ok := of.(*namespace)
		if !ok {
			fail("set: %s is not a namespace", t.name)
		}
		r.checkTime()
		left := maxValue
		if err := measure(v, 1, &left); err != nil { // one level down: a namespace must not contain a namespace
			fail("set %s.%s: %w", t.name, t.attribute, err)
		}
		ns.attributes.set(t.attribute, v)
	}
}

func (n *setStmt) exec(r *run, s *scope, _ *boundedText) signal {
	var v any
	if n.value != nil {
		v = n.value.eval(r, s)
	} else {
		v = r.made(text(r, s.inner(), n.body))
		if n.filter != nil {
			v = applied(r, s, n.filter, v)
		}
	}
	n.target.assign(r, s, v)
	return goOn
}

// applied is a chain of filters of a block's text.
func applied(r *run, s *scope, e expr, v any) any {
	f := e.(*filterExpr) // the parser makes no others
	if f.of != nil {
		v = applied(r, s, f.of, v)
	}
	return r.filter(f.name, v, f.args.eval(r, s))
}

func (n *filterStmt) exec(r *run, s *scope, out *boundedText) signal {
	out.print(str(applied(r, s, n.filter, text(r, s.inner(), n.body))))
	return goOn
}

func (n *scopeStmt) exec(r *run, s *scope, out *boundedText) signal {
	in := s.inner()
	for i, t := range n.targets {
		t.assign(r, in, n.values[i].eval(r, s))
	}
	return execAll(r, in, out, n.body)
}

func (n *macroStmt) exec(_ *run, s *scope, _ *boundedText) signal {
	s.vars[n.macro.name] = n.macro.bind(s)
	return goOn
}

func (n *callStmt) exec(r *run, s *scope, out *boundedText) signal {
	p := n.call.args.eval(r, s)
	p.names, p.named["caller"] = append(p.names, "caller"), n.caller.bind(s)
	out.print(str(r.call(n.call.f.eval(r, s), p)))
	return goOn
}

// bind makes a function of a macro in the scope in which it is written.
func (m *macroDef) bind(s *scope) *function {
	return &function{name: m.name, macro: m, call: func(r *run, p params) any {
		r.take(0)
		defer r.enter()()
		return text(r, m.scope(r, s, p), m.body)
	}}
}

// attribute is what a template can ask of a macro.
func (m *macroDef) attribute(name string) (any, bool) {
	switch name {
	case "name":
		if m.anonymous {
			return nil, true
		}
		return m.name, true
	case "arguments":
		out := tuple{}
		for _, p := range m.params {
			out = append(out, p)
		}
		return out, true
	case "catch_kwargs":
		return m.uses["kwargs"], true
	case "catch_varargs":
		return m.uses["varargs"], true
	case "caller":
		return m.uses["caller"], true
	}
	return nil, false
}

// scope holds a macro's parameters.
func (m *macroDef) scope(r *run, s *scope, p params) *scope {
	in := s.inner()
	var left []int // those that are not given
	for i, name := range m.params {
		v, named := p.named[name]
		switch {
		case i < len(p.args):
			if v = p.args[i]; named {
				fail("macro %s: argument %.40q is given twice", m.name, name)
			}
		case !named:
			v = r.missing("parameter '" + name + "' was not provided")
			left = append(left, i)
		}
		in.vars[name] = v
	}
	for _, i := range left { // a default sees all parameters
		if d := i - len(m.params) + len(m.defaults); d >= 0 {
			in.vars[m.params[i]] = m.defaults[d].eval(r, in)
		}
	}
	m.others(r, in, p)
	return in
}

// others are arguments that no parameter takes.
func (m *macroDef) others(r *run, in *scope, p params) {
	var rest tuple
	if len(p.args) > len(m.params) {
		rest = p.args[len(m.params):]
	}
	named := newDict()
	for _, name := range p.names {
		_, taken := in.vars[name]
		switch {
		case name == "caller" && m.uses[name]:
			in.vars[name] = p.named[name]
		case !taken:
			named.set(name, p.named[name])
		}
	}
	switch {
	case len(rest) > 0 && !m.uses["varargs"]:
		fail("macro %s takes at most %d arguments, got %d", m.name, len(m.params), len(p.args))
	case len(named.keys) > 0 && !m.uses["kwargs"]:
		fail("macro %s takes no argument %s", m.name, strings.TrimSpace(short(named.keys[0])))
	}
	if m.uses["varargs"] {
		in.vars["varargs"] = rest
	}
	if m.uses["kwargs"] {
		in.vars["kwargs"] = named
	}
	if _, given := in.vars["caller"]; m.uses["caller"] && !given {
		in.vars["caller"] = r.missing("no caller is defined")
	}
}
