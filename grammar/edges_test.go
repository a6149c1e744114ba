package grammar

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// numbered makes n texts with a verb for their number, joined by commas.
func numbered(n int, format string) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(format, i))
	}
	return strings.Join(list, ",")
}

// A list of values longer than the parses that are followed is read whole, in whatever order it is written and
// whichever values are the beginning of others.
func TestLongEnum(t *testing.T) {
	g := compiled(t, `{"enum":[`+numbered(2100, `%d`)+`,`+numbered(2100, `"v%d"`)+`,"","v","w",true,null,"<&>","v"]}`)
	for i := range 2105 {
		for _, text := range []string{fmt.Sprint(i), fmt.Sprintf(`"v%d"`, i)} {
			if reads(g, text) != (i < 2100) {
				t.Errorf("%s is read: %v", text, i >= 2100)
			}
		}
	}
	for text, want := range map[string]bool{`""`: true, `"v"`: true, `"w"`: true, "true": true, "null": true,
		`"<&>"`: true, `"v`: false, `"w1"`: false, "tru": false, "false": false, "00": false, `"x"`: false, "": false} {
		if reads(g, text) != want {
			t.Errorf("%s is read: %v", text, !want)
		}
	}
}

// Alternatives and optional properties are refused where not all of them could be followed, and all read otherwise.
func TestManyAlternatives(t *testing.T) {
	for schema, problem := range map[string]string{
		`{"anyOf":[` + numbered(1024, `{"const":"v%d"}`) + `]}`: "",
		`{"anyOf":[` + numbered(1025, `{"const":"v%d"}`) +
			`]}`: "anyOf has more than 1024 alternatives",
		`{"type":"object","properties":{` + numbered(1024, `"v%d":true`) + `}}`: "",
		`{"type":"object","properties":{` + numbered(1025, `"v%d":true`) +
			`}}`: "has more than 1024 optional properties in a row",
		`{"type":"object","properties":{` + numbered(1300, `"v%d":true`) + `},"required":["v9","v300"]}`: "",
	} {
		g, err := Compile([]byte(schema), Limits{})
		var e *SchemaError
		if errors.As(err, &e); problem != "" && (e == nil || e.Problem != problem) || problem == "" && err != nil {
			t.Errorf("%.60s: %v, want %q", schema, err, problem)
		}
		if err != nil {
			continue
		}
		for i := 0; i < 1024; i += 31 {
			text := fmt.Sprintf(`"v%d"`, i)
			if strings.Contains(schema, "object") {
				text = "{" + text + ":1}"
			}
			if strings.Contains(schema, "required") {
				text = fmt.Sprintf(`{"v9":1,"v300":1,"v%d":1}`, 301+i%999)
			}
			if !reads(g, text) {
				t.Fatalf("%.60s: %s is not read", schema, text)
			}
		}
	}
}

// Limits that are left out have their defaults, and each limit says what was exceeded.
func TestLimitsInWords(t *testing.T) {
	l := Limits{}
	if l.complete(); l != (Limits{Depth: 32, Nodes: 4096, Code: 65536, Length: 4096, Time: time.Second}) {
		t.Errorf("%+v", l)
	}
	l = Limits{1, 2, 3, 4, 5}
	if l.complete(); l != (Limits{1, 2, 3, 4, 5}) {
		t.Errorf("%+v", l)
	}
	chain := `{"$ref":"#/$defs/0","$defs":{` // each definition nests in the one before it
	for i := range 6 {
		chain += fmt.Sprintf(`"%d":{"type":"array","items":{"$ref":"#/$defs/%d"}},`, i, i+1)
	}
	chain += `"6":{"type":"null"}}}`
	for want, c := range map[string]struct {
		schema string
		l      Limits
	}{
		"schema: is too large": {`{"type":"string","maxLength":100}`, Limits{Code: 100}},
		"schema: has more than 2 schemas": {
			`{"type":"array","items":{"type":"array","items":{"type":"null"}}}`, Limits{Nodes: 2}},
		"schema at /items/items: is nested deeper than 1": {
			`{"type":"array","items":{"type":"array","items":{"type":"null"}}}`, Limits{Depth: 1}},
		"schema at /$defs/1: is nested deeper than 2":         {chain, Limits{Depth: 2}},
		"schema: takes too long to compile":                   {`{"type":"null"}`, Limits{Time: -1}},
		"schema: maxItems must be a whole number from 0 to 7": {`{"type":"array","maxItems":8}`, Limits{Length: 7}},
	} {
		_, err := Compile([]byte(c.schema), c.l)
		var e *SchemaError
		if !errors.As(err, &e) || "schema: "+e.Problem != want && err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Schemas that refer to themselves with nothing in between, in a part of the schema and by way of others; and keywords
// that restrict nothing.
func TestLoopsAndAnnotations(t *testing.T) {
	const (
		loop = "refers to itself with nothing in between"
		list = `{"type":"array","items":{"$ref":"#/$defs/a"},"$defs":`
	)
	for schema, problem := range map[string]string{
		list + `{"a":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/a"}]}}}`:                      loop,
		list + `{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"allOf":[{"$ref":"#/$defs/a"}]}}}`: loop,

		`{"anyOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}],"$defs":{"a":{"type":"null"}}}`:               "",
		`{"type":"object","properties":{"a":{"$ref":"#"},"b":{"$ref":"#"}}}`:                                "",
		`{"type":"null","example":1,"discriminator":{"propertyName":"x"},"$defs":{},"definitions":{"x":1}}`: "",
		`{"type":"number","oneOf":[{"type":"string"}]}`: "an alternative of oneOf has types other than number, which " +
			"type beside it excludes",
		`{"type":["null","array"],"allOf":[{"type":"string"}]}`: "an alternative of allOf has types other than null " +
			"and array, which type beside it excludes",
		`{"type":"string","anyOf":[{"type":["string",3]}]}`: "type must be one of object, array, string, number, " +
			"integer, boolean, null, or a list of them",
		`{"$ref":"/$defs/a","$defs":{"a":{"type":"null"}}}`: "$ref must be a pointer within the schema, such as " +
			"#/$defs/name",
		`{"$ref":"$defs/a","$defs":{"a":{"type":"null"}}}`: "$ref must be a pointer within the schema, such as " +
			"#/$defs/name",
		`{"$ref":"#x","$defs":{},"title":"","":{"type":"null"}}`: "$ref must be a pointer within the schema, such as " +
			"#/$defs/name",
		`{"$ref":"#/$defs/b","$defs":{"a":{"type":"null"}}}`: "$ref \"#/$defs/b\" names nothing",
		`{"$ref":"#/$defs/a/b","$defs":{"a":true}}`:          "$ref \"#/$defs/a/b\" names nothing",
	} {
		_, err := Compile([]byte(schema), Limits{})
		var e *SchemaError
		if errors.As(err, &e); (e == nil) != (problem == "") || e != nil && e.Problem != problem {
			t.Errorf("%s: %v, want %q", schema, err, problem)
		}
	}
	if g := compiled(t, `{"type":"integer","enum":[1e30,-1e300,0.5,1e-1]}`); !reads(g, "1e30") || !reads(g, "-1e300") ||
		reads(g, "0.5") || reads(g, "1e-1") {
		t.Error("whole numbers beyond 64 bits")
	}
}

// One grammar serves many texts at once: all read what they would alone.
func TestConcurrentTexts(t *testing.T) {
	g, v := compiled(t, `true`), words()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for k := range 6 {
				text := strings.Repeat("[", i+k+1) + fmt.Sprint(i) + strings.Repeat("]", i+k+1)
				m := g.NewMatcher(v)
				if !follow(m, text) || !m.state.accept || g.Size() == 0 {
					t.Errorf("%s is refused", text)
				}
			}
		})
	}
	wg.Wait()
}

// A token that the mask forbids is not accepted, and a grammar with too many stacks starts anew.
func TestForbiddenTokens(t *testing.T) {
	v := words()
	few := NewVocabulary([][]byte{[]byte("{"), nil}, nil) // an id without bytes is none of the others
	for id, v := range map[int32]*Vocabulary{'x' + 1: v, -1: v, int32(v.size): v, int32(v.size) + 5: v,
		1: few, 2: few} {
		m := compiled(t, `{"type":"object"}`).NewMatcher(v)
		func() {
			defer func() {
				if r := recover(); r != "grammar: a token was accepted that the mask forbids" {
					t.Errorf("token %d was accepted: %v", id, r)
				}
			}()
			m.Accept(id)
		}()
	}
	g := compiled(t, `true`)
	for size, fresh := range map[int]bool{1 << 16: false, 1<<16 + 1: true} {
		g.reset()
		g.cache.stack = slices.Repeat([]frame{{}}, size)
		if g.NewMatcher(v); (len(g.cache.stack) < size) != fresh {
			t.Errorf("%d stacks are kept: %v", size, fresh)
		}
	}
}

// A program is refused from one instruction fewer than it has, a schema from one level deeper than can be parsed, and
// one whose shortest text needs one call more than are followed.
func TestExactLimits(t *testing.T) {
	for _, schema := range schemas {
		n := len(compiled(t, schema).code)
		for code, good := range map[int]bool{n: true, n - 1: false} {
			if _, err := Compile([]byte(schema), Limits{Code: code}); (err == nil) != good {
				t.Errorf("%.60s: %d instructions of %d: %v", schema, code, n, err)
			}
		}
	}
	for depth, good := range map[int]bool{200: true, 201: false} {
		schema := `{"const":` + strings.Repeat("[", depth-1) + "1" + strings.Repeat("]", depth-1) + "}"
		if _, err := Compile([]byte(schema), Limits{}); (err == nil) != good {
			t.Errorf("values nested %d deep: %v", depth, err)
		}
	}
	for n, good := range map[int]bool{maxDepth - 1: true, maxDepth: true, maxDepth + 1: false} {
		schema := strings.Repeat(`{"type":"array","minItems":1,"items":`, n-1) + `{"type":"null"}` +
			strings.Repeat("}", n-1)
		g, err := Compile([]byte(schema), Limits{Depth: 1000})
		if (err == nil) != good {
			t.Errorf("lists nested %d deep: %v", n, err)
		}
		if good && !reads(g, strings.Repeat("[", n-1)+"null"+strings.Repeat("]", n-1)) {
			t.Errorf("lists nested %d deep are not read", n)
		}
	}
}

// A state holds each parse of a text once, in order, and no more of them than the limit, however many ways there are to
// read the text.
func TestParsesOfAState(t *testing.T) {
	two := `{"type":"array","items":{"$ref":"#"}}`
	for schema, most := range map[string]int{
		// Twice as many with each bracket.
		`{"anyOf":[` + two + `,` + two + `,{"type":"null"}]}`: maxThreads,

		`{"anyOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"},{"type":"array","items":{"$ref":"#"}}],` +
			`"$defs":{"a":{"type":"null"}}}`: 40,
		`{"type":"array"}`: 40,
	} {
		g := compiled(t, schema)
		g.mu.Lock()
		s, largest := g.start(), 0
		for _, b := range []byte(strings.Repeat("[", 13) + strings.Repeat("null,", 12) + "null]") {
			if s = g.step(s, b); s == nil {
				t.Fatalf("%s: %c is refused", schema, b)
			}
			for i, p := range s.threads {
				if i > 0 && (s.threads[i-1].pc > p.pc || s.threads[i-1].pc == p.pc && s.threads[i-1].stack >= p.stack) {
					t.Fatalf("%s: parse %d is %v after %v", schema, i, p, s.threads[i-1])
				}
			}
			largest = max(largest, len(s.threads))
		}
		g.mu.Unlock()
		if largest > most || most == maxThreads && largest != most {
			t.Errorf("%s: %d parses, want at most %d", schema, largest, most)
		}
	}
}
