package grammar

import (
	"strings"
	"testing"
)

// Calls nest at most maxDepth deep. A text may open as many levels as can still be closed, and no more: what the
// innermost value needs is counted before it is entered.
func TestDeepestText(t *testing.T) {
	for _, c := range []struct {
		schema      string
		open, close string // of one level
		inner       string // of the innermost level
		levels      int    // the most
		turn        string // closes what was read of one level more before it was refused
	}{
		// A value of any kind is one call, and so is each character of a string.
		{`true`, "[", "]", "", maxDepth, ""},
		{`true`, "[", "]", "1", maxDepth - 1, "]"},
		{`true`, "[", "]", `"a"`, maxDepth - 2, `"]`},
		{`true`, `{"a":`, "}", "[]", maxDepth - 1, "}"},
		// The items and their reference.
		{`{"type":"array","items":{"$ref":"#"}}`, "[", "]", "", maxDepth / 2, ""},
		// An alternative, its items and their reference; the 7 is an alternative of the innermost reference.
		{`{"anyOf":[{"type":"array","items":{"$ref":"#"},"minItems":1},{"const":7}]}`, "[", "]", "7", 42, "7"},
		// A property, its value, an alternative and its reference.
		{`{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["a"]}`, `{"a":`, "}",
			"null", maxDepth / 4, "null"},
		// A property, its value and its reference; the 1 takes two references more, so the last levels cannot be used.
		{`{"type":"object","properties":{"b":{"$ref":"#"},"a":{"$ref":"#/$defs/x"}},"required":["a"],
			"$defs":{"x":{"$ref":"#/$defs/y"},"y":{"$ref":"#/$defs/z"},"z":{"const":1}}}`,
			`{"b":`, `,"a":1}`, `{"a":1}`, 40, `a":1}`},
		// The same with a property before it that needs little: what comes after it still counts.
		{`{"type":"object","properties":{"n":{"const":0},"b":{"$ref":"#"},"a":{"$ref":"#/$defs/x"}},"required":["n","a"],
			"$defs":{"x":{"$ref":"#/$defs/y"},"y":{"$ref":"#/$defs/z"},"z":{"const":1}}}`,
			`{"n":0,"b":`, `,"a":1}`, `{"n":0,"a":1}`, 40, `a":1}`},
	} {
		g := compiled(t, c.schema)
		for _, n := range []int{1, c.levels - 1, c.levels, c.levels + 1} {
			text := strings.Repeat(c.open, n) + c.inner + strings.Repeat(c.close, n)
			if reads(g, text) != (n <= c.levels) {
				t.Errorf("%s: %d levels around %q are read: %v", c.schema, n, c.inner, n > c.levels)
			}
		}
		text := strings.Repeat(c.open, c.levels+1) + c.inner
		g.mu.Lock()
		at := 0
		for s := g.start(); at < len(text); at++ {
			if s = g.step(s, text[at]); s == nil {
				break
			}
		}
		g.mu.Unlock()
		if text = text[:at] + c.turn + strings.Repeat(c.close, c.levels); !reads(g, text) {
			t.Errorf("%s: after %d bytes the text cannot be finished", c.schema, at)
		}
	}
}
