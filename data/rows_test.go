package data

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// Rows of Parquet, of JSON lines and of a JSON list are the same, nested ones and whole floats included.
func TestRows(t *testing.T) {
	type choices struct {
		Text  []string `parquet:"text,list"`
		Label []string `parquet:"label,list"`
	}
	type row struct {
		ID      string  `parquet:"id"`
		N       int64   `parquet:"n"`
		F       float64 `parquet:"f"`
		Flag    bool    `parquet:"flag"`
		Choices choices `parquet:"choices"`
		Note    *string `parquet:"note,optional"`
	}
	dir := t.TempDir()
	note := "x"
	if err := parquet.WriteFile(filepath.Join(dir, "a.parquet"), []row{
		{"a", 3, 2, true, choices{[]string{"x", "it's"}, []string{"A", "B"}}, &note},
		{"b", -4, 1.5, false, choices{[]string{"é"}, []string{}}, nil}}); err != nil {
		t.Fatal(err)
	}
	const one = `{"id": "a", "n": 3, "f": 2.0, "flag": true, "choices": {"text": ["x", "it's"], "label": ["A", "B"]}, "note": "x"}`
	const two = `{"id": "b", "n": -4, "f": 1.5, "flag": false, "choices": {"text": ["é"], "label": []}, "note": null}`
	for name, text := range map[string]string{"a.jsonl": one + "\n\n" + two + "\n", "a.json": "[" + one + ", " + two +
		"]", "b.json": one + "\n" + two} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) (out []map[string]any) {
		if err := Rows(filepath.Join(dir, name),
			func(_ int, r map[string]any) error { out = append(out, r); return nil }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return out
	}
	want := read("a.jsonl")
	if len(want) != 2 || want[0]["f"] != json.Number("2.0") {
		t.Fatalf("%v", want)
	}
	for _, name := range []string{"a.json", "b.json", "a.parquet"} {
		if got := read(name); !reflect.DeepEqual(got, want) {
			t.Errorf("%s has %v\nwant %v", name, got, want)
		}
	}
	for name, text := range map[string]string{"list.json": "[1]", "cut.json": `[{"a": 1}, {"b"`, "cut.jsonl": `{"a"`,
		"no.jsonl": "null\n", "no.parquet": "PAR1"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := Rows(path, func(int, map[string]any) error { return nil }); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
