package harness

import (
	"path/filepath"
	"strings"
	"testing"

	"antiphase/eval"
)

// Examples come from the split named for them, else from the file's own samples, else from the first that there is of
// training, validation and test; questions from the test split, else from validation.
func TestWhereExamplesComeFrom(t *testing.T) {
	dir := t.TempDir()
	for _, split := range []string{"train", "valid", "test", "other"} {
		write(t, filepath.Join(dir, split+".jsonl"),
			`{"q": "`+split+` one", "a": 0}`+"\n"+`{"q": "`+split+` two", "a": 0}`+"\n")
	}
	const task = "task: mine\ndataset_path: json\ndataset_kwargs: {data_files: {train: train.jsonl, valid: " +
		"valid.jsonl, test: test.jsonl, other: other.jsonl}}\noutput_type: multiple_choice\ndoc_to_text: q\n" +
		"doc_to_target: a\ndoc_to_choice: [x, y]\nnum_fewshot: 1\n"
	const samples = "fewshot_config: {sampler: first_n, samples: [{q: sample, a: 1}]}\n"
	const train, valid, test = "training_split: train\n", "validation_split: valid\n", "test_split: test\n"
	for _, c := range []struct{ keys, example, question string }{
		{train + valid + test, "train", "test"}, {valid + test, "valid", "test"}, {train + valid, "train", "valid"},
		{test, "test", "test"}, {valid, "valid", "valid"},
		{train + test + "fewshot_split: other\n", "other", "test"}, {train + test + samples, "sample", "test"},
		{train + test + samples + "fewshot_split: other\n", "other", "test"},
		{train + test + "fewshot_config: {split: other}\n", "other", "test"},
	} {
		write(t, filepath.Join(dir, "t.yaml"), task+c.keys)
		tasks, _, err := Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		m := &told{}
		run(t, tasks[0], m, eval.Options{Shots: -1})
		for i, prompt := range m.asked {
			example, question, _ := strings.Cut(prompt, "\n\n")
			if !strings.HasPrefix(example, c.example) || !strings.HasPrefix(question, c.question) || len(m.asked) != 4 {
				t.Errorf("%q: request %d is %q, want %s before %s", c.keys, i, prompt, c.example, c.question)
			}
		}
	}
}

// A group may not have the name that selects all tasks; an inline task of a group keeps the file's own keys and adds
// its own.
func TestGroupNames(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "docs.jsonl"), "{\"q\": \"one\", \"a\": 1}\n")
	write(t, filepath.Join(dir, "a.yaml"), asksFile("a"))
	write(t, filepath.Join(dir, "g.yaml"), "group: all\ntask: [a]\n")
	if _, _, err := Read(dir); err == nil || !strings.Contains(err.Error(), `"all" cannot be a name`) {
		t.Errorf("%v", err)
	}
	write(t, filepath.Join(dir, "g.yaml"), "group: g\ntask: [{task: a, target_delimiter: '='}]\n")
	tasks, _, err := Read(dir)
	if err != nil || len(tasks) != 1 || tasks[0].Group != "g" {
		t.Fatalf("%+v, %v", tasks, err)
	}
	m := &told{}
	if run(t, tasks[0], m, eval.Options{Shots: -1}); strings.Join(m.asked, " ") != "one|=no one|=yes" {
		t.Errorf("%q", m.asked)
	}
}
