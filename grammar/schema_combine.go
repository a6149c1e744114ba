package grammar

import (
	"net/url"
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
	list, _ := v.([]any)
	if len(list) == 0 {
		b.refuse(s.path, "%s must be a list that is not empty", name)
		return
	}
	if len(list) > maxChoices {
		b.refuse(s.path, "%s has more than %d alternatives", name, maxChoices)
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
	if types, ok := s.types(); ok {
		if list, ok = b.narrow(list, types); !ok {
			b.refuse(s.path, "an alternative of %s has types other than %s, which type beside it excludes", name,
				strings.Join(types, " and "))
			return
		}
	}
	var alternatives []func()
	for i, x := range list {
		r := b.rule(x, s.path+"/"+name+"/"+itoa(i), s.depth+1)
		alternatives = append(alternatives, func() { b.call(r) })
	}
	b.either(alternatives...)
}

// narrow applies the type beside a list of alternatives to each of them. One that names its type, or refers to a
// schema, must fit as it is; to the others the type is added. It reports whether all fit.
func (b *builder) narrow(list []any, types []string) (out []any, ok bool) {
	var outer []any
	for _, t := range types {
		outer = append(outer, t)
	}
	for _, x := range list {
		o, isObject := x.(*object)
		switch {
		case x == true:
			o = &object{}
		case !isObject: // false, or an error that is reported where it is read
			out = append(out, x)
			continue
		case o.has("type") || o.has("$ref"):
			if !b.within(x, types, map[string]bool{}) {
				return nil, false
			}
			out = append(out, x)
			continue
		}
		copied := &object{keys: append(slices.Clone(o.keys), "type"), values: map[string]any{"type": outer}}
		for _, k := range o.keys {
			copied.values[k] = o.values[k]
		}
		out = append(out, copied)
	}
	return out, true
}

func (o *object) has(key string) bool { _, ok := o.values[key]; return ok }

// within reports whether every value that fits a schema has one of the types. Seen are the references that were
// followed: each is followed once, so that schemas that refer to each other many times take no longer.
func (b *builder) within(x any, types []string, seen map[string]bool) bool {
	o, ok := x.(*object)
	if !ok {
		return x != true
	}
	if ref, ok := o.values["$ref"].(string); ok {
		target, found := b.resolve(strings.TrimPrefix(ref, "#"))
		if !found || seen[ref] {
			return true // refused where it is read
		}
		seen[ref] = true
		return b.within(target, types, seen)
	}
	if o.has("type") {
		return !slices.ContainsFunc(o.named(), func(t any) bool {
			name, ok := t.(string)
			return ok && !slices.Contains(types, name) && !(name == "integer" && slices.Contains(types, "number"))
		})
	}
	if list, ok := o.literals(); ok {
		return !slices.ContainsFunc(list, func(v any) bool {
			return !slices.ContainsFunc(types, func(t string) bool { return hasType(v, t) })
		})
	}
	for _, name := range []string{"anyOf", "oneOf", "allOf"} {
		if list, ok := o.values[name].([]any); ok {
			return !slices.ContainsFunc(list, func(x any) bool { return !b.within(x, types, seen) })
		}
	}
	implied := o.implied()
	return len(implied) > 0 && slices.Contains(types, implied[0])
}

// literals are the values of const or enum.
func (o *object) literals() ([]any, bool) {
	if v, ok := o.values["const"]; ok {
		return []any{v}, true
	}
	list, ok := o.values["enum"].([]any)
	return list, ok
}

// named are the values of type: one, or those of a list.
func (o *object) named() []any {
	if list, ok := o.values["type"].([]any); ok {
		return list
	}
	return []any{o.values["type"]}
}

// disjoint reports whether each schema names its types and no two share one.
func disjoint(list []any) bool {
	var seen []string
	for _, x := range list {
		o, ok := x.(*object)
		if !ok {
			return false
		}
		for _, t := range o.named() {
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
		// $ref is a URI; a % that escapes nothing stands for itself.
		if plain, err := url.PathUnescape(part); err == nil {
			part = plain
		}
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
