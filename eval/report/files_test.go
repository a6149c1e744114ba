package report

import (
	"bytes"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Every row of the LaTeX table has as many cells as its head declares, braces are balanced, and nothing but ASCII is
// left.
func TestLaTeX(t *testing.T) {
	p := fakePage(t)
	var b bytes.Buffer
	if err := p.LaTeX(&b); err != nil {
		t.Fatal(err)
	}
	out := b.String()
	open, _, _ := strings.Cut(out[strings.Index(out, "{tabular}{")+len("{tabular}{"):], "}")
	rows := 0
	for _, line := range strings.Split(out, "\n") {
		if !strings.HasSuffix(line, `\\`) {
			continue
		}
		rows++
		bare := strings.ReplaceAll(line, `\&`, "")
		if n := strings.Count(bare, "&") + 1; n != len(open) {
			t.Errorf("%d cells in %d columns: %s", n, len(open), line)
		}
		bare = strings.NewReplacer(`\{`, "", `\}`, "", `\$`, "").Replace(line)
		if strings.Count(bare, "{") != strings.Count(bare, "}") || strings.Count(bare, "$")%2 != 0 {
			t.Errorf("not balanced: %s", line)
		}
		for _, r := range line {
			if r > 126 {
				t.Errorf("%q in %s", r, line)
				break
			}
		}
	}
	if rows < 20 || !strings.Contains(out, `\textbf{`) || !strings.Contains(out, `base $<$b$>$`) ||
		!strings.Contains(out, `$\pm$`) {
		t.Errorf("%d rows:\n%s", rows, out)
	}
}

// Scores are numbers, each figure is an SVG with a CSV, and no two files have one name.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	p := fakePage(t)
	list, err := p.Files()
	for _, f := range list {
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	n := len(list)
	if err != nil {
		t.Fatal(err)
	}
	found, err := os.ReadDir(dir)
	if err != nil || len(found) != n || n < 40 {
		t.Fatalf("%d files of %d, %v", len(found), n, err)
	}
	for _, f := range found {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		switch filepath.Ext(f.Name()) {
		case ".svg":
			wellFormed(t, string(b))
			if _, err := os.Stat(filepath.Join(dir, strings.TrimSuffix(f.Name(), ".svg")+".csv")); err != nil {
				t.Error(err)
			}
		case ".csv":
			if rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll(); err != nil || len(rows) < 2 {
				t.Errorf("%s: %d rows, %v", f.Name(), len(rows), err)
			}
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "scores.csv"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		for _, cell := range row[6:10] {
			if _, err := strconv.ParseFloat(cell, 64); err != nil {
				t.Fatalf("%v: %v", row, err)
			}
		}
	}
}

// A number with a letter has the digits asked for, and never a thousand of a unit.
func TestShort(t *testing.T) {
	for _, c := range []struct {
		x      float64
		digits int
		want   string
	}{{0, 3, "0"}, {12, 3, "12"}, {999, 3, "999"}, {999.9, 3, "1k"}, {1234, 4, "1.234k"}, {724864, 3, "725k"},
		{724864, 4, "724.9k"}, {999999, 4, "1M"},
		{6144000, 4, "6.144M"}, {2.5e9, 3, "2.5B"}, {160e9, 3, "160B"}, {9.7e11, 3, "970B"}, {3.1e13, 3, "31T"},
		{math.NaN(), 3, "–"}} {
		if got := Short(c.x, c.digits); got != c.want {
			t.Errorf("%g of %d digits: %s, want %s", c.x, c.digits, got, c.want)
		}
	}
}
