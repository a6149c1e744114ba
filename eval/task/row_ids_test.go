package task

import (
	"fmt"
	"slices"
	"testing"

	"antiphase/eval"
)

// Questions of sets that give their rows no ids are named by the rows' numbers, in every set that is read from a file.
func TestRowsWithoutIDs(t *testing.T) {
	dir := t.TempDir()
	const row = `{%s "query": "Why?", "choices": ["yes", "no"], "gold": 1, "passage": "P.", "question": "is it?",
		"sentence": "A saw B so _ ran off.", "options": ["A", "B"], "context": "He said", "continuation": " word",
		"answer": "yes", "contexts": [{"title": "T", "text": "text"}], "document": "text", "questions": ["is it?"],
		"answers": ["yes"], "summary": "text"}`
	compact := func(id string) string {
		return string(slices.DeleteFunc([]byte(fmt.Sprintf(row, id)), func(b byte) bool { return b < ' ' }))
	}
	names := map[string]string{}
	for _, set := range mcSets {
		names[set.name] = set.test
	}
	for _, set := range groundedSets {
		names[set.name] = set.file
	}
	for name, file := range names {
		writeSet(t, dir, file, compact(""), compact(`"id": null,`), compact(`"id": "own",`))
		want := []string{"0 0", "1 1", "2 own"}
		switch name {
		case "lambada_openai": // has no ids
			want[2] = "2 2"
		case "qasper": // numbers the questions of a paper
			want = []string{"0 0.0", "1 1.0", "2 own.0"}
		}
		if j := prepared(t, lookup(t, name), eval.Options{Data: dir}, 256); !slices.Equal(j.IDs, want) {
			t.Errorf("%s: %q, want %q", name, j.IDs, want)
		}
	}
}
