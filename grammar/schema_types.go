package grammar

import (
	"slices"
	"strings"
)

// typeNames are JSON schema's, in the order in which they are tried.
var typeNames = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

// types reads type: one name or a list of them.
func (s *scope) types() (list []string, ok bool) {
	v, ok := s.get("type")
	if !ok {
		return nil, false
	}
	values, isList := v.([]any)
	if !isList {
		values = []any{v}
	}
	for _, v := range values {
		name, _ := v.(string)
		if !slices.Contains(typeNames, name) || slices.Contains(list, name) {
			s.b.refuse(s.path, "type must be one of %s, or a list of them", strings.Join(typeNames, ", "))
			return nil, true
		}
		list = append(list, name)
	}
	return list, true
}

// implied returns the types that the keywords apply to if type is missing. JSON schema would allow any other type,
// which authors do not intend.
func (o *object) implied() []string {
	for _, t := range []struct{ keys, name string }{
		{"properties required additionalProperties", "object"}, {"items prefixItems minItems maxItems", "array"},
		{"minLength maxLength", "string"},
	} {
		for _, k := range strings.Fields(t.keys) {
			if _, ok := o.values[k]; ok {
				return []string{t.name}
			}
		}
	}
	return nil
}

// types appends the code of a schema selected by type.
func (b *builder) types(s *scope) {
	list, ok := s.types()
	if !ok {
		if list = s.o.implied(); list == nil {
			b.call(b.anything())
			return
		}
	}
	var alternatives []func()
	for _, name := range list {
		switch name {
		case "object":
			alternatives = append(alternatives, b.object(s))
		case "array":
			alternatives = append(alternatives, b.array(s))
		case "string":
			lo, hi := s.length("minLength", 0), s.length("maxLength", -1)
			if hi >= 0 && lo > hi {
				b.refuse(s.path, "minLength is above maxLength")
			}
			alternatives = append(alternatives, func() { b.str(lo, hi) })
		case "number":
			alternatives = append(alternatives, b.number)
		case "integer":
			if !slices.Contains(list, "number") { // number includes it
				alternatives = append(alternatives, b.integer)
			}
		case "boolean":
			alternatives = append(alternatives, func() { b.text("true") }, func() { b.text("false") })
		case "null":
			alternatives = append(alternatives, func() { b.text("null") })
		}
	}
	b.either(alternatives...)
}

// array reads the keywords of lists.
func (b *builder) array(s *scope) func() {
	item := int32(-2) // any
	if v, ok := s.get("items"); ok {
		if item = -1; v != false {
			item = b.rule(v, s.path+"/items", s.depth+1)
		}
	}
	var head []int32
	if v, ok := s.get("prefixItems"); ok {
		list, isList := v.([]any)
		if !isList {
			b.refuse(s.path, "prefixItems must be a list")
		}
		for i, x := range list {
			head = append(head, b.rule(x, s.path+"/prefixItems/"+itoa(i), s.depth+1))
		}
	}
	lo, hi := s.length("minItems", 0), s.length("maxItems", -1)
	if item == -2 {
		item = b.anything()
	}
	n := len(head)
	switch {
	case hi >= 0 && lo > hi:
		b.refuse(s.path, "minItems is above maxItems")
	case hi >= 0 && n > hi:
		b.refuse(s.path, "prefixItems has more entries than maxItems")
	case item == -1 && lo > n:
		b.refuse(s.path, "minItems asks for more than prefixItems has, and items is false")
	}
	if hi >= 0 {
		hi -= n
	}
	lo = max(lo-n, 0)
	return func() { b.list(head, item, lo, hi) }
}

// object reads the keywords of objects. Declared properties come in order, each at most once; others are allowed only
// if none is declared.
func (b *builder) object(s *scope) func() {
	props, _ := s.get("properties")
	list, isObject := props.(*object)
	if props != nil && !isObject {
		b.refuse(s.path, "properties must be an object")
	}
	required := s.required()
	more, given := s.get("additionalProperties")
	var members []member
	if list != nil {
		for _, name := range list.keys {
			members = append(members, member{name, slices.Contains(required, name),
				b.rule(list.values[name], s.path+"/properties/"+escape(name), s.depth+1)})
		}
	}
	for _, name := range required {
		if slices.ContainsFunc(members, func(m member) bool { return m.name == name }) {
			continue
		}
		if more == false {
			b.refuse(s.path, "requires %.60q, which properties does not have", name)
		}
		var v any = true
		if given {
			v = more
		}
		members = append(members, member{name, true, b.rule(v, s.path+"/additionalProperties", s.depth+1)})
	}
	optional := 0
	for _, m := range members {
		if optional++; m.required {
			optional = 0
		}
		if optional > maxChoices {
			b.refuse(s.path, "has more than %d optional properties in a row", maxChoices)
		}
	}
	switch {
	case len(members) > 0:
		return func() { b.members(members) }
	case more == false:
		return func() { b.text("{}") }
	case given:
		value := b.rule(more, s.path+"/additionalProperties", s.depth+1)
		return func() { b.table(value) }
	}
	value := b.anything()
	return func() { b.table(value) }
}

func (s *scope) required() (names []string) {
	v, ok := s.get("required")
	list, isList := v.([]any)
	if ok && !isList {
		s.b.refuse(s.path, "required must be a list of names")
	}
	for _, x := range list {
		name, isText := x.(string)
		if !isText {
			s.b.refuse(s.path, "required must be a list of names")
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// member is a property.
type member struct {
	name     string
	required bool
	value    int32
}

// members writes properties in order. There are two lanes: nothing written yet, and something written, so a comma comes
// first.
//
//	first:  p1 → rest 2   or, where optional, first 2
//	rest:   ,p1 → rest 2  or, where optional, rest 2
func (b *builder) members(list []member) {
	rules := make([]int32, len(list))
	for i, m := range list {
		rules[i] = b.declare()
		b.declared = append(b.declared, func() {
			b.define(rules[i], func() {
				b.text(literal(m.name) + ":")
				b.gap()
				b.call(m.value)
			})
		})
	}
	b.text("{")
	into := make([][]int32, len(list)+1) // jumps from the first lane to the rest lane, before property i
	empty := true
	for i, m := range list {
		var skip int32
		if !m.required {
			skip = b.put(inst{op: opSplit})
			b.at(skip).x = b.here()
		}
		b.call(rules[i])
		into[i+1] = append(into[i+1], b.put(inst{op: opJump}))
		if m.required {
			empty = false
			break
		}
		b.at(skip).y = b.here()
	}
	var ends []int32
	if empty { // nothing was written, and nothing is required
		ends = append(ends, b.put(inst{op: opJump}))
	}
	for i := 1; i <= len(list); i++ {
		for _, j := range into[i] {
			b.at(j).x = b.here()
		}
		if i == len(list) {
			break
		}
		more := func() {
			b.text(",")
			b.gap()
			b.call(rules[i])
		}
		if list[i].required {
			more()
		} else {
			b.maybe(more)
		}
	}
	for _, e := range ends {
		b.at(e).x = b.here()
	}
	b.text("}")
}

// at is the instruction at an address, or a dummy if the program has grown too large.
func (c *code) at(at int32) *inst {
	if c.err != nil {
		return &inst{}
	}
	return &c.list[at]
}
