package chat

import (
	"encoding/json"
	"os"
	"testing"
)

// Expressions, filters, tests, statements and white space give what jinja2 gives, in both kinds of templates
// (tools/golden/jinja_golden.py). Where it raises an exception, rendering fails.
func TestJinja(t *testing.T) {
	b, err := os.ReadFile("testdata/jinja.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Vars       map[string]json.RawMessage
		Messages   json.RawMessage
		Text, Chat [][2]*string
	}
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	vars := map[string]any{}
	for name, v := range golden.Vars {
		vars[name] = v
	}
	inText := func(source string) (string, error) {
		tpl, err := ParseText(source)
		if err != nil {
			return "", err
		}
		return tpl.RenderText(vars)
	}
	inChat := func(source string) (string, error) {
		return render(source, Conversation{Messages: golden.Messages, Vars: vars})
	}
	for kind, rows := range map[string][][2]*string{"text": golden.Text, "chat": golden.Chat} {
		if len(rows) < 300 {
			t.Errorf("%d templates of kind %s", len(rows), kind)
		}
		for _, row := range rows {
			try := inText
			if kind == "chat" {
				try = inChat
			}
			got, err := try(*row[0])
			switch want := row[1]; {
			case want == nil && err == nil:
				t.Errorf("%s: %s gives %q; in jinja2 it fails", kind, *row[0], got)
			case want != nil && (err != nil || got != *want):
				t.Errorf("%s: %s\n got %q, %v\nwant %q", kind, *row[0], got, err, *want)
			}
		}
	}
}
