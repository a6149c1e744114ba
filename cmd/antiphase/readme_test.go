package main

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/eval/report"
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
