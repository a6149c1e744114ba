package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/eval/report"
	"antiphase/experiment"
)

var rewrite = flag.Bool("rewrite", false, "render README.md's tables anew")

// README's tables are rendered from committed results and say what those say.
func TestReadmeTables(t *testing.T) {
	const readme = "../../README.md"
	b, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	begin, end := "<!-- results/speedrun.json -->\n", "<!-- end -->"
	head, rest, ok := strings.Cut(text, begin)
	old, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("README.md lacks the lines %q and %q", begin, end)
	}
	j, err := os.ReadFile(filepath.Join("..", "..", "results", "speedrun.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r report.Page
	if err := json.Unmarshal(j, &r); err != nil {
		t.Fatal(err)
	}
	want := "```\n" + r.Table(false) + "```\n"
	if *rewrite {
		if err := os.WriteFile(readme, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if old != want {
		t.Errorf("README.md's table is not results/speedrun.json's; run go test ./cmd/antiphase -run Readme -rewrite")
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
