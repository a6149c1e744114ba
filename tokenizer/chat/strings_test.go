package chat

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// Methods, slices and tests of texts give what Python gives, counted in characters and not in bytes
// (tools/golden/strings_golden.py). Where Python raises an exception, rendering fails.
func TestStringsArePythons(t *testing.T) {
	b, err := os.ReadFile("testdata/strings.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]any // expression, s, a, n, repr of a list with the result or null
	if err := json.Unmarshal(b, &rows); err != nil {
		t.Fatal(err)
	}
	templates := map[string]*Template{}
	for _, row := range rows {
		expression := row[0].(string)
		tpl := templates[expression]
		if tpl == nil {
			if tpl, err = ParseText(fmt.Sprintf("{{ [%s] }}", expression)); err != nil {
				t.Fatalf("%s: %v", expression, err)
			}
			templates[expression] = tpl
		}
		got, err := tpl.RenderText(map[string]any{"s": row[1], "a": row[2], "n": int(row[3].(float64))})
		switch want, ok := row[4].(string); {
		case !ok && err == nil && got != "[Undefined]": // an item that is not there
			t.Errorf("%s with s %q, a %q, n %v gives %s; in Python it fails", expression, row[1], row[2], row[3], got)
		case ok && (err != nil || got != want):
			t.Errorf("%s with s %q, a %q, n %v gives %s, %v; Python has %s", expression, row[1], row[2], row[3],
				got, err, want)
		}
	}
}

// Loops and filters take a text by its characters, and an index from the end reaches the first item. Expected texts are
// jinja2's.
func TestCharacters(t *testing.T) {
	conv := Conversation{Messages: []Message{{"user", "日é"}}}
	for source, want := range map[string]string{
		"{% for c in messages[0].content %}{{ loop.index }}{{ c }},{% endfor %}": "1日,2é,",
		"{{ messages[-1].role }} {{ messages[-1]['role'] }}":                     "user user",
		"{{ messages[-2] is defined }} {{ messages[1] is defined }}":             "False False",
		"{{ messages[0]['content'][-2] }}{{ messages[0]['content'][1] }}":        "日é",
		"{{ messages[0].content[2] is defined }}":                                "False",
		"{{ 'aé日' | reverse }} {{ [1, 2] | reverse | list }}":                    "日éa [2, 1]",
		"{{ 'aé日' | join('-') }} {{ '-'.join('é日') }}":                           "a-é-日 é-日",
		"{{ 'é日' | first }}{{ 'é日' | last }}{{ 'é日' | length }}":                 "é日2",
		"{{ 'é日' | list }} {{ 'élan vital' | title }} {{ 'éA' | capitalize }}":   "['é', '日'] Élan Vital Éa",
	} {
		if got, err := render(source, conv); err != nil || got != want {
			t.Errorf("%s gives %q, %v; want %q", source, got, err, want)
		}
	}
}
