package grammar

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func compiled(t *testing.T, schema string) *Grammar {
	t.Helper()
	g, err := Compile([]byte(schema), Limits{})
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return g
}

// holds reports whether the validator accepts a text.
func holds(t *testing.T, schema, text string) bool {
	t.Helper()
	var s, v any
	if err := json.Unmarshal([]byte(schema), &s); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return validate(s, s, v) == nil
}

// Every combination of the keywords of arrays, with every list of up to four entries: read if it is valid and has all
// of prefixItems.
func TestEveryArray(t *testing.T) {
	entries := []string{`1`, `"a"`}
	lists := []string{"[]"}
	var grow func(list []string)
	grow = func(list []string) {
		if len(list) > 0 {
			lists = append(lists, "["+strings.Join(list, ",")+"]")
		}
		if len(list) < 4 {
			for _, e := range entries {
				grow(append(list[:len(list):len(list)], e))
			}
		}
	}
	grow(nil)
	for _, items := range []string{"", `,"items":{"type":"integer"}`, `,"items":{"type":"string"}`, `,"items":true`,
		`,"items":false`} {
		for prefix, head := range []string{"", `,"prefixItems":[{"type":"string"}]`,
			`,"prefixItems":[{"type":"string"},{"type":"integer"}]`} {
			for lo := -1; lo < 4; lo++ {
				for hi := -1; hi < 4; hi++ {
					schema := `{"type":"array"` + items + head
					if lo >= 0 {
						schema += fmt.Sprintf(`,"minItems":%d`, lo)
					}
					if hi >= 0 {
						schema += fmt.Sprintf(`,"maxItems":%d`, hi)
					}
					schema += "}"
					impossible := hi >= 0 && (lo > hi || prefix > hi) || strings.Contains(items, "false") && lo > prefix
					g, err := Compile([]byte(schema), Limits{})
					if (err != nil) != impossible {
						t.Errorf("%s: %v", schema, err)
					}
					if err != nil {
						continue
					}
					for _, list := range lists {
						var v []any
						_ = json.Unmarshal([]byte(list), &v)
						closed := strings.Contains(items, "false") && len(v) > prefix
						if want := holds(t, schema, list) && len(v) >= prefix && !closed; reads(g, list) != want {
							t.Errorf("%s: %s is read: %v", schema, list, !want)
						}
					}
				}
			}
		}
	}
}

// memberLists are all objects with members of three names in every order, and the names of each.
func memberLists() (texts []string, orders [][]string) {
	var grow func(list, values []string)
	grow = func(list, values []string) {
		var members []string
		for i := range list {
			members = append(members, fmt.Sprintf("%q:%s", list[i], values[i]))
		}
		texts, orders = append(texts, "{"+strings.Join(members, ",")+"}"), append(orders, list)
		for _, n := range []string{"a", "b", "c"} {
			if !strings.Contains(strings.Join(list, ""), n) {
				for _, v := range []string{"1", `"x"`} {
					grow(append(list[:len(list):len(list)], n), append(values[:len(values):len(values)], v))
				}
			}
		}
	}
	grow(nil, nil)
	return texts, orders
}

// objectSchema is a schema of objects and the order of its members: that of properties, then of further required names.
func objectSchema(props, required []string, more string) (schema, order string) {
	schema = `{"type":"object"`
	var list []string
	for _, p := range props {
		list = append(list, fmt.Sprintf(`%q:{"type":"string"}`, p))
	}
	if props != nil {
		schema += `,"properties":{` + strings.Join(list, ",") + "}"
	}
	if required != nil {
		schema += `,"required":["` + strings.Join(required, `","`) + `"]`
	}
	if more != "" {
		schema += `,"additionalProperties":` + more
	}
	order = strings.Join(props, "")
	for _, r := range required {
		if !strings.Contains(order, r) {
			order += r
		}
	}
	return schema + "}", order
}

// Every combination of the keywords of objects, with every list of members of three names in every order.
func TestEveryObject(t *testing.T) {
	texts, orders := memberLists()
	for _, props := range [][]string{nil, {"a"}, {"b", "a"}} {
		for _, required := range [][]string{nil, {"a"}, {"b"}, {"c"}, {"c", "a"}} {
			for _, more := range []string{"", "true", "false", `{"type":"integer"}`} {
				schema, order := objectSchema(props, required, more)
				g, err := Compile([]byte(schema), Limits{})
				if refused := more == "false" && len(order) > len(props); (err != nil) != refused {
					t.Errorf("%s: %v", schema, err)
				}
				if err != nil {
					continue
				}
				for i, text := range texts {
					want, at := holds(t, schema, text), -1
					for _, n := range orders[i] { // names outside the order are read only if it is empty
						next := strings.Index(order, n)
						if order != "" && next <= at {
							want = false
						}
						at = next
					}
					if more == "false" && order == "" && len(orders[i]) > 0 {
						want = false
					}
					if reads(g, text) != want {
						t.Errorf("%s: %s is read: %v", schema, text, !want)
					}
				}
			}
		}
	}
}

// Pointers of $ref, as RFC 6901 escapes them, into objects and lists.
func TestPointers(t *testing.T) {
	const doc = `{"$ref":%q,"$defs":{"a/b":{"enum":[1]},"~":{"enum":[2]},"~1":{"enum":[3]},"/":{"enum":[4]},"l":[{"enum":[8]},{"enum":[5]}],"":{"enum":[6]},"~0":{"enum":[7]}}}`
	for pointer, want := range map[string]string{
		"#/$defs/a~1b": "1", "#/$defs/~0": "2", "#/$defs/~01": "3", "#/$defs/~1": "4", "#/$defs/l/1": "5",
		"#/$defs/l/0": "8", "#/$defs/": "6", "#/$defs/~00": "7",
	} {
		g := compiled(t, fmt.Sprintf(doc, pointer))
		for n := range 9 {
			if text := fmt.Sprint(n); reads(g, text) != (text == want) {
				t.Errorf("%s: %s is read: %v", pointer, text, text != want)
			}
		}
	}
	for _, pointer := range []string{"#/$defs/l/2", "#/$defs/l/-1", "#/$defs/l/x", "#/$defs/none",
		"#/$defs/l/1/enum/0/x"} {
		if _, err := Compile(fmt.Appendf(nil, doc, pointer), Limits{}); err == nil {
			t.Errorf("%s leads somewhere", pointer)
		}
	}
}

// Lengths of strings are counted in characters, on both sides of each bound; values of enum and const are read as they
// are written and no others.
func TestEveryLength(t *testing.T) {
	for lo := -1; lo < 4; lo++ {
		for hi := -1; hi < 4; hi++ {
			if hi >= 0 && lo > hi {
				continue
			}
			schema := `{"type":"string"`
			if lo >= 0 {
				schema += fmt.Sprintf(`,"minLength":%d`, lo)
			}
			if hi >= 0 {
				schema += fmt.Sprintf(`,"maxLength":%d`, hi)
			}
			g := compiled(t, schema+"}")
			for n := range 6 {
				for _, char := range []string{"a", "é", "日", "𝄞", `\n`, `\"`, `\u00e9`} {
					want := n >= lo && (hi < 0 || n <= hi)
					if text := `"` + strings.Repeat(char, n) + `"`; reads(g, text) != want {
						t.Errorf("%s}: %s is read: %v", schema, text, !want)
					}
				}
			}
		}
	}
	values := []string{`1`, `-2.5`, `"a"`, `"\""`, `true`, `false`, `null`, `[]`, `[1,"a"]`, `{}`, `{"k":[null]}`}
	for _, v := range values {
		for _, schema := range []string{`{"const":` + v + `}`, `{"enum":[` + v + `]}`} {
			g := compiled(t, schema)
			for _, text := range values {
				if reads(g, text) != (text == v) {
					t.Errorf("%s: %s is read: %v", schema, text, text != v)
				}
			}
		}
	}
	for kind, good := range map[string]string{"integer": "1 -2 0 10", "number": "1 -2 0 10 1.5 -0.25 1e5 2E-3",
		"boolean": "true false", "null": "null", "string": `"" "a"`, "array": `[] [1]`, "object": `{} {"a":1}`} {
		g := compiled(t, fmt.Sprintf(`{"type":%q}`, kind))
		for _, text := range strings.Fields(`1 -2 0 10 1.5 -0.25 1e5 2E-3 true false null "" "a" [] [1] {} {"a":1} 01
			-01 1. .5 +1 - 1e "a a" tru nul`) {
			want := strings.Contains(" "+good+" ", " "+text+" ")
			if reads(g, text) != want {
				t.Errorf("%s: %s is read: %v", kind, text, !want)
			}
		}
	}
}
