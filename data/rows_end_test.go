package data

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// Rows are counted from 1, and text after a row or after a list is an error: it would be dropped without a word. So is
// text that the decoder would change.
func TestRowsEnd(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ name, text, rows, want string }{
		{"a.jsonl", "{\"a\":1}\n\n{\"a\":2}\n", "1:1 3:2", ""}, {"b.json", `[{"a":1},{"a":2}]` + "\n", "1:1 2:2", ""},
		{"c.json", "{\"a\":1}\n{\"a\":2}", "1:1 2:2", ""}, {"d.json", "[]", "", ""},
		{"e.jsonl", `{"a":1} {"a":2}`, "", "line 1: there is more after the object"},
		{"f.jsonl", "{\"a\":1}\n{\"a\":2}]", "1:1", "line 2: there is more after the object"},
		{"g.json", `[{"a":1}] {"a":2}`, "1:1", "there is more after the list"},
		{"h.json", `[{"a":1}]]`, "1:1", "there is more after the list"},
		{"i.json", `[{"a":1}`, "1:1", "after element 1: "},
		{"j.json", `[{"a":1}, 2]`, "1:1", "element 2: want an object, found a number"},
		{"k.json", `[null]`, "", "element 1: want an object, found null"},
		{"l.jsonl", `{"a":1,"b":"\ud83d\ude00"}` + "\n" + `{"a":2,"b":"\ud83d"}`, "1:1",
			`line 2: \ud83d stands without`},
		{"m.json", `[{"a":1}, {"a":2,"b":["\ude00"]}]`, "1:1", `element 2: \ude00 stands without`},
		{"n.jsonl", "{\"a\":1}\n{\"a\":2,\"b\":\"\xe9\"}", "1:1", "line 2: is not UTF-8"},
		{"o.json", "[{\"a\":\"\xe9\"}]", "", "element 1: is not UTF-8"},
	} {
		path := filepath.Join(dir, c.name)
		write(t, path, []byte(c.text))
		var got []string
		err := Rows(path, func(n int, row map[string]any) error {
			got = append(got, fmt.Sprintf("%d:%v", n, row["a"]))
			return nil
		})
		if strings.Join(got, " ") != c.rows || (err == nil) != (c.want == "") || err != nil &&
			(!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.name)) {
			t.Errorf("%s: rows %q, %v; want %q and %q", c.text, got, err, c.rows, c.want)
		}
	}
}
