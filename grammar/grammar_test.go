package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// words is a vocabulary of all bytes, some longer tokens that cut across JSON's own, and an end at 0.
func words() *Vocabulary {
	list := [][]byte{nil}
	for b := range 256 {
		list = append(list, []byte{byte(b)})
	}
	for _, w := range []string{`{"`, `":`, `": `, `",`, `", "`, `"}`, `}}`, `[]`, `],`, `true`, `alse`, `null`,
		`"name"`, `name`, `na`, `00`, `12`, `1.`, `e+`, `\u`, `\"`, "é", "日本", `}, {`, `{}`, ` `, `  `, "\n", "kind",
		`"kind":"a"`} {
		list = append(list, []byte(w))
	}
	return NewVocabulary(list, []int32{0})
}

// sample draws a text from the mask alone, uniformly, and keeps it from growing for ever by preferring what ends
// something.
func sample(t *testing.T, g *Grammar, v *Vocabulary, r *rand.Rand, most int) (text []byte, whole bool) {
	t.Helper()
	m := g.NewMatcher(v)
	logits := make([]float32, v.size)
	for n := range most {
		clear(logits)
		m.Mask(logits)
		var all, closing []int32
		for id, l := range logits {
			if !math.IsInf(float64(l), -1) {
				all = append(all, int32(id))
				if i, ok := v.find(int32(id)); id == 0 || ok && strings.ContainsRune(`"}]`, rune(v.bytes[i][0])) {
					closing = append(closing, int32(id))
				}
			}
		}
		if len(all) == 0 {
			t.Fatalf("after %q nothing may follow", text)
		}
		if len(closing) > 0 && r.IntN(most) < 4*n {
			all = closing
		}
		id := all[r.IntN(len(all))]
		if i, ok := v.find(id); ok {
			text = append(text, v.bytes[i]...)
		}
		if m.Accept(id) {
			return text, true
		}
	}
	return text, false
}

var schemas = []string{
	`{"type":"object"}`, `true`, `{}`, `{"type":"string"}`, `{"type":"integer"}`, `{"type":"number"}`,
	`{"type":["string","null"]}`,
	`{"type":"boolean"}`, `{"type":"null"}`, `{"const":{"a":[1,"ü<&>"]}}`, `{"enum":["red","green",1,null,"re"]}`,
	`{"type":"string","enum":["a",1]}`, `{"type":"string","minLength":2,"maxLength":5}`,
	`{"type":"string","maxLength":0}`,
	`{"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":3}`, `{"type":"array","items":false}`,
	`{"type":"array"}`, `{"type":"array","minItems":1}`,
	`{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"items":false}`,
	`{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"null"},"maxItems":3}`,
	`{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}}},"required":["name","age"],"additionalProperties":false}`,
	`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{"type":"integer"}},"additionalProperties":false}`,
	`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{"type":"integer"}},"required":["b"]}`,
	`{"type":"object","properties":{"x\"y/~é":{"type":"null"}},"required":["x\"y/~é"]}`,
	`{"type":"object","additionalProperties":{"type":"integer"}}`,
	`{"type":"object","additionalProperties":false}`, `{"properties":{"a":{"const":1}},"required":["a","other"]}`,
	`{"anyOf":[{"type":"object","properties":{"kind":{"const":"a"},"x":{"type":"integer"}},"required":["kind","x"],"additionalProperties":false},{"type":"object","properties":{"kind":{"const":"b"},"y":{"type":"string"}},"required":["kind","y"],"additionalProperties":false}]}`,
	`{"oneOf":[{"type":"string"},{"type":"integer"}]}`, `{"allOf":[{"type":"string"}]}`,
	`{"$defs":{"tree":{"type":"object","properties":{"v":{"type":"integer"},"kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["v"],"additionalProperties":false}},"$ref":"#/$defs/tree"}`,
	`{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["next"],"additionalProperties":false}`,
	`{"title":"t","description":"d","type":"object","properties":{"n":{"type":"number","description":"x","default":1}},"required":["n"]}`,
}

// TestEverySampledTextIsValid: whatever the mask lets through parses, and fits the schema by a validator that knows
// nothing of automata.
func TestEverySampledTextIsValid(t *testing.T) {
	v := words()
	for _, text := range schemas {
		g, err := Compile([]byte(text), Limits{})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var schema any
		if err := json.Unmarshal([]byte(text), &schema); err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(1, 2))
		whole := 0
		for range 60 {
			out, ok := sample(t, g, v, r, 120)
			if !ok {
				continue
			}
			whole++
			var value any
			if err := json.Unmarshal(out, &value); err != nil || !utf8.Valid(out) {
				t.Fatalf("%s: %q: %v", text, out, err)
			}
			if err := validate(schema, schema, value); err != nil {
				t.Fatalf("%s: %s: %v", text, out, err)
			}
		}
		if whole < 30 {
			t.Errorf("%s: only %d of 60 texts came to an end", text, whole)
		}
	}
}

// target is what a $ref points to.
func target(root any, ref string) any {
	for _, p := range strings.Split(ref, "/")[1:] {
		if name, err := url.PathUnescape(p); err == nil {
			p = name
		}
		p = strings.ReplaceAll(strings.ReplaceAll(p, "~1", "/"), "~0", "~")
		switch x := root.(type) {
		case map[string]any:
			root = x[p]
		case []any:
			i, _ := strconv.Atoi(p)
			root = x[i]
		}
	}
	return root
}

// validate is JSON schema as its specification words it, for the keywords above.
func validate(root, s, v any) error {
	if s == true {
		return nil
	}
	o, ok := s.(map[string]any)
	if !ok {
		return errors.New("false")
	}
	if ref, ok := o["$ref"].(string); ok {
		return validate(root, target(root, ref), v)
	}
	if c, ok := o["const"]; ok && !equal(c, v) {
		return fmt.Errorf("not %v", c)
	}
	if e, ok := o["enum"].([]any); ok && !slices.ContainsFunc(e, func(x any) bool { return equal(x, v) }) {
		return fmt.Errorf("not in %v", e)
	}
	if err := validateType(o, v); err != nil {
		return err
	}
	for _, name := range []string{"anyOf", "oneOf", "allOf"} {
		list, ok := o[name].([]any)
		fits := 0
		for _, x := range list {
			if validate(root, x, v) == nil {
				fits++
			}
		}
		if ok && (fits == 0 || name == "oneOf" && fits != 1 || name == "allOf" && fits != len(list)) {
			return fmt.Errorf("%s: %d fit", name, fits)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		return validateObject(root, o, v)
	case []any:
		return validateList(root, o, v)
	case string:
		n := float64(utf8.RuneCountInString(v))
		if lo, ok := o["minLength"].(float64); ok && n < lo {
			return errors.New("too short")
		}
		if hi, ok := o["maxLength"].(float64); ok && n > hi {
			return errors.New("too long")
		}
	}
	return nil
}

func equal(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}

func validateType(o map[string]any, v any) error {
	types, ok := o["type"].([]any)
	if !ok {
		if o["type"] == nil {
			return nil
		}
		types = []any{o["type"]}
	}
	is := fmt.Sprintf("%T", v)
	names := map[string]string{"map[string]interface {}": "object", "[]interface {}": "array", "string": "string",
		"float64": "number", "bool": "boolean", "<nil>": "null"}
	for _, t := range types {
		if t == names[is] || t == "integer" && is == "float64" && v.(float64) == math.Trunc(v.(float64)) {
			return nil
		}
	}
	return fmt.Errorf("%v is not of %v", v, types)
}

func validateObject(root any, o, v map[string]any) error {
	props, _ := o["properties"].(map[string]any)
	for k, x := range v {
		s, ok := props[k]
		if !ok {
			if s, ok = o["additionalProperties"]; !ok {
				continue
			}
		}
		if err := validate(root, s, x); err != nil {
			return fmt.Errorf("%s: %w", k, err)
		}
	}
	required, _ := o["required"].([]any)
	for _, k := range required {
		if _, ok := v[k.(string)]; !ok {
			return fmt.Errorf("no %v", k)
		}
	}
	return nil
}

func validateList(root any, o map[string]any, v []any) error {
	prefix, _ := o["prefixItems"].([]any)
	for i, x := range v {
		s, ok := o["items"]
		if i < len(prefix) {
			s, ok = prefix[i], true
		}
		if ok {
			if err := validate(root, s, x); err != nil {
				return fmt.Errorf("%d: %w", i, err)
			}
		}
	}
	if lo, ok := o["minItems"].(float64); ok && float64(len(v)) < lo {
		return errors.New("too few")
	}
	if hi, ok := o["maxItems"].(float64); ok && float64(len(v)) > hi {
		return errors.New("too many")
	}
	return nil
}

// reads reports whether a whole text is in the language, byte by byte.
func reads(g *Grammar, text string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.start()
	for i := range len(text) {
		if s = g.step(s, text[i]); s == nil {
			return false
		}
	}
	return s.accept
}

// TestLanguage: texts that must be readable, so that a grammar which allows next to nothing does not pass for right.
func TestLanguage(t *testing.T) {
	for _, c := range []struct{ schema, good, bad string }{
		{`{"type":"object"}`, `{"a": [1, -2.5e+10, "x\né\u00e9\\", {"b":null}],"c":true}`, `[]`},
		{`{"type":"string"}`, `"\"日本\""`, `"\ud800"`},
		{`{"type":"string","maxLength":2}`, `"日本"`, `"日本x"`},
		{`{"type":"integer"}`, `-120`, `012`},
		{`{"type":"integer"}`, `0`, `1.0`},
		{`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{"type":"integer"}}}`,
			`{"b": 1,"c":2}`, `{"c":1,"b":2}`},
		{`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["b"]}`,
			`{"b":1}`, `{"a":1}`},
		{`{"type":"object","properties":{"a":{"type":"integer"}}}`, `{}`, `{"x":1}`},
		{`{"enum":["re","red"]}`, `"red"`, `"r"`},
		{`{"type":"array","items":{"type":"integer"},"maxItems":2}`, `[1, 2]`, `[1,2,3]`},
		{`{"type":"array","items":{"type":"integer"}}`, `[]`, `[1,]`},
	} {
		g, err := Compile([]byte(c.schema), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if !reads(g, c.good) || reads(g, c.bad) {
			t.Errorf("%s: %s is %v, want true; %s is %v, want false", c.schema, c.good, reads(g, c.good), c.bad,
				reads(g, c.bad))
		}
	}
}

// TestRefusedSchemas: what cannot be held to is said, with its place, and before the work exceeds the limits.
func TestRefusedSchemas(t *testing.T) {
	deep := strings.Repeat(`{"type":"array","items":`, 40) + "true" + strings.Repeat("}", 40)
	many := `{"anyOf":[` + strings.TrimSuffix(strings.Repeat(`{"type":"null"},`, 5000), ",") + `]}`
	for _, s := range []string{``, `nonsense`, `{`, `[]`, `3`, `{"type":"strin"}`, `{"type":[]}`, `{"type":3}`,
		`{"pattern":"a+"}`, `{"type":"string","format":"date"}`,
		`{"type":"integer","minimum":3}`, `{"not":{}}`, `{"$ref":"#"}`, `{"$ref":"#/nowhere"}`, `{"$ref":"http://a/b"}`,
		`{"anyOf":[]}`, `{"anyOf":[{"$ref":"#"}]}`, `{"anyOf":[{"$ref":"#"},{"type":"null"}]}`,
		`{"enum":[]}`, `{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`,
		`{"type":"object","properties":{"n":{"const":0},"a":{"$ref":"#"}},"required":["n","a"]}`,
		`{"type":"array","prefixItems":[{"const":0},{"$ref":"#"}],"minItems":2}`,
		`{"type":"string","minLength":5,"maxLength":4}`, `{"type":"string","maxLength":-1}`,
		`{"type":"string","maxLength":1e9}`,
		`{"oneOf":[{"type":"string"},{"type":"string","maxLength":2}]}`,
		`{"allOf":[{"type":"string"},{"maxLength":2}]}`,
		`{"type":"object","required":["a"],"additionalProperties":false}`, `{"type":"string","enum":[1]}`, `false`,
		`{"type":"object","properties":{"a":false},"required":["a"]}`, deep, many,
		`{"type":"array","minItems":3,"prefixItems":[true],"items":false}`, `{} {}`, strings.Repeat("[", 300)} {
		b, err := newBuilder([]byte(s), Limits{})
		if err == nil {
			_, err = b.grammar()
		}
		var e *SchemaError
		if !errors.As(err, &e) {
			t.Errorf("%.80s: %v, want a SchemaError", s, err)
		}
		// The limits' defaults, and the schema that exceeds them.
		if b != nil && (b.nodes > 4096+1 || len(b.code.list) > 1<<16) {
			t.Errorf("%.80s: read %d schemas and wrote %d instructions", s, b.nodes, len(b.code.list))
		}
	}
}

// FuzzCompile: no schema makes the compiler or the masks panic, or leads into a dead end.
func FuzzCompile(f *testing.F) {
	for _, s := range schemas {
		f.Add([]byte(s))
	}
	v := words()
	f.Fuzz(func(t *testing.T, schema []byte) {
		g, err := Compile(schema, Limits{Nodes: 200, Code: 4000, Length: 100})
		if err != nil {
			return
		}
		out, whole := sample(t, g, v, rand.New(rand.NewPCG(1, uint64(len(schema)))), 40)
		if whole && !json.Valid(out) {
			t.Fatalf("%q", out)
		}
	})
}

func BenchmarkMask(b *testing.B) {
	list := [][]byte{nil}
	r := rand.New(rand.NewPCG(1, 2))
	for range 50000 {
		w := make([]byte, 1+r.IntN(10))
		for i := range w {
			w[i] = byte(' ' + r.IntN(95))
		}
		list = append(list, w)
	}
	v := NewVocabulary(list, []int32{0})
	g, err := Compile([]byte(
		`{"type":"object","properties":{"a":{"type":"string","maxLength":2000}},"required":["a"]}`), Limits{})
	if err != nil {
		b.Fatal(err)
	}
	s := g.start()
	for _, c := range []byte(`{"a":"`) {
		s = g.step(s, c)
	}
	for b.Loop() { // a state that was not seen before, as every token of a bounded string is
		s.mask = nil
		v.allowed(g, s)
		if s = g.step(s, 'x'); s == nil || s.final {
			b.Fatal("the string ended")
		}
	}
}
