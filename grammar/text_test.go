package grammar

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

// A string holds exactly what UTF-8 and JSON allow, by Go's own readers of both: every pair of bytes, three and four
// bytes on both sides of each bound, every escape. Escaped surrogates are the exception: JSON allows half a pair, we
// allow none.
func TestCharacters(t *testing.T) {
	g := compiled(t, `{"type":"string","minLength":1,"maxLength":1}`)
	check := func(c string) {
		t.Helper()
		want := utf8.ValidString(c) && json.Valid([]byte(`"`+c+`"`)) && (utf8.RuneCountInString(c) == 1 || c[0] == '\\')
		if strings.HasPrefix(c, `\u`) && len(c) == 6 && (c[2] == 'd' || c[2] == 'D') && c[3] > '7' {
			want = false
		}
		if got := reads(g, `"`+c+`"`); got != want {
			t.Errorf("%q is read: %v", c, got)
		}
	}
	edges := []byte{0x00, 0x1f, 0x20, 0x22, 0x5c, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf,
		0xe0, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf3, 0xf4, 0xf5, 0xff}
	for a := range 256 {
		check(string([]byte{byte(a)}))
		for b := range 256 {
			check(string([]byte{byte(a), byte(b)}))
		}
	}
	for a := 0xe0; a < 0x100; a++ {
		for _, b := range edges {
			for _, c := range edges {
				check(string([]byte{byte(a), b, c}))
				if a >= 0xf0 {
					for _, d := range edges {
						check(string([]byte{byte(a), b, c, d}))
					}
				}
			}
		}
	}
	for _, hex := range []string{"0000", "00e9", "00E9", "d7ff", "D7FF", "d800", "dbff", "DC00", "dfff", "e000", "ffff",
		"FFFF", "fa9G", "g000", "0g00", "00g0", "000", "00:0", "0/00", "00@0", "`000"} {
		check(`\u` + hex)
	}
}

// Numbers have up to 15 digits before the point, 15 after it and 2 in the exponent.
func TestDigits(t *testing.T) {
	g := compiled(t, `{"type":"number"}`)
	nines := func(n int) string { return strings.Repeat("9", n) }
	for text, want := range map[string]bool{
		nines(15): true, nines(16): false, "-" + nines(15): true, "-" + nines(16): false, "0." + nines(15): true,
		"0." + nines(16):                     false,
		nines(15) + "." + nines(15) + "e-99": true, "1e99": true, "1e100": false, "1e+09": true, "1E-0": true,
		"1e+": false, "1e-": false, "1e": false,
		"-0": true, "--1": false, "1.5.5": false, "1e1e1": false, "1e1.5": false, "00": false, "0e0": true,
	} {
		if reads(g, text) != want {
			t.Errorf("%s is read: %v", text, !want)
		}
	}
	g = compiled(t, `{"type":"integer"}`)
	for text, want := range map[string]bool{nines(15): true, nines(16): false, "-" + nines(15): true, "1e3": false,
		"1.": false} {
		if reads(g, text) != want {
			t.Errorf("integer: %s is read: %v", text, !want)
		}
	}
}

// A keyword of one type implies that type.
func TestImpliedTypes(t *testing.T) {
	texts := map[string]string{"object": `{"a":1}`, "array": `[1]`, "string": `"ab"`, "number": `1`, "null": `null`,
		"boolean": `true`}
	for schema, kind := range map[string]string{
		`{"properties":{"a":true}}`: "object", `{"required":["a"]}`: "object",
		`{"additionalProperties":{"type":"integer"}}`: "object",
		`{"items":{"type":"integer"}}`:                "array", `{"prefixItems":[true]}`: "array",
		`{"minItems":1}`: "array", `{"maxItems":1}`: "array",
		`{"minLength":1}`: "string", `{"maxLength":2}`: "string",
	} {
		g := compiled(t, schema)
		for k, text := range texts {
			if reads(g, text) != (k == kind) {
				t.Errorf("%s: %s is read: %v", schema, text, k != kind)
			}
		}
	}
	g := compiled(t, `{"title":"anything"}`)
	for _, text := range texts {
		if !reads(g, text) {
			t.Errorf("a schema without keywords does not read %s", text)
		}
	}
}

// The values of an enum that have the type beside it: an integer may be written 1.0 or 1e2.
func TestEnumOfAType(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"integer","enum":[1.0,1e2,1.5,-3,"1"]}`:       `1.0 1e2 -3`,
		`{"type":"number","enum":[1.5,true,2]}`:                `1.5 2`,
		`{"type":["null","boolean"],"enum":[null,false,0,""]}`: `null false`,
		`{"type":"array","enum":[[],{},""]}`:                   `[]`, `{"type":"object","enum":[[],{},""]}`: `{}`,
		`{"type":"string","const":"a"}`: `"a"`, `{"type":"integer","const":7}`: `7`,
	} {
		g := compiled(t, schema)
		for _, text := range strings.Fields(`1.0 1e2 1.5 -3 "1" true 2 null false 0 "" [] {} "a" 7 1`) {
			if reads(g, text) != strings.Contains(" "+want+" ", " "+text+" ") {
				t.Errorf("%s: %s is read: %v", schema, text, reads(g, text))
			}
		}
	}
	for _, schema := range []string{`{"type":"string","const":1}`, `{"type":"integer","enum":[1.5,"a"]}`,
		`{"type":"null","const":false}`} {
		if _, err := Compile([]byte(schema), Limits{}); err == nil ||
			!strings.Contains(err.Error(), "no finite value fits it") {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

// The problems a schema is refused for, by the words a user reads.
func TestProblems(t *testing.T) {
	for schema, problem := range map[string]string{
		`{"allOf":[{"type":"string"},{"maxLength":2}]}`: "allOf of several schemas is not supported; write them as one",
		`{"oneOf":[{"type":"null"},{"type":"null"}]}`: "oneOf is supported only where its alternatives have " +
			"different types; use anyOf",
		`{"anyOf":[]}`: "anyOf must be a list that is not empty",
		`{"enum":[]}`:  "enum must be a list that is not empty",
		`{"type":"null","anyOf":[{"type":"string"}]}`: "an alternative of anyOf has types other than null, which " +
			"type beside it excludes",
		`{"$ref":"#/$defs/x"}`:                       `$ref "#/$defs/x" names nothing`,
		`{"$ref":"other.json"}`:                      "$ref must be a pointer within the schema, such as #/$defs/name",
		`{"type":"array","minItems":2,"maxItems":1}`: "minItems is above maxItems",

		`{"type":"string","minLength":2,"maxLength":1}`: "minLength is above maxLength",

		`{"type":"array","prefixItems":[true,true],"maxItems":1}`: "prefixItems has more entries than maxItems",
		`{"type":"array","items":false,"minItems":1}`: "minItems asks for more than prefixItems has, and " +
			"items is false",

		`{"type":"object","required":["q"],"additionalProperties":false}`: `requires "q", which properties does not have`,
		`{"$ref":"#"}`:                                        "refers to itself with nothing in between",
		`{"type":"string","pattern":"a"}`:                     `"pattern" is not supported here`,
		`{"$ref":"#/$defs/a","minimum":1,"$defs":{"a":true}}`: `"minimum" is not supported here`,
		`{"const":1,"minimum":1}`:                             `"minimum" is not supported here`,
		`{"type":"string","maxLength":4097}`:                  "maxLength must be a whole number from 0 to 4096",
		`{"type":"integer","minLength":1}`:                    `"minLength" is not supported here`,
		`{"type":"string","items":true}`:                      `"items" is not supported here`,
	} {
		_, err := Compile([]byte(schema), Limits{})
		var e *SchemaError
		if !errors.As(err, &e) || e.Problem != problem {
			t.Errorf("%s: %v, want %s", schema, err, problem)
		}
	}
	// number includes integer where the type is written beside the alternatives
	if g := compiled(t, `{"type":"number","anyOf":[{"type":"integer"}]}`); !reads(g, "1") || reads(g, "1.5") {
		t.Error("an integer beside number")
	}
	if _, err := Compile([]byte(`{"type":"integer","anyOf":[{"type":"number"}]}`), Limits{}); err == nil {
		t.Error("a number beside integer passes")
	}
}

// Accept says when nothing can follow: after the end of an object, of a string and of a keyword, not of a number; an
// end token always ends. A text can be nested as deeply as its end can still be reached, and then always be finished.
func TestAccept(t *testing.T) {
	v := words()
	for _, c := range []struct {
		schema, text string
		done         bool
	}{
		{`{"type":"object"}`, `{}`, true}, {`{"type":"object"}`, `{`, false}, {`{"type":"string"}`, `"a"`, true},
		{`{"type":"string"}`, `"a`, false}, {`{"type":"integer"}`, `12`, false},
		{`{"type":"integer"}`, `0`, true}, {`{"type":"number"}`, `0`, false}, {`{"enum":["a",1,10]}`, `1`, false},
		{`{"enum":["a",1,10]}`, `10`, true}, {`{"type":"null"}`, `null`, true}, {`true`, `[1]`, true},
	} {
		m := compiled(t, c.schema).NewMatcher(v)
		done := false
		for i := range len(c.text) {
			if done {
				t.Errorf("%s: done before the end of %s", c.schema, c.text)
			}
			done = m.Accept(int32(c.text[i]) + 1)
		}
		if done != c.done {
			t.Errorf("%s: done after %s: %v", c.schema, c.text, done)
		}
		if !m.Accept(0) {
			t.Errorf("%s: the end token does not end", c.schema)
		}
	}
	for _, open := range []string{"[", `{"a":`} {
		closing := map[string]string{"[": "]", `{"a":`: "}"}[open]
		g := compiled(t, `true`)
		deepest := 0
		for n := 1; n < 200; n++ {
			if !reads(g, strings.Repeat(open, n-1)+open[:1]+closing+strings.Repeat(closing, n-1)) {
				break
			}
			deepest = n
		}
		if deepest < 60 || deepest > maxDepth {
			t.Errorf("%s: nested %d times", open, deepest)
		}
		m := g.NewMatcher(v)
		if !follow(m, strings.Repeat(open, deepest-1)+open[:1]) {
			t.Fatal("the deepest text")
		}
		logits := make([]float32, v.size)
		m.Mask(logits)
		if id := int32(closing[0]) + 1; math.IsInf(float64(logits[id]), -1) {
			t.Errorf("%s %d times cannot be closed", open, deepest)
		}
	}
}

// Escaping of names in a path, as RFC 6901 has it, and its length.
func TestPathNames(t *testing.T) {
	for name, want := range map[string]string{"a": "a", "~": "~0", "/": "~1", "~1": "~01",
		strings.Repeat("x", 60): strings.Repeat("x", 60), strings.Repeat("x", 61): strings.Repeat("x", 60) + "…",
		strings.Repeat("x", 59) + "é":  strings.Repeat("x", 59) + "…",
		strings.Repeat("x", 58) + "éé": strings.Repeat("x", 58) + "é…"} {
		if got := escape(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	if (&SchemaError{Problem: "p"}).Error() != "schema: p" ||
		fmt.Sprint(&SchemaError{Path: "/a", Problem: "p"}) != "schema at /a: p" {
		t.Error("the text of an error")
	}
}

// The size of a grammar by hand: 16 bytes per instruction, 48 per stack, and for each state its table, its threads and
// its mask.
func TestSizeByHand(t *testing.T) {
	g := &Grammar{code: make([]inst, 100), words: 5,
		cache: &cache{stack: make([]frame, 10), states: map[string]*State{"a": nil, "b": nil, "c": nil}}}
	if got, want := g.Size(), 100*16+10*48+3*(2304+64+5*8); got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
}

// A type beside alternatives leaves none of them unread: what is not a schema is refused, and false allows nothing.
func TestAlternativesBesideAType(t *testing.T) {
	for _, name := range []string{"anyOf", "allOf"} {
		_, err := Compile([]byte(`{"type":"string","`+name+`":[3]}`), Limits{})
		if want := "schema at /" + name + "/0: must be an object or a boolean"; err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := Compile([]byte(`{"type":"string","anyOf":[{"minLength":1},null]}`), Limits{}); err == nil {
		t.Error("null is taken for a schema")
	}
	g := compiled(t, `{"type":"string","anyOf":[false,{"minLength":2},{"const":"x"},{"const":7}]}`)
	for text, want := range map[string]bool{`"ab"`: true, `"x"`: true, `"y"`: false, "7": false, "true": false} {
		if reads(g, text) != want {
			t.Errorf("%s is read: %v", text, !want)
		}
	}
}

// Every keyword that holds a schema nests it one deeper.
func TestDepthOfKeywords(t *testing.T) {
	for name, level := range map[string]string{
		"items": `{"type":"array","items":%s}`, "prefixItems": `{"type":"array","prefixItems":[%s]}`,
		"properties":           `{"type":"object","properties":{"a":%s}}`,
		"additionalProperties": `{"type":"object","additionalProperties":%s}`,
		"required":             `{"type":"object","required":["a"],"additionalProperties":%s}`,
		"anyOf":                `{"anyOf":[%s]}`, "oneOf": `{"oneOf":[%s]}`, "allOf": `{"allOf":[%s]}`,
	} {
		const inner = `{"type":"null"}`
		if name == "oneOf" { // its alternatives name their types
			level = `{"oneOf":[{"type":"array","items":%s}]}`
		}
		schema, depth := inner, 0
		for range 4 {
			schema = fmt.Sprintf(level, schema)
			if depth++; name == "oneOf" {
				depth++
			}
		}
		if _, err := Compile([]byte(schema), Limits{Depth: depth}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Compile([]byte(schema), Limits{Depth: depth - 1}); err == nil ||
			!strings.HasSuffix(err.Error(), fmt.Sprintf(": is nested deeper than %d", depth-1)) {
			t.Errorf("%s: %d levels: %v", name, depth, err)
		}
	}
	for schema, want := range map[string]string{
		`{"type":"text"}`: "schema: type must be one of object, array, string, number, integer, boolean, null, or a " +
			"list of them",
		`{"type":"string","anyOf":[{"minLength":1},{"pattern":"a"}]}`: `schema at /anyOf/1: "pattern" is not supported here`,
	} {
		if _, err := Compile([]byte(schema), Limits{}); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Members are read with and without a space after commas and colons, and with no other white space.
func TestGaps(t *testing.T) {
	for _, schema := range []string{`{"type":"object"}`,
		`{"type":"object","properties":{"a":{"type":"array"},"b":{"type":"null"}}}`} {
		g := compiled(t, schema)
		for text, want := range map[string]bool{`{"a":[1,2],"b":null}`: true, `{"a": [1, 2], "b": null}`: true,
			`{"a": [1,2],"b": null}`: true, `{ "a":[],"b":null}`: false, `{"a" :[],"b":null}`: false,
			`{"a":  [],"b":null}`: false, `{"a":[1 ,2],"b":null}`: false, `{"a":[],"b":null }`: false,
			`{"a":[],"b":null} `: false, ` {"a":[],"b":null}`: false, "{\"a\":\n[],\"b\":null}": false} {
			if reads(g, text) != want {
				t.Errorf("%s: %q is read: %v", schema, text, !want)
			}
		}
	}
}
