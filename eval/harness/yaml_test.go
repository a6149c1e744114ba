package harness

import (
	"path/filepath"
	"strings"
	"testing"

	"antiphase/eval"
)

// Keys that "<<" merges, as in PyYAML: a mapping's own keys override them wherever they stand, and of a list the first
// mapping counts. Of several includes the last counts, before the file's own keys.
func TestMergedKeys(t *testing.T) {
	task := choose + "doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: c\nnum_fewshot: 1\n" +
		"metadata: {a: &a {sampler: first_n, split: none, fewshot_delimiter: A}, b: &b {split: train, " +
		"target_delimiter: '='}}\n"
	for config, want := range map[string]string{
		"{<<: *a, split: train}": "one xAone| x", "{split: train, <<: *a}": "one xAone| x",
		"{<<: [*b, *a]}": "one=xAone| x", "{<<: [*b, *a], fewshot_delimiter: B}": "one=xBone| x",
		"{fewshot_delimiter: B, <<: [*b, *a]}": "one=xBone| x",
	} {
		if got, _, err := ask(t, task+"fewshot_config: "+config+"\n", pupils, "", 1); err != nil || got[0] != want {
			t.Errorf("%s: %q, %v; want %q", config, got, err, want)
		}
	}
	for _, bad := range []string{"{<<: 3}", "{<<: [*a, 3]}"} {
		if _, _, err := ask(t, task+"fewshot_config: "+bad+"\n", pupils, "", 1); err == nil ||
			!strings.Contains(err.Error(), "<<: 3 is not a mapping") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "d.jsonl"), pupils)
	write(t, filepath.Join(dir, "one"),
		choose+"doc_to_text: q\ndoc_to_target: a\ndoc_to_choice: c\ntarget_delimiter: '1'\ndescription: '1'\n")
	write(t, filepath.Join(dir, "two"), "target_delimiter: '2'\ndescription: '2'\n")
	write(t, filepath.Join(dir, "t.yaml"), "description: 'own '\ntask: mine\ninclude: [one, two]\n")
	tasks, _, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	m := &told{}
	if run(t, tasks[0], m, eval.Options{Shots: -1}); m.asked[0] != "own one|2x" {
		t.Errorf("%q", m.asked[0])
	}
}

// A file may have 2^20 values with its aliases written out, at any depth, and no more.
func TestAliasesWrittenOut(t *testing.T) {
	list := func(n int, of string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(of+", ", n), ", ") + "]\n"
	}
	for text, good := range map[string]bool{
		"a: &a " + list(1000, "x") + "b: " + list(1040, "*a"): true, "a: &a " + list(1000, "x") + "b: " +
			list(1050, "*a"): false,
		"a: &a " + list(100, "x") + "b: &b " + list(100, "*a") + "c: " + list(100, "*b"): true, "a: &a " +
			list(100, "x") + "b: &b " + list(100, "*a") + "c: " + list(105, "*b"): false,
	} {
		file := filepath.Join(t.TempDir(), "t.yaml")
		write(t, file, text)
		if _, err := parseFile(file); (err == nil) != good || err != nil &&
			!strings.Contains(err.Error(), "more than 1048576 values") {
			t.Errorf("%.60q…: %v", text, err)
		}
	}
}
