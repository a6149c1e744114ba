package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/eval/report"
	"antiphase/experiment"
	"antiphase/results"
)

var rewrite = flag.Bool("rewrite", false, "render the tables of documents anew")

// seeds are what documents say of the speedrun's plans over seeds.
func seeds(t *testing.T, plans ...plan) string {
	t.Helper()
	var list [][]experiment.Repeat
	for _, p := range plans {
		known, err := experiment.ReadRepeats(results.SpeedrunSeeds, p.name, p.steps)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, known)
	}
	return cmp.Or(experiment.SeedsTable(list, speedrunArchs),
		"No plan has been run on 10 seeds yet, so there is no verdict.\n")
}

// Tables of documents are rendered from committed results and say what those say.
func TestReadmeTables(t *testing.T) {
	j, err := os.ReadFile(filepath.Join("..", "..", "results", "speedrun.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r report.Page
	if err := json.Unmarshal(j, &r); err != nil {
		t.Fatal(err)
	}
	standard := plans[slices.IndexFunc(plans, func(p plan) bool { return p.name == "standard" })]
	for _, x := range []struct{ document, name, want string }{
		{"README.md", "speedrun.json", "```\n" + r.Table(false) + "```\n"},
		{"README.md", "speedrun-seeds.jsonl", seeds(t, standard)},
		{"docs/guide/first-run.md", "speedrun-seeds.jsonl", seeds(t, plans...)},
	} {
		path := filepath.Join("..", "..", x.document)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		begin, end := "<!-- results/"+x.name+" -->\n", "<!-- end -->"
		head, rest, ok := strings.Cut(string(b), begin)
		old, tail, ok2 := strings.Cut(rest, end)
		switch {
		case !ok || !ok2:
			t.Fatalf("%s lacks the lines %q and %q", x.document, begin, end)
		case old == x.want:
		case !*rewrite:
			t.Errorf("%s does not say what results/%s does; run go test ./cmd/antiphase -run Readme -rewrite",
				x.document, x.name)
		default:
			if err := os.WriteFile(path, []byte(head+begin+x.want+end+tail), 0o644); err != nil {
				t.Fatal(err)
			}
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
		t.Errorf(
			"docs/evidence.md is not made of results/evidence; run go test ./cmd/antiphase -run Evidence -rewrite (%v)",
			err)
	}
}
