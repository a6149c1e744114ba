package grammar

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// someValues has every kind of value; each of someSchemas fits some of them and not others.
var someValues = []string{
	`null`, `true`, `false`, `0`, `1`, `-1`, `1.5`, `""`, `"a"`, `"b"`, `"ab"`, `[]`, `[1]`, `["a"]`,
	`[1,"a"]`, `[null]`, `[[]]`, `[[1]]`, `{}`, `{"a":1}`, `{"a":"a"}`,
	`{"b":1}`, `{"a":1,"b":1}`, `{"a":{"a":1}}`, `{"a":[1]}`, `{"a":null}`, `{"kind":"x","v":1}`,
	`{"kind":"y","w":"a"}`, `{"kind":"x","w":"a"}`, `{"next":{"next":null}}`, `{"next":null}`, `{"%":1}`,
}

var someSchemas = []string{
	`{"type":["string","null"]}`, `{"type":["integer","boolean"]}`,
	`{"type":["number","integer"]}`, `{"type":["array","object"]}`,
	`{"enum":[null,true,1,"a",[1],{"a":1}]}`, `{"type":"null","enum":[null,1]}`,
	`{"type":"boolean","enum":[true,"a"]}`, `{"type":"array","enum":[[1],1]}`,
	`{"type":"object","enum":[{"a":1},1]}`, `{"type":"integer","enum":[1,1.5,"a"]}`,
	`{"type":"number","enum":[1,1.5,"a"]}`, `{"type":["string","null"],"enum":[null,"a",1]}`,
	`{"type":"string","const":"a"}`, `{"const":[1,"a"]}`, `{"const":{"a":{"a":1}}}`,
	`{"const":{"a":1,"b":1}}`, `{"const":-1}`,
	`{"anyOf":[{"type":"integer"},{"type":"string","maxLength":1}]}`,
	`{"anyOf":[{"anyOf":[{"const":1},{"const":"a"}]},{"allOf":[{"type":"null"}]}]}`,
	`{"oneOf":[{"type":"string"},{"type":"array","items":{"type":"integer"}}]}`,
	`{"oneOf":[{"type":["string","null"]},{"type":"integer"}]}`,
	`{"allOf":[{"anyOf":[{"type":"null"},{"type":"boolean"}]}]}`,
	`{"type":"string","anyOf":[{"type":"string","maxLength":1},{"type":"string","minLength":2}]}`,
	`{"type":"string","anyOf":[{"maxLength":1},{"const":"ab"}]}`, `{"type":"string","anyOf":[true]}`,
	`{"type":["string","null"],"anyOf":[{},{"type":"null"}]}`,
	`{"type":"integer","anyOf":[{"enum":[1,1.5,"a"]},{"anyOf":[{"const":0},{"const":null}]}]}`,
	`{"type":"array","allOf":[{"items":{"type":"integer"}}]}`,
	`{"type":"object","anyOf":[{"properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false},{"description":"any"}]}`,
	`{"type":"string","$defs":{"x":{"anyOf":[{"const":"a"},{"$ref":"#/$defs/y"}]},"y":{"enum":["b"]}},"anyOf":[{"$ref":"#/$defs/x"}]}`,
	`{"type":"number","$defs":{"x":{"type":"integer"}},"anyOf":[{"$ref":"#/$defs/x"},{"const":1.5},false]}`,
	`{"type":"string","$defs":{"x":{"allOf":[{"const":"a"}]}},"anyOf":[{"$ref":"#/$defs/x"}]}`,
	`{"type":"array","$defs":{"x":{"items":{"type":"integer"}}},"anyOf":[{"$ref":"#/$defs/x"}]}`,
	`{"anyOf":[{"type":"object","properties":{"kind":{"const":"x"},"v":{"type":"integer"}},"required":["kind","v"],"additionalProperties":false},{"type":"object","properties":{"kind":{"const":"y"},"w":{"type":"string"}},"required":["kind","w"],"additionalProperties":false}]}`,
	`{"type":"array","items":{"anyOf":[{"type":"integer"},{"type":"null"}]}}`,
	`{"type":"array","items":{"type":"array","items":{"type":"integer"}}}`,
	`{"type":"array","items":{"type":"array","maxItems":0}}`,
	`{"type":"object","properties":{"a":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}},"required":["a"],"additionalProperties":false}`,
	`{"type":"object","additionalProperties":{"type":["integer","null"]}}`,
	`{"type":"object","additionalProperties":{"type":"object","additionalProperties":{"type":"integer"}}}`,
	`{"$defs":{"n":{"type":"object","properties":{"next":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/n"}]}},"required":["next"],"additionalProperties":false}},"$ref":"#/$defs/n"}`,
	`{"definitions":{"a%b":{"type":"integer"},"c d":{"type":"null"}},"anyOf":[{"$ref":"#/definitions/a%25b"},{"$ref":"#/definitions/c%20d"}]}`,
	`{"definitions":{"a%b":{"type":"integer"}},"$ref":"#/definitions/a%b"}`,
	`{"$defs":{"x":{"anyOf":[{"type":"null"},{"type":"string"}]}},"$ref":"#/$defs/x/anyOf/1"}`,
	`{"type":"array","items":{"$ref":"#/$defs/x"},"$defs":{"x":true}}`,
	`{"anyOf":[{"$ref":"#/$defs/x"},{"type":"null"}],"$defs":{"x":false}}`,
	`{"title":"t","description":"d","default":1,"examples":[1],"$comment":"c","deprecated":true,"readOnly":true,"writeOnly":true,"$schema":"s","$id":"i","type":"integer"}`,
}

// Pairs of schemas and values: what is valid by the validator is read, and nothing else.
func TestSchemasAndValues(t *testing.T) {
	for _, schema := range someSchemas {
		g := compiled(t, schema)
		some := 0
		for _, text := range someValues {
			valid, read := holds(t, schema, text), reads(g, text)
			if read != valid {
				t.Errorf("%s: %s is read: %v, valid: %v", schema, text, read, valid)
			}
			if read {
				some++
			}
		}
		if some == 0 || some == len(someValues) {
			t.Errorf("%s: reads %d of %d values, which tests little", schema, some, len(someValues))
		}
	}
}

// Whatever a keyword cannot be is refused with its place.
func TestMalformedKeywords(t *testing.T) {
	for schema, path := range map[string]string{
		`{"type":"array","prefixItems":1}`:                                                              "",
		`{"type":"object","properties":[]}`:                                                             "",
		`{"type":"object","required":"a"}`:                                                              "",
		`{"type":"object","required":[1]}`:                                                              "",
		`{"type":"string","minLength":"1"}`:                                                             "",
		`{"type":"string","minLength":1.5}`:                                                             "",
		`{"type":"string","minLength":4097}`:                                                            "",
		`{"type":["string","string"]}`:                                                                  "",
		`{"type":"string","minLength":1,"maxLength":0}`:                                                 "",
		`{"type":"array","minItems":1,"maxItems":0}`:                                                    "",
		`{"type":"string","$defs":{"x":{"$ref":"#/$defs/x"}},"anyOf":[{"$ref":"#/$defs/x"}]}`:           "",
		`{"type":"string","$defs":{"x":{"allOf":[{"type":"integer"}]}},"anyOf":[{"$ref":"#/$defs/x"}]}`: "",
		`{"enum":1}`:       "",
		`{"anyOf":{}}`:     "",
		`{"oneOf":[true]}`: "",
		`{"oneOf":[{"type":"integer"},{"type":"number"}]}`: "",
		`{"oneOf":[{},{"type":"number"}]}`:                 "",
		`{"$ref":1}`:                                       "",
		`{"$ref":"#a"}`:                                    "",
		`{"$ref":"#/$defs/x%zz"}`:                          "",
		`{"type":"integer","anyOf":[{"type":"string"},{"type":"integer"}]}`:               "",
		`{"type":"string","$defs":{"x":{}},"anyOf":[{"$ref":"#/$defs/x"}]}`:               "",
		`{"type":"string","$defs":{"x":{"enum":["a",1]}},"anyOf":[{"$ref":"#/$defs/x"}]}`: "",
		`{"type":"string","$defs":{"x":{"anyOf":[true]}},"anyOf":[{"$ref":"#/$defs/x"}]}`: "",
		`{"type":"string","$defs":{"x":{"items":{}}},"anyOf":[{"$ref":"#/$defs/x"}]}`:     "",
		`{"type":"array","items":1}`:                                             "/items",
		`{"type":"object","properties":{"a/b~":{"type":"x"}}}`:                   "/properties/a~1b~0",
		`{"type":"object","additionalProperties":{"type":"x"}}`:                  "/additionalProperties",
		`{"type":"object","required":["z"],"additionalProperties":{"type":"x"}}`: "/additionalProperties",
		`{"type":"array","prefixItems":[true,{"type":"x"}]}`:                     "/prefixItems/1",
		`{"anyOf":[true,{"anyOf":[{"minimum":1}]}]}`:                             "/anyOf/1/anyOf/0",
		`{"$defs":{"q":{"pattern":"x"}},"$ref":"#/$defs/q"}`:                     "/$defs/q",
		`{"type":"object","properties":{"` + strings.Repeat("é", 40) + `":{"type":"x"}}}`: "/properties/" +
			strings.Repeat("é", 30) + "…",
	} {
		_, err := Compile([]byte(schema), Limits{})
		e, ok := err.(*SchemaError)
		if !ok || e.Path != path || e.Problem == "" {
			t.Errorf("%s: %v, want a problem at %q", schema, err, path)
			continue
		}
		want := "schema: " + e.Problem
		if path != "" {
			want = "schema at " + path + ": " + e.Problem
		}
		if e.Error() != want {
			t.Errorf("%q, want %q", e.Error(), want)
		}
	}
}

// Both sides of every limit.
func TestLimits(t *testing.T) {
	nested := func(n int) string { // n schemas within each other
		return strings.Repeat(`{"type":"array","items":`, n-1) + `{"type":"null"}` + strings.Repeat("}", n-1)
	}
	wide := func(n int) string { // n schemas and the one around them
		return `{"anyOf":[` + strings.TrimSuffix(strings.Repeat(`{"type":"null"},`, n), ",") + `]}`
	}
	for _, c := range []struct {
		schema string
		l      Limits
		good   bool
	}{
		{nested(33), Limits{}, true}, {nested(34), Limits{}, false}, {nested(5), Limits{Depth: 4}, true},
		{nested(6), Limits{Depth: 4}, false},
		{wide(9), Limits{Nodes: 10}, true}, {wide(10), Limits{Nodes: 10}, false}, {wide(1000), Limits{}, true},
		{`{"type":"string","maxLength":4096}`, Limits{}, true},
		{`{"type":"array","maxItems":4096}`, Limits{Code: 1 << 20}, true},
		{`{"type":"string","maxLength":10}`, Limits{Length: 10}, true},
		{`{"type":"string","maxLength":11}`, Limits{Length: 10}, false},
		{`{"type":"string","maxLength":100}`, Limits{Code: 100}, false},
		{`{"type":"string","minLength":100}`, Limits{Code: 100}, false},
		{wide(2000), Limits{Time: time.Nanosecond}, false},
	} {
		if _, err := Compile([]byte(c.schema), c.l); (err == nil) != c.good {
			t.Errorf("%.60s of %d bytes, %+v: %v", c.schema, len(c.schema), c.l, err)
		}
	}
	g, err := Object(Limits{})
	if err != nil || !reads(g, `{"a":[{}]}`) || reads(g, `[]`) || reads(g, `1`) {
		t.Errorf("the grammar of objects: %v", err)
	}
}

// randomValue is a random schema and one of its values, written in the schema's order.
func randomValue(r *rand.Rand, depth int) (schema, text string) {
	kind := r.IntN(7)
	if depth == 0 {
		kind = r.IntN(4)
	}
	switch kind {
	case 0:
		return `{"type":"integer"}`, fmt.Sprint(r.IntN(2000) - 1000)
	case 1:
		return `{"type":"boolean"}`, fmt.Sprint(r.IntN(2) == 1)
	case 2:
		s := []string{"", "a", "é\n", `"`, "日本"}[r.IntN(5)]
		b, _ := json.Marshal(s)
		return fmt.Sprintf(`{"type":"string","minLength":%d,"maxLength":%d}`, len([]rune(s)),
			len([]rune(s))+r.IntN(2)), string(b)
	case 3:
		return `{"type":"null"}`, `null`
	case 4:
		schema, one := randomValue(r, depth-1)
		n := r.IntN(4)
		list := slices.Repeat([]string{one}, n)
		return fmt.Sprintf(`{"type":"array","items":%s,"minItems":%d,"maxItems":%d}`, schema, r.IntN(n+1),
			n+r.IntN(2)), "[" + strings.Join(list, ",") + "]"
	case 5:
		a, x := randomValue(r, depth-1)
		b, _ := randomValue(r, depth-1)
		if r.IntN(2) == 0 {
			a, b = b, a
		}
		return fmt.Sprintf(`{"anyOf":[%s,%s]}`, a, b), x
	}
	var props, required, members []string
	for i := range r.IntN(4) {
		s, x := randomValue(r, depth-1)
		name := fmt.Sprintf("%c%d", 'z'-i, i)
		props = append(props, fmt.Sprintf("%q:%s", name, s))
		use := r.IntN(2) == 0
		if use {
			members = append(members, fmt.Sprintf("%q:%s", name, x))
		}
		if use && r.IntN(2) == 0 {
			required = append(required, fmt.Sprintf("%q", name))
		}
	}
	return fmt.Sprintf(`{"type":"object","properties":{%s},"required":[%s],"additionalProperties":false}`,
		strings.Join(props, ","), strings.Join(required, ",")), "{" + strings.Join(members, ",") + "}"
}

// Random values of random schemas, written in the schema's order, are read; the same with one entry changed only if
// they are still valid.
func TestRandomSchemas(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	changed := 0
	for range 150 {
		schema, text := randomValue(r, 3)
		g := compiled(t, schema)
		if !reads(g, text) || !holds(t, schema, text) {
			t.Fatalf("%s: %s is read: %v, valid: %v", schema, text, reads(g, text), holds(t, schema, text))
		}
		for i := range len(text) { // without a byte, and with one changed
			for _, other := range []string{text[:i] + text[i+1:], text[:i] + "1" + text[i+1:],
				text[:i] + text[i:i+1] + text[i:]} {
				if json.Valid([]byte(other)) && reads(g, other) {
					if changed++; !holds(t, schema, other) {
						t.Fatalf("%s: %s is read and not valid", schema, other)
					}
				} else if reads(g, other) {
					t.Fatalf("%s: %q is read and is not JSON", schema, other)
				}
			}
		}
	}
	if changed < 100 {
		t.Errorf("only %d changed texts were read", changed)
	}
}
