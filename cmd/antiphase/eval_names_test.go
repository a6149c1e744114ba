package main

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// Models are called by the last part of their path, one that is called like an earlier one by its whole path, whether
// one checkpoint or all are evaluated; members of a group by its name and theirs.
func TestNamedModels(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := errors.Join(os.MkdirAll("x/a", 0o755), os.MkdirAll("y/a", 0o755), os.MkdirAll("y/b", 0o755)); err != nil {
		t.Fatal(err)
	}
	f := &evalFlags{models: []string{"x/a", "y/a", "g=y/*", "n=x/a/", "http://h/v1#m"}}
	got, err := f.named()
	want := []namedModel{{"a", "", "x/a"}, {"y/a", "", "y/a"}, {"g/a", "g", "y/a"}, {"g/b", "g", "y/b"},
		{"n", "", "x/a/"}, {"m", "", "http://h/v1#m"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for m, want := range map[string][2]string{"x/a#b": {"a#b", "x/a#b"}, "n=x=y": {"n", "x=y"},
		"./x=y": {"x=y", "./x=y"}, "https://h/v1#m#chat": {"m#chat", "https://h/v1#m#chat"},
		"n=http://h#m": {"n", "http://h#m"}, "http://h/a=b#m": {"m", "http://h/a=b#m"}} {
		if name, path := modelName(m); name != want[0] || path != want[1] {
			t.Errorf("%s is %q of %q", m, name, path)
		}
	}
	f.models = []string{"g=z*"}
	if _, err := f.named(); exitCode(err) != exitBadInput {
		t.Error(err)
	}
}

// Every checkpoint of two runs in folders of one name is evaluated under a name of its own, and belongs to its run.
func TestCheckpointsOfTwoRuns(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"x/a", "y/a"} {
		args := []string{"train", "--size", "nano", "--steps", "2", "--set", "train.save_every=1", "--set",
			"train.seed=" + map[string]string{"x/a": "1", "y/a": "2"}[dir], "--dir", dir, "-q", "--device", "cpu"}
		if code, _, errs := ran(t, args...); code != 0 {
			t.Fatal(errs)
		}
	}
	code, out, errs := ran(t, "eval", "-m", "x/a", "-m", "y/a", "--checkpoints", "-t", "lm", "--set", "lm.pieces=2",
		"--output", "store", "-q", "--device", "cpu", "--color", "never")
	if code != 0 {
		t.Fatal(errs)
	}
	head, _, _ := strings.Cut(out, "\n")
	var names []string
	for _, w := range strings.Fields(head) {
		if strings.Contains(w, "@") {
			names = append(names, w)
		}
	}
	if !slices.Equal(names, []string{"a@1", "a@2", "y/a@1", "y/a@2"}) {
		t.Errorf("%q in %q", names, head)
	}
}
