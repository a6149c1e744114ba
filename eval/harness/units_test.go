package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"antiphase/eval"
	"antiphase/internal/vfs"
	"antiphase/tokenizer/chat"
)

// The file of a split: the data set's configuration before the set, the full path before the last part, one file before
// several, endings in their order; several files are read in order.
func TestSplitFiles(t *testing.T) {
	root := t.TempDir()
	s := &source{path: "org/set", name: "main"}
	p := &eval.Plan{Options: &eval.Options{Data: root}}
	find := func() string {
		list, err := s.paths(p, "test")
		if err != nil {
			return "none"
		}
		for i := range list {
			list[i], _ = filepath.Rel(root, list[i])
			list[i] = filepath.ToSlash(list[i])
		}
		return strings.Join(list, " ")
	}
	if got := find(); got != "none" {
		t.Errorf("found %s", got)
	}
	// Each of these comes before those above it.
	for _, name := range []string{"set/test.parquet", "set/main/test.parquet", "org/set/test.parquet",
		"org/set/test.json", "org/set/main/test-00001.parquet org/set/main/test-00002.parquet",
		"org/set/main/test.parquet", "org/set/main/test.json", "org/set/main/test.jsonl", "org/set/main/test.jsonl.gz",
		"org/set/main/test.jsonl.zst"} {
		for _, f := range slices.Backward(strings.Fields(name)) {
			write(t, filepath.Join(root, f), "x")
		}
		write(t, filepath.Join(root, "org/set/main/train.jsonl"), "x")
		if got := find(); got != name {
			t.Errorf("found %s, want %s", got, name)
		}
	}
	for _, bad := range []*source{{path: "../set"}, {path: "/etc"}, {path: "org", name: "../../x"}} {
		if list, err := bad.paths(p, "test"); err == nil {
			t.Errorf("%+v leads to %v", bad, list)
		}
	}
	if list, err := s.paths(p, "../test"); err == nil {
		t.Errorf("a split leads to %v", list)
	}
	if _, err := (&source{path: "other/one", name: "x"}).paths(p, "test"); err == nil ||
		!strings.Contains(filepath.ToSlash(err.Error()),
			strings.ReplaceAll("in R/other/one/x, R/other/one, R/one/x, R/one; want ", "R", filepath.ToSlash(root))) {
		t.Errorf("folders that are not there: %v", err)
	}
	if _, err := s.paths(&eval.Plan{Options: &eval.Options{}}, "test"); err == nil ||
		!strings.Contains(err.Error(), "DATA/org/set/main/test.jsonl") {
		t.Errorf("no data: %v", err)
	}
}

// Where documents lie, as a task file may say it; without --data nothing outside of the task files' folder is read.
func TestDataOfATask(t *testing.T) {
	for kwargs, want := range map[string]string{
		"{trust_remote_code: true}": "", "{data_files: d.jsonl}": "", "{data_files: [d.jsonl]}": "",
		"{data_files: {test: d.jsonl}}": "", "{}": "",
		"{revision: main}": `key "revision" is not supported`, "{split: {a: b}}": `key "split" is not supported`,
		"{data_files: []}": `key "data_files" is not supported`,
	} {
		file := filepath.Join(t.TempDir(), "t.yaml")
		write(t, file, "dataset_path: json\ndataset_kwargs: "+kwargs+"\n")
		v, err := parseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		k := &keys{object: v}
		if readSource(k, ".", "."); (k.err == nil) != (want == "") || k.err != nil &&
			!strings.Contains(k.err.Error(), want) {
			t.Errorf("%s: %v, want %q", kwargs, k.err, want)
		}
	}
	dir, here := t.TempDir(), t.TempDir()
	t.Chdir(here)
	write(t, filepath.Join(here, "d.jsonl"), pupils)
	s := &source{dir: dir, root: dir}
	if found, err := s.glob(&eval.Plan{Options: &eval.Options{}}, filepath.Join(here, "d.jsonl")); err == nil {
		t.Errorf("%v is outside, and there is no --data", found)
	}
	if _, err := s.glob(&eval.Plan{Options: &eval.Options{}}, "a\x00b"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a name that no file can have: %v", err)
	}
}

// Rows of all files of a split, in order, up to the bound; the function for documents is applied to each.
func TestLoad(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b", "a", "c"} {
		write(t, filepath.Join(dir, name+".jsonl"), fmt.Sprintf("{\"q\":\"%s1\"}\n{\"q\":\"%s2\"}\n", name, name))
	}
	write(t, filepath.Join(dir, "none.jsonl"), "")
	seen := 0
	s := &spec{data: source{dir: dir, root: dir,
		files: map[string][]string{"test": {"b.jsonl", "[ac].jsonl"}, "none": {"none.jsonl"}, "gone": {"x.jsonl"}}},
		process: &docFunction{func(doc map[string]any) error {
			if seen++; doc["q"] == "c2" {
				return os.ErrInvalid
			}
			doc["r"] = doc["q"].(string) + "!"
			return nil
		}}}
	var p *eval.Plan
	any := eval.Task{Name: "x", Prepare: func(_ context.Context, plan *eval.Plan) (*eval.Job,
		error) {
		p = plan
		return nil, os.ErrInvalid
	}}
	if _, err := prepareOne(&any); p == nil {
		t.Fatal(err)
	}
	for limit, want := range map[int]string{1: "b1!", 2: "b1! b2!", 3: "b1! b2! a1!", 5: "b1! b2! a1! a2! c1!"} {
		seen = 0
		docs, err := s.load(t.Context(), p, "test", limit)
		var got []string
		for _, d := range docs {
			got = append(got, d["r"].(string))
		}
		if err != nil || strings.Join(got, " ") != want || seen != limit {
			t.Errorf("%d: %v, %v after %d rows; want %s", limit, got, err, seen, want)
		}
	}
	for split, want := range map[string]string{"test": "c.jsonl: row 2", "none": "no documents", "gone": "x.jsonl",
		"other": `no split "other"; it has gone, none, test`} {
		if _, err := s.load(t.Context(), p, split, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", split, err, want)
		}
	}
}

// Where examples come from, and that a question is never its own example.
func TestDraw(t *testing.T) {
	docs := func(names string) (out []map[string]any) {
		for _, n := range strings.Fields(names) {
			out = append(out, map[string]any{"q": n})
		}
		return out
	}
	names := func(list []map[string]any) string {
		var out []string
		for _, d := range list {
			out = append(out, d["q"].(string))
		}
		return strings.Join(out, " ")
	}
	b := &bound{spec: &spec{sampler: "first_n"}, pool: docs("a b c d")}
	b.splits.shots, b.splits.test = "train", "test"
	for doc, want := range map[string]string{"a": "a b", "x": "a b"} { // of another split, so that equals are others
		if got, err := b.draw(newPython(1), map[string]any{"q": doc}, 2); err != nil || names(got) != want {
			t.Errorf("%s: %v, %v", doc, names(got), err)
		}
	}
	b.splits.shots = "test"
	if got, err := b.draw(newPython(1), map[string]any{"q": "a"}, 2); err != nil || names(got) != "b c" {
		t.Errorf("own split: %v, %v", names(got), err)
	}
	if _, err := b.draw(newPython(1), map[string]any{"q": "a"}, 4); err == nil {
		t.Error("more examples than there are")
	}
	if got, err := b.draw(newPython(1), nil, 0); got != nil || err != nil {
		t.Errorf("none: %v, %v", got, err)
	}
	b.sampler = "default"
	g := newPython(3)
	for range 50 {
		got, err := b.draw(g, map[string]any{"q": "c"}, 3)
		list := strings.Fields(names(got))
		slices.Sort(list)
		if err != nil || strings.Join(list, " ") != "a b d" {
			t.Fatalf("%v, %v", names(got), err)
		}
	}
	if _, err := b.draw(g, map[string]any{"q": "c"}, 4); err == nil {
		t.Error("as many examples as documents with the question among them")
	}
	b.splits.shots = "train"
	if got, err := b.draw(g, map[string]any{"q": "c"}, 4); err != nil || len(got) != 4 {
		t.Errorf("all of another split: %v, %v", names(got), err)
	}
}

// Values of documents as Python has them, what is digits, and where a space is needed.
func TestFieldValues(t *testing.T) {
	for _, c := range []struct{ in, want any }{{json.Number("3"), 3}, {json.Number("-3"), -3},
		{json.Number("1.5"), 1.5}, {json.Number("1e3"), 1000.0}, {true, 1}, {false, 0}, {"3", "3"}, {nil, nil},
		{[]any{json.Number("1"), true, "a", []any{false}}, []any{1, 1, "a", []any{0}}}} {
		if got := simple(c.in); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%#v: %#v, want %#v", c.in, got, c.want)
		}
	}
	for s, want := range map[string]bool{"": false, "0": true, "12": true, "1.5": false, "-1": false, "a": false,
		"1 ": false, "٣": true} {
		if digits(s) != want {
			t.Errorf("%q is digits: %v", s, !want)
		}
	}
	for _, c := range []struct {
		a, b string
		want bool
	}{{"", "x", false}, {"a", "b", true}, {"a ", "b", false}, {"a", " b", false}, {"é", "日", true},
		{"a\n", "b", false}} {
		if apart(c.a, c.b) != c.want {
			t.Errorf("%q and %q need a space: %v", c.a, c.b, !c.want)
		}
	}
}

// What a key makes of a document: a text, an index or a list.
func TestFieldsOfADocument(t *testing.T) {
	doc := map[string]any{"q": "text", "n": json.Number("1"), "l": []any{"x", "y"}, "digits": "1",
		"literal": "['a', 'b']"}
	f := func(choices bool) *fields {
		return &fields{columns: map[string]bool{"q": true, "n": true, "l": true, "digits": true, "gone": true,
			"literal": true}, choices: choices, templates: map[string]*chat.Template{}}
	}
	for _, c := range []struct {
		spec    any
		choices bool
		want    any
	}{{"q", true, "text"}, {"n", false, 1}, {"l", false, []any{"x", "y"}}, {"digits", true, "1"},
		{"{{digits}}", true, 1}, {"{{digits}}", false, "1"}, {"plain", true, "plain"},
		{"['a', 2]", false, []any{"a", 2}},
		{"[oops", false, "[oops"}, {"[oops]", false, "[oops]"}, {"[1] ", false, "[1] "}, {" [1]", false, " [1]"},
		{"[]", false, []any{}}, {"[", false, "["}, {"", false, ""}, {"", true, ""}, {"a {{q}} b", true, "a text b"},
		{2, true, 2}, {nil, false, nil}} {
		if got, err := f(c.choices).target(c.spec, doc); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v, choices %v: %#v, %v; want %#v", c.spec, c.choices, got, err, c.want)
		}
	}
	for _, c := range []struct {
		spec    any
		choices bool
		want    any
	}{{"q", true, "text"}, {"n", true, 1}, {"digits", true, "1"}, {"{{digits}}", true, 1}, {"{{digits}}", false, "1"},
		{"[1]", true, "[1]"}, {"", true, ""}, {2, false, 2}} {
		if got, err := f(c.choices).text(c.spec, doc); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("the question %v, choices %v: %#v, %v; want %#v", c.spec, c.choices, got, err, c.want)
		}
	}
	if _, err := f(false).target("gone", doc); err == nil || !strings.Contains(err.Error(), `"gone" is missing`) {
		t.Errorf("a missing column: %v", err)
	}
	o := newObject()
	o.set("z", "first")
	o.set("a", "second")
	for _, c := range []struct {
		spec any
		want []string
	}{{"l", []string{"x", "y"}}, {"['a', 'b c']", []string{"a", "b c"}}, {"['{{q}}', 'n']", []string{"text", "n"}},
		{[]any{"p", "q"}, []string{"p", "q"}}, {o, []string{"first", "second"}}} {
		if got, err := f(true).list(c.spec, doc); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, %v", c.spec, got, err)
		}
	}
	for _, spec := range []any{"q", "n", "[1, 2]", "['']", "[]", "x", "literal"} { // a column is not read as Python
		if got, err := f(true).list(spec, doc); err == nil {
			t.Errorf("%v is a list of choices %v", spec, got)
		}
	}
}

// The best choice: the highest per unit, the first of equals, also of one and where all are bad.
func TestBestChoice(t *testing.T) {
	for _, c := range []struct {
		scores []float64
		units  []float64
		want   int
	}{{[]float64{-3}, []float64{1}, 0}, {[]float64{-3, -2}, []float64{1, 1}, 1},
		{[]float64{-2, -2}, []float64{1, 1}, 0}, {[]float64{-4, -3, -9}, []float64{2, 1, 9}, 2},
		{[]float64{-4, -2}, []float64{2, 1}, 0}} {
		var list []eval.Score
		for _, x := range c.scores {
			list = append(list, eval.Score{LogProb: x})
		}
		if got := best(list, func(k int) float64 { return c.units[k] }); got != c.want {
			t.Errorf("%v per %v: %d, want %d", c.scores, c.units, got, c.want)
		}
	}
	x := &item{right: []int{0, 2}}
	for k, want := range []float64{1, 0, 1} {
		if hit(x, k) != want {
			t.Errorf("choice %d is right: %v", k, 1-want)
		}
		list := make([]eval.Score, 3)
		list[k].Greedy = true
		if greedy(x, list) != want {
			t.Errorf("choice %d is greedy: %v", k, 1-want)
		}
	}
}

// A file that grew past the limit since it was parsed is an error and is not read to its end.
func TestHashOfLargeFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.yaml")
	for n, want := range map[int]error{maxFile: nil, maxFile + 1: vfs.ErrTooLarge} {
		if err := os.WriteFile(path, make([]byte, n), 0o644); err != nil {
			t.Fatal(err)
		}
		if sum, err := hashFiles([]string{path}); !errors.Is(err, want) || (sum == "") != (want != nil) {
			t.Errorf("%d bytes: %q, %v", n, sum, err)
		}
	}
}
