package chat

import (
	"encoding/json"
	"strings"
	"testing"
)

// Values are printed as Jinja prints them, white space stays, and lists can be searched. Expected texts are jinja2's.
func TestText(t *testing.T) {
	vars := map[string]any{"q": "  a b", "n": 3, "x": json.Number("1.0"), "yes": true, "none": nil,
		"texts": []string{"it's", `say "it's"`, "né\n"}, "choices": map[string]any{"label": []string{"A", "B"}},
		"key": "B", "w": "Très light: a light"}
	for _, c := range []struct{ source, want string }{
		{"{{q}}\nAnswer:\n", "  a b\nAnswer:\n"},
		{"{{n}} {{x}} {{yes}} {{none}}", "3 1.0 True None"},
		{"{{texts}}", `["it's", 'say "it\'s"', 'né\n']`},
		{"{{choices.label.index(key)}}", "1"},
		{"{{[q, n]}}", "['  a b', 3]"},
		{"{{q.lstrip()}}{{q.split(' ')[:-1]|join(' ')}}|{{' '+q.split(' ')[-1]}}", "a b  a| b"},
		{"{{w[5:10]}}", "light"},
		{"{% if n == 3 %}\n  yes\n{% endif %}\n", "\n  yes\n\n"},
		{"{{q|regex_replace('(a) ', '\\\\1-')}}", "  a-b"},
	} {
		tpl, err := ParseText(c.source)
		if err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		if got, err := tpl.RenderText(vars); err != nil || got != c.want {
			t.Errorf("%s gives %q, %v; want %q", c.source, got, err, c.want)
		}
	}
	tpl, err := ParseText("{{absent}}")
	if err == nil {
		_, err = tpl.RenderText(vars)
	}
	if err == nil || !strings.Contains(err.Error(), "absent") {
		t.Errorf("an unknown name gives %v", err)
	}
}
