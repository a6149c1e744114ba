package harness

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/eval"
)

// asks is a minimal task of a file.
func asksFile(name string) string {
	return "task: " + name + "\ndataset_path: json\ndataset_kwargs: {data_files: {test: docs.jsonl}}\n" +
		"test_split: test\noutput_type: multiple_choice\ndoc_to_text: \"{{q}}\"\ndoc_to_choice: [\"no\", \"yes\"]\n" +
		"doc_to_target: \"{{a}}\"\n"
}

// inlineTask is the rest of a task that a group writes out.
const inlineTask = "    dataset_path: json\n    dataset_kwargs: {data_files: {test: docs.jsonl}}\n" +
	"    test_split: test\n    output_type: multiple_choice\n    doc_to_text: \"{{q}}\"\n" +
	"    doc_to_choice: [\"no\", \"yes\"]\n    doc_to_target: \"{{a}}\"\n"

// taskFolders are files below a folder and the tasks that it then has.
var taskFolders = map[string]struct {
	files map[string]string
	want  string // names with groups, or the error
}{
	"one": {map[string]string{"a.yaml": asksFile("a")}, "a"},
	"two endings": {map[string]string{"a.yaml": asksFile("a"), "sub/b.yml": asksFile("b"),
		"c.txt": "no: yaml: at all"}, "a b"},
	"a part": {map[string]string{"a.yaml": asksFile("a"), "part.yaml": "num_fewshot: 3\n"}, "a"},
	"group": {map[string]string{"a.yaml": asksFile("a"), "b.yaml": asksFile("b"),
		"g.yaml": "group: g\ntask: [a]\n"}, "b g/a"},
	"group of groups": {map[string]string{"a.yaml": asksFile("a"), "b.yaml": asksFile("b"),
		"g.yaml": "group: g\ntask:\n- a\n- group: h\n  task: [b]\n"}, "g/a h/b"},
	"written out": {map[string]string{"g.yaml": "group: g\ntask:\n  - task: c\n" + inlineTask}, "g/c"},
	"twice": {map[string]string{"a.yaml": asksFile("a"), "b.yaml": asksFile("a")},
		"error: the task a is there twice"},
	"none":           {map[string]string{"part.yaml": "num_fewshot: 3\n"}, "error: no file here defines a task"},
	"all":            {map[string]string{"a.yaml": asksFile("all")}, `error: "all" cannot be a name`},
	"no mapping":     {map[string]string{"a.yaml": "- a\n"}, "error: want one YAML mapping"},
	"two documents":  {map[string]string{"a.yaml": asksFile("a") + "---\nb: 1\n"}, "error: want one YAML mapping"},
	"nameless group": {map[string]string{"g.yaml": "task: [a]\n"}, `error: "task" is a list; want "group"`},
	"unknown member": {map[string]string{"a.yaml": asksFile("a"), "g.yaml": "group: g\ntask: [b]\n"},
		"error: group g: the task b is in none of the files"},
	"odd member": {map[string]string{"a.yaml": asksFile("a"), "g.yaml": "group: g\ntask: [7]\n"},
		"error: group g: an entry is neither"},
	"unwritten": {map[string]string{"a.yaml": asksFile("a"),
		"g.yaml": "group: g\ntask:\n  - task: b\n    num_fewshot: 1\n"},
		"error: group g: the task b is in none of the files"},
	"no list": {map[string]string{"a.yaml": asksFile("a"), "g.yaml": "group: g\ntask: 7\n"},
		`error: "task" is a list; want "group"`},
	"odd key": {map[string]string{"a.yaml": asksFile("a"), "g.yaml": "group: g\ntask: [a]\nshots: 3\n"},
		`error: key "shots" of a group is not known`},
	"too deep": {map[string]string{"a.yaml": asksFile("a") + "metadata: " + strings.Repeat("[", 60) +
		strings.Repeat("]", 60) + "\n"}, "error: nested deeper than 50"},
	"too long": {map[string]string{"a.yaml": asksFile("a") + "# " + strings.Repeat("x", maxFile)},
		"error: a task file has at most"},
}

// What a folder of task files may hold: groups of tasks by name, inside one another or written out, and parts for
// others; and what is refused, with the reason.
func TestFoldersOfTasks(t *testing.T) {
	docs := "{\"q\": \"one\", \"a\": 1}\n{\"q\": \"two\", \"a\": 0}\n"
	for name, c := range taskFolders {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "docs.jsonl"), docs)
			for path, text := range c.files {
				write(t, filepath.Join(dir, path), text)
			}
			tasks, _, err := Read(dir)
			var got []string
			for _, x := range tasks {
				s := x.Name
				if x.Group != "" {
					s = x.Group + "/" + s
				}
				got = append(got, s)
			}
			if want, fails := strings.CutPrefix(c.want, "error: "); fails {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, %v; want %q", got, err, want)
				}
				return
			}
			if slices.Sort(got); err != nil || strings.Join(got, " ") != c.want {
				t.Errorf("%v, %v; want %s", got, err, c.want)
			}
			for i, x := range tasks {
				if strings.Contains(x.Doc, "cannot be run") || x.Place != place+i {
					t.Errorf("%s at %d: %s", x.Name, x.Place, x.Doc)
				}
			}
		})
	}
}

// A single file is read whatever its ending, with what lies beside it and with no other task; a path that is not there
// is an error.
func TestSingleTaskFile(t *testing.T) {
	for _, name := range []string{"a.yaml", "a.txt", "a"} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "docs.jsonl"), "{\"q\": \"one\", \"a\": 1}\n")
		write(t, filepath.Join(dir, name), "include: part.yml\n"+asksFile("a"))
		write(t, filepath.Join(dir, "part.yml"), "metadata: {version: 3}\n")
		write(t, filepath.Join(dir, "other.yaml"), asksFile("b"))
		tasks, _, err := Read(filepath.Join(dir, name))
		if err != nil || len(tasks) != 1 || tasks[0].Name != "a" || tasks[0].Version != 3 {
			t.Fatalf("%s: %+v, %v", name, tasks, err)
		}
		if j, err := prepareOne(&tasks[0]); err != nil || len(j.IDs) != 1 {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, err := Read(filepath.Join(dir, "none")); err == nil {
			t.Error("a file that is not there was read")
		}
	}
}

// What is kept of a sample on request, for a choice: contexts, continuations, the right one and all scores.
func TestHarnessSamplesAreLogged(t *testing.T) {
	files := tasksOf(t, filepath.Join("testdata", "tasks"))
	s := subject(t)
	for name, keys := range map[string][]string{"arc_easy": {"contexts", "continuations", "right", "scores"},
		"lambada_openai": {"context", "continuation", "score"}} {
		opt := eval.Options{Shots: 0, Limit: 2, LogSamples: true}
		r := run(t, files[name], s, opt)
		for _, a := range r.Answers {
			for _, key := range keys {
				if text := fmt.Sprint(a.Doc[key]); text == "" || text == "<nil>" || text == "[]" {
					t.Errorf("%s: sample %s logs %s as %q", name, a.ID, key, text)
				}
			}
		}
	}
}
