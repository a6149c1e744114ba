package grammar

import (
	"slices"
	"strconv"
	"strings"
)

func itoa(i int) string { return strconv.Itoa(i) }

// escape encodes a name as part of a JSON pointer.
func escape(name string) string {
	if len(name) > 60 {
		name = strings.ToValidUTF8(name[:60], "") + "…"
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// combine appends anyOf; oneOf where no two alternatives have a type in common; allOf of one.
func (b *builder) combine(s *scope, name string, v any) {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		b.refuse(s.path, "%s must be a list that is not empty", name)
		return
	}
	if name == "allOf" && len(list) > 1 {
		b.refuse(s.path, "allOf of several schemas is not supported; write them as one")
		return
	}
	if name == "oneOf" && !disjoint(list) {
		b.refuse(s.path, "oneOf is supported only where its alternatives have different types; use anyOf")
		return
	}
	s.get("type") // often repeated next to the alternatives, which have their own
	var alternatives []func()
	for i, x := range list {
		r := b.rule(x, s.path+"/"+name+"/"+itoa(i), s.depth+1)
		alternatives = append(alternatives, func() { b.call(r) })
	}
	b.either(alternatives...)
}

// disjoint reports whether each schema names its types and no two share one.
func disjoint(list []any) bool {
	var seen []string
	for _, x := range list {
		o, ok := x.(*object)
		if !ok {
			return false
		}
		types, ok := o.values["type"].([]any)
		if !ok {
			types = []any{o.values["type"]}
		}
		for _, t := range types {
			name, ok := t.(string)
			if name == "integer" {
				name = "number"
			}
			if !ok || slices.Contains(seen, name) {
				return false
			}
			seen = append(seen, name)
		}
	}
	return true
}

// reference appends a call of the schema that a local JSON pointer refers to.
func (b *builder) reference(s *scope, v any) {
	ref, _ := v.(string)
	rest, ok := strings.CutPrefix(ref, "#")
	if !ok || rest != "" && rest[0] != '/' {
		b.refuse(s.path, "$ref must be a pointer within the schema, such as #/$defs/name")
		return
	}
	r, known := b.refs[ref]
	if !known {
		target, ok := b.resolve(rest)
		if !ok {
			b.refuse(s.path, "$ref %.80q names nothing", ref)
			return
		}
		r = b.declare()
		b.refs[ref] = r
		b.declared = append(b.declared, func() { b.define(r, func() { b.schema(target, rest, s.depth+1) }) })
	}
	b.call(r)
}

// resolve follows a JSON pointer.
func (b *builder) resolve(pointer string) (any, bool) {
	v := b.root
	if pointer == "" {
		return v, true
	}
	for _, part := range strings.Split(pointer[1:], "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch x := v.(type) {
		case *object:
			next, ok := x.values[part]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(x) {
				return nil, false
			}
			v = x[i]
		default:
			return nil, false
		}
	}
	return v, true
}
