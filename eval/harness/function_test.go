package harness

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Documents that lack what a function of HellaSwag needs are refused by the field's name.
func TestHellaSwagNeedsItsFields(t *testing.T) {
	hella := func() map[string]any {
		return map[string]any{"activity_label": "A", "ctx_a": "a.", "ctx_b": "b",
			"endings": []any{"x", "y"}, "label": "1"}
	}
	doc := hella()
	if err := hellaSwag(doc); err != nil || doc["gold"] != 1 || len(doc["choices"].([]any)) != 2 {
		t.Errorf("%v, %v", doc, err)
	}
	for field, bad := range map[string]any{"activity_label": nil, "ctx_a": 3, "ctx_b": nil, "endings": "x",
		"label": "one"} {
		doc := hella()
		doc[field] = bad
		if err := hellaSwag(doc); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	doc = hella()
	doc["endings"] = []any{"x", 3}
	if err := hellaSwag(doc); err == nil || !strings.Contains(err.Error(), "ending 1") {
		t.Errorf("%v", err)
	}
}

// The same of COPA, and of an index of WSC.
func TestCopaNeedsItsFields(t *testing.T) {
	copa := map[string]any{"premise": "It rained.", "question": "cause", "choice1": "Clouds came.",
		"choice2": "It was dry.", "label": json.Number("1")}
	for label, want := range map[any]string{json.Number("0"): " clouds came.", json.Number("1"): " it was dry."} {
		copa["label"] = label
		if got, err := copaTarget(copa); err != nil || got != want {
			t.Errorf("%v: %v, %v", label, got, err)
		}
	}
	for _, field := range []string{"premise", "question"} {
		less := map[string]any{}
		for k, v := range copa {
			if k != field {
				less[k] = v
			}
		}
		if _, err := copaText(less); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := wscText(map[string]any{"text": "a b", "span1_text": "a", "span2_text": "b",
		"span2_index": "x"}); err == nil || !strings.Contains(err.Error(), "span2_index") {
		t.Errorf("%v", err)
	}
}

// WinoGrande: a sentence has a blank, the target is what follows it, and the answer is 1 or 2.
func TestWinograndeFields(t *testing.T) {
	for sentence, good := range map[string]bool{"a _ b": true, "a b": false} {
		if _, _, err := blank(map[string]any{"sentence": sentence}); (err == nil) != good {
			t.Errorf("%s: %v", sentence, err)
		}
	}
	after := fieldFunctions["preprocess_winogrande.doc_to_target"]
	for sentence, want := range map[string]string{"a _ b": "b", "a _\t b c \n": "b c", "a _": "", "_ b _ c": "b _ c"} {
		if got, err := after.apply(map[string]any{"sentence": sentence}); err != nil || got != want {
			t.Errorf("%q ends with %q, %v; want %q", sentence, got, err, want)
		}
	}
	for name, answer := range map[string]bool{"1": true, "2": true, "3": false, "": false} {
		f := fieldFunctions["preprocess_winogrande.doc_to_text"]
		if got, err := f.apply(map[string]any{"answer": name}); (err == nil) != answer || answer &&
			fmt.Sprint(got) != fmt.Sprint(name[0]-'1') {
			t.Errorf("%q: %v, %v", name, got, err)
		}
	}
}

// A function is found by its full name, by the name of the task or by that of the folder.
func TestFindFunction(t *testing.T) {
	for _, c := range []struct {
		task, folder, name string
		want               string
	}{{"x", "y", "hellaswag.utils.process_docs", "hellaswag.utils.process_docs"},
		{"hellaswag", "y", "utils.process_docs", "hellaswag.utils.process_docs"},
		{"x", "hellaswag", "utils.process_docs", "hellaswag.utils.process_docs"},
		{"x", "y", "utils.process_docs", ""}} {
		s := &spec{name: c.task}
		for range 2 { // a function that is used twice is named once
			if f, err := find(s, c.folder, "process_docs", function(c.name),
				docFunctions); (f != nil) != (c.want != "") || (err == nil) != (f != nil) ||
				strings.Join(s.functions, " ") != c.want {
				t.Errorf("%+v: %v, %v, %q", c, f, err, s.functions)
			}
		}
	}
}
