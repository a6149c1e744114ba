package main

import "testing"

// The command in rows can be typed again and is the same for all stretches of an experiment.
func TestCommandLine(t *testing.T) {
	want := "antiphase compare --data 'lm/*.zst' --seeds 3"
	for _, args := range [][]string{
		{"compare", "--data", "lm/*.zst", "--seeds", "3"},
		{"compare", "--have", "/tmp/rows.jsonl", "--data", "lm/*.zst", "--have=more.jsonl", "--seeds", "3"},
		{"compare", "--data", "lm/*.zst", "--seeds", "3", "--have", "rows.jsonl"},
	} {
		if got := commandLine(args); got != want {
			t.Errorf("%q: %s", args, got)
		}
	}
}
