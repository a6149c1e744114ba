package experiment

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"antiphase/eval/report"
)

// What a page says first: sides with their seeds, the count of verdicts, runs that diverged, and that one seed is few.
func TestLead(t *testing.T) {
	three := slices.Concat(seeded(plain, "lm.loss", 3, 3.1, 3.2), seeded(v1, "lm.loss", 1, 1.1, 1.2))
	const one = " With one seed errors are over questions alone: they say nothing about another seed."
	failed, others := at(v1, 1, 9, Failed, 3), at(plain, 1, 9, Failed, 3)
	failed.Run, others.Run = "diff-s9", "transformer-s9"
	wide := slices.Clone(three)
	for i := range wide {
		if wide[i].Parameters = 100; wide[i].Arch == v1 {
			wide[i].Parameters = 90
		}
	}
	for _, x := range []struct {
		what string
		rows []Row
		want string
	}{
		{"three seeds", three, "transformer (3 seeds), diff (3 seeds): of the claims that can be asked here 1 hold, " +
			"0 do not hold, 0 cannot be told."},
		{"one seed", slices.Concat(seeded(plain, "lm.loss", 3), seeded(v1, "lm.loss", 1)),
			"transformer (1 seed), diff (1 seed): of the claims that can be asked here 0 hold, 0 do not hold, 1 " +
				"cannot be told." + one},
		{"one of them", slices.Concat(seeded(plain, "lm.loss", 3, 3), seeded(v1, "lm.loss", 1)),
			"transformer (2 seeds), diff (1 seed): of the claims that can be asked here 0 hold, 0 do not hold, 1 " +
				"cannot be told." + one},
		{"the first of them", slices.Concat(seeded(plain, "lm.loss", 3), seeded(v1, "lm.loss", 1, 1)),
			"transformer (1 seed), diff (2 seeds): of the claims that can be asked here 0 hold, 0 do not hold, 1 " +
				"cannot be told." + one},
		{"unequal", wide, "transformer (3 seeds), diff (3 seeds): of the claims that can be asked here 0 hold, 0 do " +
			"not hold, 1 cannot be told. Unequal parameters: diff has 90, transformer 100 (−10.0 %)."},
		{"diverged", append(slices.Clone(three), failed),
			"transformer (3 seeds), diff (4 seeds): of the claims that can be asked here 0 hold, 0 do not hold, 1 " +
				"cannot be told. 1 run diverged."},
		{"both diverged", append(slices.Clone(three), failed, others),
			"transformer (4 seeds), diff (4 seeds): of the claims that can be asked here 0 hold, 0 do not hold, 1 " +
				"cannot be told. 2 runs diverged."},
	} {
		if got := newFinal(x.rows).lead(); got != x.want {
			t.Errorf("%s: %q, want %q", x.what, got, x.want)
		}
	}
}

// A word is quoted for a shell if a shell would not take it as it is.
func TestShellWord(t *testing.T) {
	for in, want := range map[string]string{"runs/a_B-9.json": "runs/a_B-9.json", "azAZ09": "azAZ09", "a[z": "'a[z'",
		"a`z": "'a`z'", "a{z": "'a{z'", "a=b,c:d@0.5%+": "a=b,c:d@0.5%+", "": "''", "a b": "'a b'",
		"it's": `'it'\''s'`, "$HOME": "'$HOME'", "*": "'*'", "ü": "'ü'", "a;b": "'a;b'", "~": "'~'"} {
		if got := shellWord(in, "linux"); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	// cmd.exe takes single quotation marks as they are.
	for in, want := range map[string]string{`runs\a`: `runs\a`, `C:\a b\it's`: `"C:\a b\it's"`, "": `""`,
		"runs/a": "runs/a", "a&b": `"a&b"`} {
		if got := shellWord(in, "windows"); got != want {
			t.Errorf("%s: %s on Windows, want %s", in, got, want)
		}
	}
}

// The next steps propose the last run that still has its model, and the program as it was called.
func TestNextSteps(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a folder")
	rows := slices.Concat(seeded(plain, "lm.loss", 1, 2), seeded(v1, "lm.loss", 1))
	next := func(program string) string {
		return strings.Join((&Options{Dir: dir, Program: program}).Page(rows).Experiment.Next, "\n")
	}
	if got := next(""); !strings.HasPrefix(got, "More seeds, learning rates or architectures: ") ||
		strings.Contains(got, "generate") || !strings.Contains(got, ": antiphase evidence '"+dir+"' -o evidence.md") {
		t.Errorf("without models: %s", got)
	}
	for _, run := range []string{"transformer-s1", "transformer-s2"} {
		if err := os.MkdirAll(filepath.Join(dir, "runs", run, "checkpoints"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	failed := rows[len(rows)-1]
	failed.Run, failed.Measure = "transformer-s3", Failed // its folder has no model
	rows = append(rows, failed)
	if err := os.MkdirAll(filepath.Join(dir, "runs", failed.Run, "checkpoints"), 0o755); err != nil {
		t.Fatal(err)
	}
	want := "./ap generate --model '" + filepath.Join(dir, "runs", "transformer-s2") + "' -p \"The\""
	if got := next("./ap"); !strings.Contains(got, want) || strings.Count(got, "generate") != 1 ||
		!strings.Contains(got, "./ap help glossary") {
		t.Errorf("%s, want %s", got, want)
	}
}

// The CSV has a line for every row with the columns of its head, and numbers as they are.
func TestCSV(t *testing.T) {
	r := Row{origin: origin{Experiment: "x, y", Run: "a", Size: "tiny", Arch: "diff", LR: 1e-3,
		Seed: 18446744073709551615, Parameters: 7, Tokens: 1 << 40},
		Measure: `m "q"`, Value: 1.0 / 3, StdErr: 1e-9, N: 3}
	got, err := csv.NewReader(strings.NewReader(string(table([]Row{r})))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"experiment", "run", "size", "arch", "lr", "seed", "parameters", "tokens", "measure", "value",
		"stderr", "n"},
		{"x, y", "a", "tiny", "diff", "0.001", "18446744073709551615", "7", "1099511627776", `m "q"`,
			"0.3333333333333333", "1e-09", "3"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
}

// Of missing runs six are named, each once whatever its rate, and the rest counted.
func TestUnfinishedSentence(t *testing.T) {
	var runs []Run
	for seed := range uint64(9) {
		runs = append(runs, Run{Size: "tiny", Arch: "diff", LR: 1, Seed: seed},
			Run{Size: "tiny", Arch: "diff", LR: 2, Seed: seed})
	}
	for n, want := range map[uint64]string{9: "",
		7: "Unfinished: 14 of 18 runs are there; tiny diff seed 7, tiny diff seed 8 missing. ",
		3: "Unfinished: 6 of 18 runs are there; tiny diff seed 3, tiny diff seed 4, tiny diff seed 5, tiny diff seed " +
			"6, tiny diff seed 7, tiny diff seed 8 missing. ",
		2: "Unfinished: 4 of 18 runs are there; tiny diff seed 2, tiny diff seed 3, tiny diff seed 4, tiny diff seed " +
			"5, tiny diff seed 6, tiny diff seed 7 and 1 more missing. ",
	} {
		if got := unfinished(runs, func(r *Run) bool { return r.Seed < n }); got != want {
			t.Errorf("%d seeds: %q", n, got)
		}
	}
}

// A page of no rows is one: it says nothing and does not fail. Its title and command are those of the rows.
func TestPageOfRows(t *testing.T) {
	if p := Summarize(nil); p.Title != "Antiphase comparison" || len(p.Experiment.Verdicts) != 0 {
		t.Errorf("%+v", p)
	}
	rows := seeded(plain, trainSpeed, 50, 70)
	rows = append(rows, seeded(v1, sharedSpeed, 90)...)
	p := Summarize(rows)
	if p.Title != "Comparison x" || p.Command != "antiphase compare transformer" {
		t.Errorf("%q, %q", p.Title, p.Command)
	}
	want := []report.Training{{Model: "transformer s1", Tokens: 2e6, TokensPerSecond: 50}, {Model: "transformer s2",
		Tokens: 2e6, TokensPerSecond: 70}, {Model: "diff", Tokens: 2e6, TokensPerSecond: 90, Shared: true}}
	if !reflect.DeepEqual(p.Training, want) {
		t.Errorf("%+v", p.Training)
	}
	row := newFinal(append(slices.Clone(rows), Row{origin: rows[0].origin, Measure: "train.spikes", Value: 3},
		Row{origin: rows[0].origin, Measure: "train.grad_norm_late", Value: 0.25})).runRow("tiny", plain, 1)
	if got := strings.Join(row, "/"); got != "transformer-s1/0/2M/1.0000/–/0.250/3" {
		t.Errorf("%s", got)
	}
}
