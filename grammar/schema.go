package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// builder compiles a schema.
type builder struct {
	code
	root     any
	end      time.Time
	nodes    int
	char     int32
	free     int32            // the rule of any value; −1 before it is needed
	refs     map[string]int32 // rules of $ref targets
	declared []func()         // definitions of rules that are declared but not yet defined
}

// annotations are keywords that restrict nothing.
var annotations = []string{"title", "description", "default", "examples", "example", "$schema", "$id", "$comment",
	"deprecated", "readOnly", "writeOnly", "$defs", "definitions", "discriminator"}

// Compile reads a schema. The error is a [*SchemaError] if the schema is not supported; unknown keywords are not.
func Compile(schema []byte, l Limits) (*Grammar, error) {
	b, err := newBuilder(schema, l)
	if err != nil {
		return nil, err
	}
	return b.grammar()
}

func newBuilder(schema []byte, l Limits) (*builder, error) {
	l.complete()
	root, err := parse(schema)
	if err != nil {
		return nil, &SchemaError{Problem: err.Error()}
	}
	return &builder{code: code{known: map[set]int32{}, limits: &l}, root: root, end: time.Now().Add(l.Time), free: -1,
		refs: map[string]int32{}}, nil
}

// grammar compiles the schema. It does so once per builder.
func (b *builder) grammar() (*Grammar, error) {
	b.char = b.declare()
	b.define(b.char, b.character)
	main := b.rule(b.root, "", 0)
	for len(b.declared) > 0 && b.err == nil {
		f := b.declared[0]
		b.declared = b.declared[1:]
		f()
	}
	if b.err != nil {
		return nil, b.err
	}
	entry := b.here()
	b.call(main)
	b.put(inst{op: opMatch})
	if b.err != nil {
		return nil, b.err
	}
	b.link()
	if loops(b.code.list) {
		return nil, &SchemaError{Problem: "refers to itself with nothing in between"}
	}
	g := &Grammar{code: b.code.list, sets: b.sets, need: needs(b.code.list), entry: entry}
	if g.need[entry] > maxDepth {
		return nil, &SchemaError{Problem: "no finite value fits it"}
	}
	g.reset()
	return g, nil
}

// object keeps the order of its keys, in which properties are generated.
type object struct {
	keys   []string
	values map[string]any
}

// parse reads JSON with ordered objects.
func parse(b []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	v, err := parseValue(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more after the schema")
	}
	return v, nil
}

func parseValue(d *json.Decoder, depth int) (any, error) {
	if depth > 200 {
		return nil, fmt.Errorf("is nested too deep")
	}
	t, err := d.Token()
	if err != nil {
		return nil, fmt.Errorf("is not JSON")
	}
	delim, ok := t.(json.Delim)
	if !ok {
		return t, nil
	}
	o, list := &object{values: map[string]any{}}, []any{}
	for d.More() {
		key := ""
		if delim == '{' {
			k, err := d.Token()
			if err != nil {
				return nil, fmt.Errorf("is not JSON")
			}
			key = k.(string) // an object's key is a string
		}
		v, err := parseValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		if delim == '[' {
			list = append(list, v)
			continue
		}
		if _, twice := o.values[key]; !twice {
			o.keys = append(o.keys, key)
		}
		o.values[key] = v
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("is not JSON")
	}
	if delim == '[' {
		return list, nil
	}
	return o, nil
}

// refuse keeps the first error.
func (b *builder) refuse(path, format string, args ...any) {
	b.fail(&SchemaError{Path: path, Problem: fmt.Sprintf(format, args...)})
}

// rule declares a schema's rule; it is defined later.
func (b *builder) rule(s any, path string, depth int) int32 {
	if s == true {
		return b.anything()
	}
	r := b.declare()
	b.declared = append(b.declared, func() { b.define(r, func() { b.schema(s, path, depth) }) })
	return r
}

// anything is the rule of any value.
func (b *builder) anything() int32 {
	if b.free < 0 {
		b.free = b.declare()
		b.declared = append(b.declared, func() { b.define(b.free, func() { b.any(b.free) }) })
	}
	return b.free
}

// schema appends the code of one schema.
func (b *builder) schema(s any, path string, depth int) {
	if b.nodes++; b.nodes > b.limits.Nodes {
		b.refuse(path, "has more than %d schemas", b.limits.Nodes)
	}
	if depth > b.limits.Depth {
		b.refuse(path, "is nested deeper than %d", b.limits.Depth)
	}
	if time.Now().After(b.end) {
		b.refuse(path, "%s", errTime)
	}
	if b.err != nil {
		return
	}
	o, ok := s.(*object)
	switch {
	case s == true:
		b.call(b.anything())
	case s == false:
		b.put(inst{op: opFail})
	case !ok:
		b.refuse(path, "must be an object or a boolean")
	default:
		b.keywords(&scope{b: b, o: o, path: path, depth: depth})
	}
}

// scope is a schema whose keywords are being read. Keywords that no reader takes are rejected: ignoring one would allow
// invalid texts.
type scope struct {
	b     *builder
	o     *object
	path  string
	depth int
	taken []string
}

func (s *scope) get(name string) (any, bool) {
	s.taken = append(s.taken, name)
	v, ok := s.o.values[name]
	return v, ok
}

// finish rejects keywords that were not taken.
func (s *scope) finish() {
	for _, k := range s.o.keys {
		if !slices.Contains(s.taken, k) && !slices.Contains(annotations, k) {
			s.b.refuse(s.path, "%.60q is not supported here", k)
		}
	}
}

// length reads a bound of a string or a list.
func (s *scope) length(name string, def int) int {
	v, ok := s.get(name)
	if !ok {
		return def
	}
	n, _ := v.(json.Number)
	x, err := n.Int64()
	if err != nil || x < 0 || x > int64(s.b.limits.Length) {
		s.b.refuse(s.path, "%s must be a whole number from 0 to %d", name, s.b.limits.Length)
		return def
	}
	return int(x)
}

// keywords appends the code of a schema object.
func (b *builder) keywords(s *scope) {
	defer s.finish()
	if ref, ok := s.get("$ref"); ok {
		b.reference(s, ref)
		return
	}
	if v, ok := s.get("const"); ok {
		b.literals(s, []any{v})
		return
	}
	if v, ok := s.get("enum"); ok {
		list, _ := v.([]any)
		if len(list) == 0 {
			b.refuse(s.path, "enum must be a list that is not empty")
			return
		}
		b.literals(s, list)
		return
	}
	for _, name := range []string{"anyOf", "oneOf", "allOf"} {
		if v, ok := s.get(name); ok {
			b.combine(s, name, v)
			return
		}
	}
	b.types(s)
}

// literals appends the values of enum and const that match the schema's type, if it has one.
func (b *builder) literals(s *scope, list []any) {
	types, ok := s.types()
	var texts []string
	for _, v := range list {
		if !ok || slices.ContainsFunc(types, func(t string) bool { return hasType(v, t) }) {
			texts = append(texts, literal(v))
		}
	}
	slices.Sort(texts)
	b.words(slices.Compact(texts), 0)
}

// literal renders a value as JSON.
func literal(v any) string {
	switch v := v.(type) {
	case *object:
		var parts []string
		for _, k := range v.keys {
			parts = append(parts, literal(k)+":"+literal(v.values[k]))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case []any:
		var parts []string
		for _, x := range v {
			parts = append(parts, literal(x))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return "null" // what was parsed from JSON can be written as such
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// hasType reports whether a value is of a type.
func hasType(v any, t string) bool {
	switch v := v.(type) {
	case nil:
		return t == "null"
	case bool:
		return t == "boolean"
	case string:
		return t == "string"
	case json.Number:
		f, err := v.Float64()
		return t == "number" || t == "integer" && err == nil && f == math.Trunc(f)
	case []any:
		return t == "array"
	}
	return t == "object"
}
