package chat

// loop is what a template sees of a loop.
type loop struct {
	items   []any
	at      int
	changed []any // the last arguments of loop.changed
}

// attribute is an attribute of loop.
func (l *loop) attribute(r *run, name string) (any, bool) {
	n := len(l.items)
	switch name {
	case "index":
		return l.at + 1, true
	case "index0":
		return l.at, true
	case "revindex":
		return n - l.at, true
	case "revindex0":
		return n - l.at - 1, true
	case "first":
		return l.at == 0, true
	case "last":
		return l.at == n-1, true
	case "length":
		return n, true
	case "depth":
		return 1, true // no loop is recursive
	case "depth0":
		return 0, true
	case "previtem":
		return l.neighbour(r, l.at-1), true
	case "nextitem":
		return l.neighbour(r, l.at+1), true
	case "cycle":
		return &function{name: name, call: l.cycle}, true
	case "changed":
		return &function{name: name, call: l.isChanged}, true
	}
	return nil, false
}

// neighbour is the item at i, undefined beyond the ends.
func (l *loop) neighbour(r *run, i int) any {
	if i < 0 || i >= len(l.items) {
		return r.missing("there is no such item")
	}
	return l.items[i]
}

// cycle is one of its arguments, by turns.
func (l *loop) cycle(_ *run, p params) any {
	if len(p.args) == 0 {
		fail("loop.cycle: no items")
	}
	return p.args[l.at%len(p.args)]
}

// isChanged reports whether its arguments differ from those of the last call.
func (l *loop) isChanged(_ *run, p params) any {
	if l.changed != nil && equalItems(l.changed, p.args) {
		return false
	}
	l.changed = p.args
	return true
}
