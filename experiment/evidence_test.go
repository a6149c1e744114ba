package experiment

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"antiphase/eval"
)

// made is an experiment whose rows are drawn: better are sides that are better than the others in everything.
type made struct {
	name, size   string
	sides        []string
	better       []string
	rates, seeds int
	failed       func(*Run) bool
}

// rows are those of all runs, as compare leaves them.
func (m *made) rows() []Row {
	g := rand.New(rand.NewPCG(7, 8))
	var out []Row
	for seed := range m.seeds {
		for rate := range m.rates {
			for _, arch := range m.sides {
				r := Run{Size: m.size, Arch: arch, LR: float64(int(1)<<rate) / 1000, Seed: uint64(seed + 1)}
				if seed > 0 && rate > 0 { // the lowest rate is the best and gets the other seeds
					continue
				}
				out = append(out, m.run(&r, g, 0.1*float64(rate))...)
			}
		}
	}
	return out
}

func (m *made) run(r *Run, g *rand.Rand, worse float64) (rows []Row) {
	base := Row{origin: origin{Experiment: m.name, Run: r.Name(), Size: r.Size, Arch: r.Arch, LR: r.LR, Seed: r.Seed,
		Parameters: 1e6, Steps: 100, Tokens: 1e6, Machine: "a machine", Commit: "c0ffee",
		Command: "antiphase compare --name " + m.name}}
	if m.failed != nil && m.failed(r) {
		base.Measure, base.Value, base.Note = Failed, 60, "the loss is not finite"
		return []Row{base}
	}
	good := 0.0
	if slices.Contains(m.better, r.Arch) {
		good = 0.3
	}
	add := func(measure string, better eval.Better, value float64) *Row {
		x := base
		sign := -1.0
		if better == eval.Higher {
			sign = 1
		}
		x.Measure, x.Label, x.Better = measure, measure, better
		x.Value = value*(1+sign*(good-worse)) + 0.004*value*g.NormFloat64()
		rows = append(rows, x)
		return &rows[len(rows)-1]
	}
	for _, name := range []string{heldOut, "train.spikes", "train.grad_norm_late", "curve.valid_loss"} {
		x := add(name, eval.Lower, 2)
		x.Curve = [][2]float64{{5e5, 3}, {1e6, x.Value}}
	}
	add(trainSpeed, eval.Higher, 1000)
	probe := add("probe.needle.bound N=4 R=2", eval.Higher, 0.7)
	probe.Curve = [][2]float64{{float64(1+r.Seed) * 1e5, 0.2}, {float64(2+r.Seed) * 1e5, probe.Value}}
	for place, name := range []string{"lm.loss", "lm.ar_hit", "lm.others", "needle.bound N=1 R=1",
		"needle.bound N=4 R=2", "attention.answer N=4 R=1", "attention.noise N=4 R=1", "outliers.logits_max",
		"outliers.hidden_max",
		"lowbit.kl logits@4", "context_rms.least"} {
		kind, metric, _ := strings.Cut(strings.Split(name, " N=")[0], ".")
		better := eval.Lower
		if metric == "bound" || metric == "answer" {
			better = eval.Higher
		}
		x := add(name, better, 0.6)
		x.Metric, x.N = metric, 8
		x.Task = &TaskInfo{Name: kind, Kind: kind, Question: kind + name[len(name)-3:], Place: place,
			Config: map[string]any{"lengths": []any{192.0}}}
		if metric == "bound" {
			x.Floors = map[string]float64{"chance": 0.011, "copy": 0.25}
		}
		for range x.N {
			x.Items = append(x.Items, x.Value+0.01*g.NormFloat64())
			if kind == "lm" {
				x.Weights, x.Clusters = append(x.Weights, 2), append(x.Clusters, fmt.Sprint(len(x.Items)/2))
			}
		}
	}
	end := base
	end.Measure, end.Value = Finished, float64(len(rows))
	return append(rows, end)
}

// write puts the experiment's rows into a folder.
func (m *made) write(t *testing.T, dir string) string {
	t.Helper()
	b, err := Encode(m.rows())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, strings.ReplaceAll(m.name, "/", "_")+".jsonl")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func document(t *testing.T, dir string) string {
	t.Helper()
	var b bytes.Buffer
	if err := Evidence(dir, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// planned are all planned experiments, complete, with the variants and both versions better than the Transformer.
func planned() (out []made) {
	for _, c := range cells {
		size, _, _ := strings.Cut(c.name, "-")
		out = append(out, made{name: c.name, size: size, sides: c.sides, rates: c.rates, seeds: c.seeds,
			better: []string{v1, v2, flatter, noNorm, flatFree}})
	}
	return out
}

// checkTables holds every row of a table to the number of columns of its head, and links to headings.
func checkTables(t *testing.T, doc string) {
	t.Helper()
	columns, code := 0, false
	headings := map[string]bool{}
	for _, line := range strings.Split(doc, "\n") {
		if strings.HasPrefix(line, "## ") {
			headings[anchor(strings.TrimPrefix(line, "## "))] = true
		}
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		if code || !strings.HasPrefix(line, "|") {
			columns = 0
			continue
		}
		n := strings.Count(line, "|") - strings.Count(line, `\|`)
		if columns > 0 && n != columns {
			t.Errorf("%d columns where the head has %d: %s", n-1, columns-1, line)
		}
		columns = n
	}
	for _, m := range regexp.MustCompile(`\]\(#([^)]*)\)`).FindAllStringSubmatch(doc, -1) {
		if !headings[m[1]] {
			t.Errorf("a link leads to %q, which is no heading", m[1])
		}
	}
}

// With every planned experiment there, every claim that rows can speak about has a verdict and a command, and what is
// there is called complete.
func TestEvidenceOfAllCells(t *testing.T) {
	dir := t.TempDir()
	for _, m := range planned() {
		m.write(t, dir)
	}
	doc := document(t, dir)
	checkTables(t, doc)
	for _, c := range claims {
		line := claimLine(doc, c.text)
		if line == "" {
			t.Errorf("not there: %s", c.text)
			continue
		}
		if strings.Contains(line, NotRun) {
			t.Errorf("every experiment was run: %s", line)
		}
		if c.measure == "" && (!strings.Contains(line, "`antiphase ") || !strings.Contains(line, Unclear) ||
			!strings.Contains(line, c.why)) {
			t.Errorf("neither reason nor command: %s", line)
		}
	}
	total := 0
	counts := regexp.MustCompile(
		`(?m)^\| (?:Claims of the paper|Claims of DIFF V2|Questions asked here) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$`)
	for _, m := range counts.FindAllStringSubmatch(doc, -1) {
		for _, n := range m[1:] {
			k, _ := strconv.Atoi(n)
			total += k
		}
	}
	if total != len(claims) || !strings.Contains(doc,
		"| claims | holds | does not hold | differs | cannot be told here | not run |") {
		t.Errorf("the summary counts %d of %d claims", total, len(claims))
	}
	for _, w := range words {
		if !strings.Contains(doc, "- **"+w.Word+"**: ") {
			t.Errorf("%s is not explained", w.Word)
		}
	}
	if n := strings.Count(doc, "| complete |"); n != len(cells) {
		t.Errorf("%d of %d experiments are complete", n, len(cells))
	}
	for _, want := range []string{
		`equal tokens \| paper, Fig. 3, Table 6: −0.025 nats \| 0\.4\d\d against 0\.\d{3}: −0\.1.*\*\*holds`,
		`chance 1\.1, copy 25\.0: \+1\d`, `Prompts with needles have 192 tokens`} {
		if !regexp.MustCompile(want).MatchString(doc) {
			t.Errorf("lacks %q", want)
		}
	}
	if at := os.Getenv("ANTIPHASE_TEST_KEEP"); at != "" { // to look at it
		_ = os.WriteFile(filepath.Join(at, "evidence.md"), []byte(doc), 0o644)
	}
}

// What is there in part claims no more than it shows.
func TestEvidenceOfPartOfACell(t *testing.T) {
	all := func(m *made) []string { return m.sides }
	for _, c := range []struct {
		what   string
		change func(*made)
		keep   func(*Run) bool
		says   []string
	}{
		{"two of three seeds", func(m *made) { m.seeds = 2 }, nil, []string{"2 seeds (a verdict needs 3)",
			"incomplete, 12 of 15 runs: transformer has 2 of 3 seeds",
			"transformer, diff, diff2: 2 seeds (1, 2) at lr 0.001"}},
		{"one seed", func(m *made) { m.seeds = 1 }, nil, []string{"(one seed: no interval)"}},
		{"one rate of diff, three of the others", func(m *made) { m.better = all(m) },
			func(r *Run) bool { return r.Arch == plain || r.LR == 0.001 },
			[]string{"learning rates tried: 3 of transformer, 1 of diff", "diff has 1 of 3 learning rates"}},
		{"a side is missing", nil, func(r *Run) bool { return r.Arch == plain }, []string{"no run of diff"}},
		{"one rate of all", func(m *made) { m.rates = 1 }, nil, []string{"nothing was tuned",
			"diff has 1 of 3 learning rates"}},
	} {
		m := planned()[0] // small-text
		if c.change != nil {
			c.change(&m)
		}
		dir := t.TempDir()
		rows := slices.DeleteFunc(m.rows(), func(r Row) bool {
			return c.keep != nil && !c.keep(&Run{Size: r.Size, Arch: r.Arch, LR: r.LR, Seed: r.Seed})
		})
		b, err := Encode(rows)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "small-text.jsonl"), b, 0o644); err != nil {
			t.Fatal(err)
		}
		doc := document(t, dir)
		checkTables(t, doc)
		if c.what != "one rate of all" && regexp.MustCompile(`\*\*(holds|does not hold)\*\*.*small-text`).MatchString(
			strings.ReplaceAll(doc, "diff2", "")) && m.seeds < 3 {
			t.Errorf("%s: there is a verdict", c.what)
		}
		for _, s := range c.says {
			if !strings.Contains(doc, s) {
				t.Errorf("%s: lacks %q", c.what, s)
			}
		}
		if line := claimLine(doc, claims[0].text); c.keep != nil && strings.Contains(line, "**holds**") {
			t.Errorf("%s: %s", c.what, line)
		}
	}
}

func claimLine(doc, text string) string {
	_, after, _ := strings.Cut(doc, "\n## "+classes[0].title) // after the tables in short
	_, after, _ = strings.Cut(after, "| "+text+" |")
	line, _, _ := strings.Cut(after, "\n")
	return line
}

// A run that diverged is listed, never retrieves, chooses no learning rate and takes back a verdict for its side.
func TestEvidenceOfADivergedRun(t *testing.T) {
	m := planned()[0]
	m.seeds, m.failed = 4, func(r *Run) bool { return r.Arch == v1 && r.Seed == 4 || r.Arch == v2 && r.LR == 0.001 }
	rows := m.rows()
	f := newFinal(rows)
	if lr := f.best[[2]string{"small", v2}]; lr == 0.001 {
		t.Error("a rate that diverged was chosen")
	}
	if got := f.reaches("small", v1); len(got) != 4 || finite(got) != 3 {
		t.Errorf("tokens to 90 %%: %v", got)
	}
	dir := t.TempDir()
	m.write(t, dir)
	doc := document(t, dir)
	for _, want := range []string{"| small-diff-lr0.001-s4 | 1M | 1M | diverged after 60 of 100 steps |",
		"1 of 4 runs of diff diverged", "| small | diff2 | 0.001 | 1 2 3 4 | diverged |"} {
		if !strings.Contains(doc, want) {
			t.Errorf("lacks %q", want)
		}
	}
	if line := claimLine(doc, claims[0].text); !strings.Contains(line, "**"+Unclear+"**") {
		t.Errorf("with a run that diverged: %s", line)
	}
	m.failed = func(r *Run) bool { return r.Arch == v1 }
	if doc := (&made{}).page(m.rows()); !strings.Contains(doc, "small-diff-lr0.001-s1") {
		t.Error("an architecture whose runs all diverged is not on the page")
	}
}

func (*made) page(rows []Row) string {
	var b bytes.Buffer
	if err := Summarize(rows).HTML(&b); err != nil {
		return err.Error()
	}
	return b.String()
}

// A folder without rows is not the one that was meant.
func TestEvidenceOfNothing(t *testing.T) {
	if err := Evidence(t.TempDir(), &bytes.Buffer{}); err == nil ||
		!strings.Contains(err.Error(), "holds no file of rows") {
		t.Error(err)
	}
}

// Damaged files are refused by name; two files of one experiment are one, and a run in both counts once.
func TestEvidenceOfDamagedFiles(t *testing.T) {
	m := planned()[0]
	dir := t.TempDir()
	path := m.write(t, dir)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := document(t, dir)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	half := bytes.Join(lines[:len(lines)/2], nil)
	for what, b := range map[string][]byte{"small-text": half, "cut within a line": whole[:len(whole)/2+7],
		"not those of one finished run": slices.Concat(whole, half), "line 1": []byte("{}\n"),
		"both of experiment": slices.Concat(whole, bytes.ReplaceAll(bytes.ReplaceAll(whole, []byte(`-s`), []byte(`-z`)),
			[]byte(`"tokens":1000000`), []byte(`"tokens":2000000`)))} {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		err := Evidence(dir, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), "small-text") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i, b := range [][]byte{whole, whole} {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("small-text-%d.jsonl", i)), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_ = os.Remove(path)
	if got := document(t, dir); got != want {
		t.Error("two files with the same runs give another document than one")
	}
}

// Names and labels of rows are text: they neither break a table nor become HTML.
func TestHostileNames(t *testing.T) {
	m := planned()[0]
	m.name = "a|b <script>alert(1)</script> ü`\n\nc"
	rows := m.rows()
	for i := range rows {
		rows[i].Label += `<img src=x onerror=alert(2)>`
		rows[i].Machine = "</style><script>alert(3)</script>"
		rows[i].Command = "antiphase compare --name '</pre><script>alert(4)</script>'"
	}
	page := m.page(rows)
	for _, bad := range []string{"<script>alert", "<img src"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	b, err := Encode(rows)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.jsonl"), b, 0o644); err != nil {
		t.Fatal(err)
	}
	doc := document(t, dir)
	outside := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(doc, "")
	for _, bad := range []string{"<script", "<img"} {
		if i := strings.Index(outside, bad); i >= 0 {
			t.Errorf("the document has %q: %.80s", bad, outside[max(i-40, 0):])
		}
	}
}
