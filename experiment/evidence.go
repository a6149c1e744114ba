package experiment

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"antiphase/eval/report"
	"antiphase/internal/vfs"
)

// cell is a part of the evidence that is wanted: an experiment by its name.
type cell struct{ name, what string }

// cells are the evidence that was planned; an experiment that is none of them is shown too.
var cells = []cell{
	{"small-text", "(a) small, 17M parameters, books, science and other text: three architectures, three learning " +
		"rates, three seeds"},
	{"160m-text", "(b) 160m on the same text: three architectures, three seeds"},
	{"retrieval-tiny", "(c) retrieval, tiny: three architectures, three learning rates, five seeds. Prompts fill the context of 256 tokens; " +
		"documents seen in training have 204 at most, 66 in the median, so that retrieval here is also a matter of length"},
	{"retrieval-small", "(c) retrieval, small: three architectures, three learning rates, five seeds"},
	{"830m-text", "(d) 830m on the same text, one seed, as many tokens as there was time for"},
}

// Evidence reads every file of rows in a folder and writes the document about them.
func Evidence(dir string, w io.Writer) error {
	paths, err := vfs.Glob(vfs.OS{}, dir, "*.jsonl")
	if err != nil {
		return err
	}
	rows, err := ReadRowFiles(paths...)
	if err != nil {
		return err
	}
	byName := map[string][]Row{}
	for _, r := range rows {
		byName[r.Experiment] = append(byName[r.Experiment], r)
	}
	var b bytes.Buffer
	b.WriteString(evidenceHead)
	finals := map[string]*final{}
	for name, list := range byName {
		finals[name] = newFinal(list)
	}
	names := ordered(finals)
	writeCells(&b, finals, names)
	writeClaims(&b, finals, names)
	for _, name := range names {
		writeExperiment(&b, name, byName[name], finals[name])
	}
	_, err = w.Write(b.Bytes())
	return err
}

// ordered are the experiments' names, the planned ones first.
func ordered(finals map[string]*final) []string {
	place := func(name string) int {
		if i := slices.IndexFunc(cells, func(c cell) bool { return c.name == name }); i >= 0 {
			return i
		}
		return len(cells)
	}
	return slices.SortedFunc(maps.Keys(finals), func(a, b string) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), strings.Compare(a, b))
	})
}

const evidenceHead = `# Evidence

What was measured about the claims of the Differential Transformer (Ye et al., arXiv 2410.05258v2) and of DIFF V2
(2026-01-20), by training equal-size models on the same batches. This page is rendered from the rows in
[results/evidence](../results/evidence) by ` + "`antiphase evidence results/evidence -o docs/evidence.md`" + `;
every number on it is computed from a committed row.

How a claim is judged:

- Architectures have equal parameters (to 1 %), equal tokens, the same batches in the same order for a seed, and the
  same number of learning rates tried. The best rate of each is chosen by held-out loss; the seeds that chose it count
  in the comparison, for every architecture alike.
- Differences are over seeds and items as crossed random effects, with 95 % intervals. A hierarchical bootstrap is not
  used: with few seeds it covers too little. The intervals used here covered 95.7 % in a simulation of 2,000
  experiments with 5 seeds and 60 items (` + "`go test ./experiment -run Coverage -v`" + `).
- Retrieval counts a number only beside its own key; its floors are chance and what naming any hidden number earns.
- A claim *holds* when the whole interval lies on its side, *does not hold* when it lies on the other side or excludes
  an effect of the published size, and *cannot be told here* otherwise, or with fewer than three seeds.

`

func writeCells(b *bytes.Buffer, finals map[string]*final, names []string) {
	b.WriteString("## What there is\n\n| experiment | planned | there |\n|---|---|---|\n")
	for _, c := range cells {
		fmt.Fprintf(b, "| %s | %s | %s |\n", c.name, c.what, there(finals[c.name]))
	}
	for _, name := range names {
		if !slices.ContainsFunc(cells, func(c cell) bool { return c.name == name }) {
			fmt.Fprintf(b, "| %s | – | %s |\n", name, there(finals[name]))
		}
	}
	b.WriteString("\n")
}

// there says what an experiment holds.
func there(f *final) string {
	if f == nil || len(f.rows) == 0 {
		return "empty: not run yet"
	}
	var parts []string
	for _, size := range f.sizes {
		for _, arch := range f.archs {
			if n := len(f.seeds(size, arch)); n > 0 {
				parts = append(parts, fmt.Sprintf("%s: %s at lr %g", f.side(size, arch), plural(n, "seed"),
					f.best[[2]string{size, arch}]))
			}
		}
	}
	return fmt.Sprintf("%s; %s tokens a run", strings.Join(parts, ", "), big(float64(f.tokens(f.sizes[0]))))
}

func writeClaims(b *bytes.Buffer, finals map[string]*final, names []string) {
	b.WriteString("## Claims\n\n| claim | source | found, with 95 % interval | experiment: size, tokens, seeds | " +
		"verdict |\n|---|---|---|---|---|\n")
	for i := range claims {
		c := &claims[i]
		found := false
		for _, name := range names {
			f := finals[name]
			for _, size := range f.sizes {
				if x, ok := f.find(c, size); ok {
					v := f.verdict(c, size, x)
					writeVerdict(b, v, name+": "+v.Basis)
					found = true
				}
			}
		}
		if !found {
			writeVerdict(b, report.Verdict{Claim: c.text, Source: c.source, Figure: "–", Verdict: Unclear},
				cmp.Or(c.why, "empty: no row measures it yet"))
		}
	}
	b.WriteString("\n")
}

func writeVerdict(b *bytes.Buffer, v report.Verdict, basis string) {
	fmt.Fprintf(b, "| %s | %s | %s | %s | **%s** |\n", v.Claim, v.Source, v.Figure, basis, v.Verdict)
}

func writeExperiment(b *bytes.Buffer, name string, rows []Row, f *final) {
	p := Summarize(rows)
	fmt.Fprintf(b, "## %s\n\n", name)
	if p.Command != "" {
		fmt.Fprintf(b, "```sh\n%s\n```\n\n", p.Command)
	}
	if len(rows) > 0 {
		fmt.Fprintf(b, "%s; commit %s.\n\n", rows[0].Machine, cmp.Or(rows[0].Commit, "unknown"))
	}
	fmt.Fprintf(b, "```\n%s```\n\n", p.Table(false))
	for _, t := range p.Experiment.Tables {
		fmt.Fprintf(b, "%s. %s\n\n", t.Title, t.Note)
		for i, row := range t.Rows {
			fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
			if i == 0 {
				fmt.Fprintf(b, "|%s\n", strings.Repeat("---|", len(row)))
			}
		}
		b.WriteString("\n")
	}
}
