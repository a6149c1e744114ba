package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/eval/report"
	"antiphase/experiment"
	"antiphase/results"
)

var rewrite = flag.Bool("rewrite", false, "render README.md's tables anew")

// seeds are what README says of the speedrun's plans over seeds.
func seeds(t *testing.T) string {
	t.Helper()
	var list [][]experiment.Repeat
	for _, p := range plans {
		known, err := experiment.ReadRepeats(results.SpeedrunSeeds, p.name, p.steps)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, known)
	}
	return cmp.Or(experiment.SeedsTable(list, speedrunArchs), "No plan has been run on 10 seeds yet, so there is no verdict.\n")
}

// README's tables are rendered from committed results and say what those say.
func TestReadmeTables(t *testing.T) {
	const readme = "../../README.md"
	b, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	j, err := os.ReadFile(filepath.Join("..", "..", "results", "speedrun.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r report.Page
	if err := json.Unmarshal(j, &r); err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for name, want := range map[string]string{"speedrun.json": "```\n" + r.Table(false) + "```\n", "speedrun-seeds.jsonl": seeds(t)} {
		begin, end := "<!-- results/"+name+" -->\n", "<!-- end -->"
		head, rest, ok := strings.Cut(text, begin)
		old, tail, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("README.md lacks the lines %q and %q", begin, end)
		}
		if old != want && !*rewrite {
			t.Errorf("README.md does not say what results/%s does; run go test ./cmd/antiphase -run Readme -rewrite", name)
		}
		text = head + begin + want + end + tail
	}
	if *rewrite {
		if err := os.WriteFile(readme, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Committed rows are in the form in which the program writes them: what the rows of a run share is there once.
func TestEvidenceRows(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("..", "..", "results", "evidence", "*.jsonl"))
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		rows, err := experiment.ReadRowFiles(path)
		if err != nil {
			t.Fatal(err)
		}
		want, err := experiment.Encode(rows)
		if err != nil {
			t.Fatal(err)
		}
		old, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case bytes.Equal(old, want):
		case *rewrite:
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("%s is in an older form; run go test ./cmd/antiphase -run Evidence -rewrite", path)
		}
	}
}

// docs/evidence.md is what its command makes of the committed rows.
func TestEvidence(t *testing.T) {
	const path = "../../docs/evidence.md"
	var want bytes.Buffer
	if err := experiment.Evidence(filepath.Join("..", "..", "results", "evidence"), &want); err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if old, err := os.ReadFile(path); err != nil || !bytes.Equal(old, want.Bytes()) {
		t.Errorf("docs/evidence.md is not made of results/evidence; run go test ./cmd/antiphase -run Evidence -rewrite (%v)", err)
	}
}
