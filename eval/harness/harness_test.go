package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"antiphase/data"
	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/device/ref"
	"antiphase/eval"
	"antiphase/eval/task"
	"antiphase/internal/vfs/vfstest"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/model/modeltest"
	"antiphase/tokenizer"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// subject is a tiny random model that reads bytes, in float64.
func subject(t *testing.T) *eval.Subject { return subjectOn(t, ref.New()) }

func subjectOn(t *testing.T, d device.Device) *eval.Subject {
	t.Helper()
	tok := tokenizer.Bytes()
	c := model.Config{Arch: "diff", Vocab: tok.Vocab(), Context: 1024, Layers: 1, Dim: 16, Heads: 2,
		KVHeads: 2, HeadDim: 4}
	m := modeltest.New(t, d, c, layer.Memory{}, 11)
	return &eval.Subject{Name: "m", Model: m, Tokenizer: tok, Batch: 3}
}

// builtIn rewrites documents of the sets' own form into the form that our built-in tasks read.
var builtIn = map[string]struct {
	file    string
	from    string
	rewrite func(d map[string]any) map[string]any
}{
	"arc_easy": {"mc/arc_easy_test", "arc_test", func(d map[string]any) map[string]any {
		c := d["choices"].(map[string]any)
		gold := 0
		for i, label := range c["label"].([]any) {
			if label == d["answerKey"] {
				gold = i
			}
		}
		return map[string]any{"id": d["id"], "query": d["question"], "choices": c["text"], "gold": gold}
	}},
	"hellaswag": {"mc/hellaswag_val", "hellaswag_val", func(d map[string]any) map[string]any { return d }},
	"piqa": {"mc/piqa_val", "piqa_val", func(d map[string]any) map[string]any {
		return map[string]any{"id": 0, "query": d["goal"], "choices": []any{d["sol1"], d["sol2"]}, "gold": d["label"]}
	}},
	"boolq": {"mc/boolq_val", "boolq_val", func(d map[string]any) map[string]any {
		return map[string]any{"id": 0, "passage": d["passage"], "question": d["question"],
			"choices": []string{"no", "yes"}, "gold": d["label"]}
	}},
	"winogrande": {"mc/winogrande_val", "winogrande_val", func(d map[string]any) map[string]any {
		gold := 0
		if d["answer"] == "2" {
			gold = 1
		}
		return map[string]any{"id": 0, "sentence": d["sentence"],
			"options": []any{d["option1"], d["option2"]}, "gold": gold}
	}},
	"lambada_openai": {"mc/lambada_openai_test", "lambada_test", func(d map[string]any) map[string]any {
		text := d["text"].(string)
		at := strings.LastIndex(text, " ")
		return map[string]any{"context": text[:at], "continuation": text[at+1:]}
	}},
}

// A task of a file and the built-in one of the same set give the same numbers, to the last bit, on a real model.
func TestBuiltIn(t *testing.T) {
	dir := t.TempDir()
	files := tasksOf(t, filepath.Join("testdata", "tasks"))
	s := subject(t)
	// These have the sets' own fields.
	for _, name := range []string{"cb", "copa", "rte", "wic", "wsc", "sst2", "mrpc", "qnli"} {
		x := builtIn["hellaswag"]
		x.file, x.from = "glue/"+name+"_val", name+"_val"
		builtIn[name] = x
	}
	for name, set := range builtIn {
		var lines strings.Builder
		err := data.Rows(filepath.Join("testdata", "tasks", "data", set.from+".jsonl"),
			func(_ int, d map[string]any) error {
				b, err := json.Marshal(set.rewrite(d))
				lines.Write(append(b, '\n'))
				return err
			})
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, set.file+".jsonl"), lines.String())
		want := run(t, task.Named(name), s, eval.Options{Data: dir, Shots: 0})
		got := run(t, files[name], s, eval.Options{Shots: 0})
		if got.N != want.N || len(want.Metrics) == 0 {
			t.Fatalf("%s: %d samples of the file, %d built in", name, got.N, want.N)
		}
		for _, m := range want.Metrics {
			x, ok := got.Metric(m.Name)
			if !ok || x.Value != m.Value || x.StdErr != m.StdErr || x.Floors["chance"] != m.Floors["chance"] {
				t.Errorf("%s: %s is %+v of the file, %+v built in", name, m.Name, x, m)
			}
		}
		for i := range want.Answers {
			for key, v := range want.Answers[i].Values {
				if _, shown := want.Metric(key); (shown || key == "nll") && got.Answers[i].Values[key] != v {
					t.Errorf("%s: %s of sample %d is %g of the file, %g built in", name, key, i,
						got.Answers[i].Values[key], v)
				}
			}
		}
	}
}

// One task of each kind gives the same answers, bit for bit, with any batch and after any other task.
func TestBatch(t *testing.T) {
	d := cpu.New(cpu.Options{Threads: 2})
	t.Cleanup(func() { d.Close() })
	files := tasksOf(t, filepath.Join("testdata", "tasks"))
	names := []string{"arc_easy", "lambada_openai", "wikitext", "gsm8k"}
	first := map[string]string{}
	for k, batch := range []int{1, 3, 16} {
		s := subjectOn(t, d)
		s.Batch = batch
		for i := range names {
			name := names[(i+k)%len(names)]
			b, err := json.Marshal(run(t, files[name], s, eval.Options{Shots: -1}).Answers)
			if err != nil {
				t.Fatal(err)
			}
			if k == 0 {
				first[name] = string(b)
			}
			if string(b) != first[name] {
				t.Errorf("%s with batch %d: %s\nwith batch 1: %s", name, batch, b, first[name])
			}
		}
		s.Close()
	}
}

const minimal = `task: mine
dataset_path: json
dataset_kwargs: {data_files: {test: d.jsonl}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{q}}"
doc_to_target: "{{a}}"
doc_to_choice: ["x", "y"]
`

const docs = `{"q": "one", "a": 0}
{"q": "two", "a": 1}
`

// What a file asks for that cannot be had is refused by name, before anything is asked.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{minimal + "doc_to_txt: q\n", `key "doc_to_txt" is unknown; did you mean "doc_to_text"?`},
		{minimal + "frobnicate: 3\n", `key "frobnicate" is unknown; a task has task,`},
		{minimal + "process_docs: !function utils.munge\n", "the function utils.munge is Python of the task's own"},
		{minimal + "doc_to_image: q\n", "doc_to_image is not supported"},
		{minimal + "repeats: 4\n", "repeats is 4"},
		{minimal + "generation_kwargs: {do_sample: true}\n", "do_sample is true; here decoding is greedy"},
		{minimal + "metric_list: [{metric: bleu}]\n",
			`the metric "bleu" is not known for multiple_choice; there are acc,`},
		{minimal + "metric_list: [{metric: acc, aggregation: median}]\n",
			"acc: aggregation is median; here it is mean"},
		{minimal + "filter_list: [{name: f, filter: [{function: guess}]}]\n", `the filter "guess" is not known`},
		{minimal + "fewshot_config: {sampler: balanced}\n", `sampler is "balanced"`},
		{strings.Replace(minimal, "multiple_choice", "essay", 1),
			`output_type is "essay"; there are generate_until, loglikelihood,`},
		{strings.Replace(minimal, "test_split: test\n", "", 1), "nothing to ask"},
		{strings.Replace(minimal, "{{a}}", "{{b}}", 1), `document 0: doc_to_target: template: `},
		{strings.Replace(minimal, "task: mine", "task: all", 1), `t.yaml: "all" cannot be a name`},
		{strings.Replace(minimal, "task: mine", `task: "a\e[31m"`, 1), `t.yaml: "a\x1b[31m" cannot be a name`},
		{strings.Replace(minimal, "task: mine", "task: a/b", 1), `task: "a/b" cannot be a name; want one without`},
		{strings.Replace(minimal, "{{a}}", "5", 1), "doc_to_target gives 5, which is none of the 2 choices"},
		{strings.Replace(minimal, "d.jsonl", "e.jsonl", 1), "data_files: e.jsonl: file does not exist"},
		{strings.Replace(minimal, "{test: d.jsonl}", "{valid: d.jsonl}", 1),
			`data_files has no split "test"; it has valid`},
		{strings.Replace(minimal, "dataset_kwargs: {data_files: {test: d.jsonl}}\n", "", 1), "nothing is fetched"},
		{minimal + "num_fewshot: 7\n", "7 examples are asked for, there are 2"},
		{strings.Replace(minimal, `["x", "y"]`, "[no, yes]", 1),
			"the choice false is not a text; put it into quotation marks"},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "d.jsonl"), docs)
		write(t, filepath.Join(dir, "t.yaml"), c.text)
		tasks, _, err := Read(dir)
		if err == nil {
			_, err = prepareOne(&tasks[0])
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v; want %q", err, c.want)
		}
	}
}

// A folder of tasks may be somebody else's: it reads its own files and what lies below --data, and nothing else of the
// machine, neither by name nor through a link.
func TestStaysInside(t *testing.T) {
	outside := t.TempDir()
	write(t, filepath.Join(outside, "d.jsonl"), docs)
	write(t, filepath.Join(outside, "base.yaml"), "output_type: multiple_choice\n")
	up := func(dir, name string) string {
		rel, err := filepath.Rel(dir, filepath.Join(outside, name))
		if err != nil {
			t.Fatal(err)
		}
		return filepath.ToSlash(rel)
	}
	abs := filepath.ToSlash(filepath.Join(outside, "d.jsonl"))
	kwargs := "dataset_kwargs: {data_files: {test: d.jsonl}}\n"
	for name, c := range map[string]struct {
		text func(dir string) string
		want string
	}{
		"up": {func(dir string) string { return strings.Replace(minimal, "d.jsonl", up(dir, "d.jsonl"), 1) },
			"is outside of"},
		"absolute": {func(string) string { return strings.Replace(minimal, "d.jsonl", abs, 1) }, "is outside of"},
		"pattern": {func(dir string) string { return strings.Replace(minimal, "d.jsonl", up(dir, "d.*"), 1) },
			"is outside of"},
		"link": {func(string) string { return strings.Replace(minimal, "d.jsonl", "link.jsonl", 1) },
			"is outside of"},
		"folder": {func(string) string { return strings.Replace(minimal, "d.jsonl", ".", 1) }, "is not a plain file"},
		"include": {func(dir string) string { return "include: " + up(dir, "base.yaml") + "\n" + minimal },
			"is outside of"},
		"data set": {func(dir string) string {
			return strings.Replace(strings.Replace(minimal, kwargs, "", 1), "dataset_path: json",
				"dataset_path: "+up(dir, ""), 1)
		},
			"leads out of --data"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "d.jsonl"), docs)
			if name == "link" {
				vfstest.Symlink(t, filepath.Join(outside, "d.jsonl"), filepath.Join(dir, "link.jsonl"))
			}
			write(t, filepath.Join(dir, "t.yaml"), c.text(dir))
			tasks, _, err := Read(dir)
			if err == nil {
				_, err = prepareOne(&tasks[0])
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %q", err, c.want)
			}
			if _, folder, ok := strings.Cut(fmt.Sprint(err), " is outside of "); ok &&
				!strings.HasPrefix(folder, dir+", ") {
				t.Errorf("%v; want what is outside of %s", err, dir)
			}
		})
	}
}

func prepareOne(x *eval.Task) (*eval.Prepared, error) {
	opt := eval.Options{Shots: -1}
	opt.Measure([]eval.Target{{Model: eval.Model{Name: "stub", Context: 512}, LM: &replay{}}})
	return opt.Prepare(context.Background(), x)
}

// Malformed files and files that include themselves are errors, not faults.
func TestMalformed(t *testing.T) {
	for _, text := range []string{"", "- a\n", "task: [\n", "task: *x\n", "include: t.yaml\ntask: t\n",
		"task: !function\n", "a: &x [*x]\ntask: t", "\x00\xff", strings.Repeat("[", 9000), laughs()} {
		path := filepath.Join(t.TempDir(), "t.yaml")
		write(t, path, text)
		if tasks, _, err := Read(path); err == nil {
			if _, err := prepareOne(&tasks[0]); err == nil {
				t.Errorf("%.40q is taken for a task", text)
			}
		}
	}
}

// laughs is a short file whose aliases stand for 10^12 values.
func laughs() string {
	var b strings.Builder
	b.WriteString(minimal + "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range 11 {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i+1, i+1,
			strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	b.WriteString("fewshot_config: {samples: [{q: *a11}]}\n")
	return b.String()
}

// Files include others, group tasks, and have their samples in lists, in Parquet, or below --data under the data set's
// name.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "d.jsonl"), docs)
	write(t, filepath.Join(dir, "base_template"),
		strings.Replace(minimal, "task: mine\n", "", 1)+"should_decontaminate: true\n")
	write(t, filepath.Join(dir, "one.yaml"), "include: base_template\ntask: one\n")
	write(t, filepath.Join(dir, "two.yaml"),
		"include: base_template\ntask: two\ndataset_kwargs: {data_files: {test: d.parquet}}\n")
	write(t, filepath.Join(dir, "three.yaml"),
		"include: base_template\ntask: three\ndataset_path: org/set\ndataset_name: main\ndataset_kwargs: null\n")
	write(t, filepath.Join(dir, "four.yaml"), "include: base_template\ntask: four\ndoc_to_text: !function utils.own\n")
	write(t, filepath.Join(dir, "all.yaml"), "group: mine\ntask: [one, {task: two, num_fewshot: 1}]\n")
	write(t, filepath.Join(dir, "data", "org", "set", "main", "test-00000-of-00001.json"),
		"["+strings.ReplaceAll(strings.TrimSpace(docs), "\n", ",")+"]")
	type row struct {
		Q string `parquet:"q"`
		A int64  `parquet:"a"`
	}
	if err := parquet.WriteFile(filepath.Join(dir, "d.parquet"), []row{{"one", 0}, {"two", 1}}); err != nil {
		t.Fatal(err)
	}
	tasks, notes, err := Read(dir)
	if err != nil || len(tasks) != 4 || len(notes) != 1 || !strings.Contains(notes[0], "should_decontaminate") {
		t.Fatalf("%d tasks, notes %q, %v", len(tasks), notes, err)
	}
	byName := map[string]eval.Task{}
	for _, x := range tasks {
		byName[x.Name] = x
	}
	if byName["one"].Group != "mine" || byName["two"].Group != "mine" || byName["two"].Shots != 1 ||
		byName["three"].Group != "" {
		t.Errorf("groups or shots are not those of the files: %+v", byName)
	}
	s := subject(t)
	one := run(t, byName["one"], s, eval.Options{Shots: 0})
	for _, name := range []string{"two", "three"} {
		r := run(t, byName[name], s, eval.Options{Shots: 0, Data: filepath.Join(dir, "data")})
		if r.Metrics[0].Value != one.Metrics[0].Value || r.N != 2 {
			t.Errorf("%s: %+v, from JSON lines %+v", name, r.Metrics[0], one.Metrics[0])
		}
	}
	four := byName["four"]
	if _, err := prepareOne(&four); err == nil || !strings.Contains(err.Error(), "utils.own") {
		t.Errorf("a task with a function of its own: %v", err)
	}
}

// A file's task takes the place of a built-in data set, and of nothing else.
func TestMerge(t *testing.T) {
	all, notes, err := Merge(task.All(), []eval.Task{{Name: "piqa", Doc: "mine"}, {Name: "new"}})
	if err != nil || len(all) != len(task.All())+1 || len(notes) != 1 || !strings.Contains(notes[0], "piqa") {
		t.Errorf("%d tasks, %q, %v", len(all), notes, err)
	}
	for _, name := range []string{"gsm8k", "rte"} { // of the groups math and glue
		all, notes, err := Merge(task.All(), []eval.Task{{Name: name, Doc: "mine"}})
		if err != nil || len(all) != len(task.All()) || len(notes) != 1 ||
			!slices.ContainsFunc(all, func(x eval.Task) bool { return x.Name == name && x.Doc == "mine" }) {
			t.Errorf("%s: %d tasks, %q, %v", name, len(all), notes, err)
		}
	}
	for _, name := range []string{"lm", "needle", "mc"} {
		if _, _, err := Merge(task.All(), []eval.Task{{Name: name}}); err == nil ||
			!strings.Contains(err.Error(), "rename it") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
