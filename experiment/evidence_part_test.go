package experiment

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A stretch of time that ends before the last runs leaves sides with different seeds. The page says how many of how
// many runs there are and which seeds; a difference is that of the two values beside it; and nothing is decided about
// the side that has too few seeds.
func TestEvidenceOfAnUnfinishedCell(t *testing.T) {
	for _, c := range []struct {
		what    string
		missing func(r *Row) bool
		says    []string
		decided string // the sides whose claims have verdicts
	}{
		{"two seeds of each", func(r *Row) bool { return r.Seed == 3 },
			[]string{"incomplete, 6 of 9 runs: transformer has 2 of 3 seeds", "diff2: 2 seeds (1, 2) at lr",
				"2 seeds (a verdict needs 3)", "Of the plan: incomplete, 6 of 9 runs"}, ""},
		{"5 of 9", func(r *Row) bool { return r.Seed == 3 || r.Seed == 2 && r.Arch == v2 },
			[]string{"incomplete, 5 of 9 runs", "diff2: 1 seed (1) at lr", "(one seed: no interval)"}, ""},
		{"the last run is missing", func(r *Row) bool { return r.Seed == 3 && r.Arch == v2 }, []string{
			"incomplete, 8 of 9 runs: diff2 has 2 of 3 seeds", "3 seeds against 2 (a verdict needs 3)"}, "DIFF "},
	} {
		m := made{name: "160m-text", size: "160m", sides: three, better: []string{v1, v2}, rates: 1, seeds: 3}
		rows := slices.DeleteFunc(m.rows(), func(r Row) bool { return c.missing(&r) })
		for i := range rows { // a value is the mean of its items
			if len(rows[i].Items) > 0 {
				rows[i].Value = mean(rows[i].Items)
			}
		}
		dir := t.TempDir()
		b, err := Encode(rows)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "160m-text.jsonl"), b, 0o644); err != nil {
			t.Fatal(err)
		}
		doc := document(t, dir)
		checkTables(t, doc)
		for _, s := range c.says {
			if !strings.Contains(doc, s) {
				t.Errorf("%s: lacks %q", c.what, s)
			}
		}
		checkFigures(t, c.what, doc)
		for _, line := range strings.Split(doc, "\n") {
			given := strings.Contains(line, "**"+Holds+"**") || strings.Contains(line, "**"+HoldsNot+"**")
			if given && (c.decided == "" || strings.Contains(line, "DIFF V2")) {
				t.Errorf("%s: a verdict: %s", c.what, line)
			}
		}
	}
}

// checkFigures holds every difference to the two values before it.
func checkFigures(t *testing.T, what, doc string) {
	t.Helper()
	number := func(s string) float64 {
		x, err := strconv.ParseFloat(strings.ReplaceAll(s, "−", "-"), 64)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	list := regexp.MustCompile(
		`\| ([\d.]+) against ([\d.]+)(?:, [a-z]+ [\d.]+)*: ([+−][\d.]+)`).FindAllStringSubmatch(doc, -1)
	if len(list) < 10 {
		t.Errorf("%s: %d figures", what, len(list))
	}
	for _, m := range list {
		unit := math.Pow(10, -float64(len(m[1])-strings.Index(m[1], ".")-1))
		if a, b, d := number(m[1]), number(m[2]), number(m[3]); !(math.Abs(a-b-d) <= 1.6*unit) { // each is rounded
			t.Errorf("%s: %s against %s is not a difference of %s", what, m[1], m[2], m[3])
		}
	}
}

// Intervals over two seeds, and over unequal numbers of them, cover as they say, whether seeds differ by less or by
// more than items do.
func TestCoverageOfFewSeeds(t *testing.T) {
	const trials = 400
	for _, c := range []struct {
		than, arch int // seeds
		apart      float64
	}{{2, 2, 0}, {2, 2, 0.3}, {3, 2, 0.1}} {
		g := rand.New(rand.NewPCG(5, uint64(10*c.than+c.arch)))
		held := 0
		for range trials {
			rows := slices.DeleteFunc(simulated(g, c.than, 60),
				func(r Row) bool { return r.Arch == v1 && int(r.Seed) >= c.arch })
			for i := range rows {
				shift := c.apart * g.NormFloat64()
				rows[i].Value += shift
				for k := range rows[i].Items {
					rows[i].Items[k] += shift
				}
			}
			x, ok := newFinal(rows).find(&claims[0], "tiny")
			if !ok {
				t.Fatal("no comparison was found")
			}
			if x.low <= 0 && 0 <= x.high {
				held++
			}
		}
		share := 100 * float64(held) / trials
		t.Logf("%d and %d seeds, %.1f apart: %.1f %% of 95 %% intervals hold the truth", c.than, c.arch, c.apart, share)
		if share < 92 {
			t.Errorf("%d and %d seeds, %.1f apart: coverage is %.1f %%", c.than, c.arch, c.apart, share)
		}
	}
}

// Runs that diverged have been run: where a side, or all of a planned experiment, diverged, the document says how many
// runs did instead of calling a claim, or the experiment, not run.
func TestEvidenceOfDivergedSides(t *testing.T) {
	for _, c := range []struct {
		what   string
		failed func(*Run) bool
		sides  []string // whose runs all diverged
		there  string
	}{
		{"one side", func(r *Run) bool { return r.Arch == v1 }, []string{v1},
			"transformer: 3 seeds (1, 2, 3) at lr 0.001; diff: 3 seeds (1, 2, 3; all diverged) at lr 0.001"},
		{"two sides", func(r *Run) bool { return r.Arch != plain }, []string{v1, v2},
			"diff2: 3 seeds (1, 2, 3; all diverged)"},
		{"all", func(*Run) bool { return true }, three, "transformer, diff, diff2: 3 seeds (1, 2, 3; all diverged)"},
		{"two runs", func(r *Run) bool { return r.Arch == v2 && r.Seed > 1 }, nil,
			"diff2: 3 seeds (1, 2, 3; 2 diverged)"},
	} {
		m := made{name: "160m-text", size: "160m", sides: three, rates: 1, seeds: 3, failed: c.failed}
		dir := t.TempDir()
		m.write(t, dir)
		doc := document(t, dir)
		checkTables(t, doc)
		if !strings.Contains(doc, c.there) {
			t.Errorf("%s: lacks %q", c.what, c.there)
		}
		for i := range claims {
			cl := &claims[i]
			if cl.measure == "" || !slices.Contains(three, cl.arch) || !slices.Contains(three, cl.than) {
				continue
			}
			line := claimLine(doc, cl.text)
			if strings.Contains(line, NotRun) {
				t.Errorf("%s: %s", c.what, line)
			}
			for _, side := range []string{cl.arch, cl.than} {
				if slices.Contains(c.sides, side) && !strings.Contains(line, "3 of 3 runs of "+side+" diverged") {
					t.Errorf("%s: %s: %s", c.what, cl.text, line)
				}
			}
		}
	}
}

// Every claim is in the table of its own class, once, and every table has some.
func TestClaimsAreInTheirClass(t *testing.T) {
	dir := t.TempDir()
	for _, m := range planned() {
		m.write(t, dir)
	}
	doc := document(t, dir)
	for _, class := range classes {
		_, rest, ok := strings.Cut(doc, "## "+class.title+"\n")
		if !ok {
			t.Fatalf("no table %q", class.title)
		}
		table, _, _ := strings.Cut(rest, "\n## ")
		n := 0
		for _, c := range claims {
			here := strings.Count(table, "| "+c.text+" |") > 0
			if here {
				n++
			}
			if own := strings.HasPrefix(c.source, class.source); own != here {
				t.Errorf("%q of %q is in the table %q: %v", c.text, c.source, class.title, here)
			}
		}
		if n == 0 {
			t.Errorf("the table %q is empty", class.title)
		}
	}
}
