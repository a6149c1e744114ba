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

// Evidence reads every file of rows in a folder and writes the document about them.
func Evidence(dir string, w io.Writer) error {
	paths, err := vfs.Glob(vfs.OS{}, dir, "*.jsonl")
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return fmt.Errorf("%s: holds no file of rows, which end with .jsonl", dir)
	}
	byName := map[string][]Row{}
	for _, path := range paths {
		rows, err := ReadRowFiles(path)
		if err != nil {
			return err
		}
		if err := wholeRuns(rows); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, r := range rows {
			byName[r.Experiment] = append(byName[r.Experiment], r)
		}
	}
	e := &evidence{finals: map[string]*final{}}
	for name, rows := range byName {
		if err := oneExperiment(rows); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		e.finals[name] = newFinal(rows)
	}
	e.names = ordered(e.finals)
	e.WriteString(evidenceHead)
	e.summary()
	e.short()
	e.WriteString(evidenceRules)
	e.untuned()
	e.words()
	e.cells()
	e.claims()
	for _, name := range e.names {
		e.experiment(name, byName[name])
	}
	e.empty()
	_, err = w.Write(e.Bytes())
	return err
}

// wholeRuns rejects a file in which rows of a run are missing: it was truncated, or two were joined.
func wholeRuns(rows []Row) error {
	byRun := map[string][]Row{}
	for _, r := range rows {
		key := r.Experiment + " " + r.Run
		byRun[key] = append(byRun[key], r)
	}
	for _, key := range slices.Sorted(maps.Keys(byRun)) {
		if list := byRun[key]; !whole(list) {
			return fmt.Errorf("the %s of %s are not those of one finished run: the file was cut, or two were joined",
				plural(len(list), "row"), key)
		}
	}
	return nil
}

// oneExperiment rejects rows of one name that cannot be compared: other steps at the same size, another way to select
// the learning rate, other settings, another precision, or other questions, as from other data.
func oneExperiment(rows []Row) error {
	first := map[string]*Row{}
	asked := map[[2]string]map[string]*Row{} // size and measure → question
	for i := range rows {
		r := &rows[i]
		f := first[r.Size]
		if f == nil {
			first[r.Size], f = r, r
		}
		if f.Steps != r.Steps || f.Tokens != r.Tokens {
			return fmt.Errorf("%s and %s are both of experiment %s, but one trains on %d tokens and the other on %d",
				f.Run, r.Run, r.Experiment, f.Tokens, r.Tokens)
		}
		if f.Data != r.Data && f.Data != "" && r.Data != "" {
			return fmt.Errorf(
				"%s and %s are both of experiment %s, but were trained on different text or tokens: sets %s and %s",
				f.Run, r.Run, r.Experiment, f.Data, r.Data)
		}
		if f.Tuned != r.Tuned {
			return fmt.Errorf("%s and %s are both of experiment %s, but their learning rates are chosen by %s and %s",
				f.Run, r.Run, r.Experiment, f.tunedBy(), r.tunedBy())
		}
		if key := [2]string{r.Size, r.Measure}; r.Task != nil {
			if asked[key] == nil {
				asked[key] = map[string]*Row{}
			}
			asked[key][r.Task.Question] = r
		}
	}
	if err := sameSettings(rows); err != nil {
		return err
	}
	if _, err := samePrecision(rows); err != nil {
		return err
	}
	return sameQuestions(rows, asked)
}

// sameSettings rejects seeds of one model that were trained or asked in different ways.
func sameSettings(rows []Row) error {
	type cell struct {
		size, arch string
		lr         float64
	}
	first := map[cell]*Row{}
	for i := range rows {
		r := &rows[i]
		key := cell{r.Size, r.Arch, r.LR}
		if f := first[key]; f != nil && r.Settings != "" && f.Settings != r.Settings {
			return fmt.Errorf("%s and %s are both of experiment %s, but were trained or asked with different settings"+
				": %s and %s", f.Run, r.Run, r.Experiment, f.Settings, r.Settings)
		} else if f == nil && r.Settings != "" {
			first[key] = r
		}
	}
	return nil
}

// sameQuestions rejects runs of a size that were not all asked the same.
func sameQuestions(rows []Row, asked map[[2]string]map[string]*Row) error {
	byRun := map[string]map[string]bool{}
	for _, r := range rows {
		if r.Task != nil {
			if byRun[r.Run] == nil {
				byRun[r.Run] = map[string]bool{}
			}
			byRun[r.Run][r.Measure+" "+r.Task.Question] = true
		}
	}
	for _, r := range rows {
		if r.Task == nil {
			continue
		}
		for question, other := range asked[[2]string{r.Size, r.Measure}] {
			if !byRun[r.Run][r.Measure+" "+question] {
				return fmt.Errorf(
					"%s and %s are both of experiment %s, but were asked different questions for %s: other "+
						"data, or other settings of the task", r.Run, other.Run, r.Experiment, r.Measure)
			}
		}
	}
	return nil
}

// evidence is the document being written.
type evidence struct {
	bytes.Buffer
	finals map[string]*final
	names  []string
}

// ordered are the experiments' names, the planned ones first.
func ordered(finals map[string]*final) []string {
	return slices.SortedFunc(maps.Keys(finals), func(a, b string) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), strings.Compare(a, b))
	})
}

// classes of claims, by their source.
var classes = []struct{ title, source string }{
	{"Claims of the paper", "paper"}, {"Claims of DIFF V2", "V2"},
	{"Questions asked here", "asked here"},
}

func (c *claim) of(source string) bool { return strings.HasPrefix(c.source, source) }

// found returns the verdicts on a claim, with links to their experiments. Runs that two experiments share give one
// verdict.
func (e *evidence) found(c *claim) (out []report.Verdict, links []string) {
	for _, name := range e.names {
		for _, size := range e.finals[name].sizes {
			x, ok := e.finals[name].find(c, size)
			if !ok || !c.counts(name) {
				continue
			}
			v := e.finals[name].verdict(c, size, x)
			i := slices.IndexFunc(out, func(o report.Verdict) bool {
				return o.Figure == v.Figure &&
					o.Basis == v.Basis
			})
			if i >= 0 {
				links[i] += sameRuns + link(name)
				continue
			}
			out, links = append(out, v), append(links, link(name))
		}
	}
	if len(out) == 0 {
		return e.lost(c)
	}
	return out, links
}

// sameRuns is between the links of experiments that share the runs of a verdict.
const sameRuns = ", the same runs in "

// lost returns the verdicts on a claim about experiments of which every run diverged. Their rows do not tell which
// claims would have been measured, so they count only for claims that nothing else measures.
func (e *evidence) lost(c *claim) (out []report.Verdict, links []string) {
	for _, name := range e.names {
		f := e.finals[name]
		for _, size := range f.sizes {
			if allDiverged(f.all) && c.lost(f, size) {
				out, links = append(out, f.verdict(c, size, finding{note: "–"})), append(links, link(name))
			}
		}
	}
	return out, links
}

// differs is the outcome of a claim that holds in one experiment and not in another.
const differs = "differs"

// outcome combines the verdicts on the claim.
func (c *claim) outcome(list []report.Verdict) string {
	seen := map[string]bool{}
	for _, v := range list {
		seen[v.Verdict] = true
	}
	switch {
	case len(list) == 0:
		return c.unmeasured()
	case seen[Holds] && seen[HoldsNot]:
		return differs
	case seen[Holds]:
		return Holds
	case seen[HoldsNot]:
		return HoldsNot
	}
	return Unclear
}

// unmeasured is the verdict without rows: no experiment here can measure the claim, or one is planned.
func (c *claim) unmeasured() string {
	if c.why != "" {
		return Unclear
	}
	return NotRun
}

// summary counts the claims by outcome.
func (e *evidence) summary() {
	heads := []string{Holds, HoldsNot, differs, Unclear, NotRun}
	fmt.Fprintf(e, "| claims | %s |\n|---|%s\n", strings.Join(heads, " | "), strings.Repeat("---|", len(heads)))
	for _, class := range classes {
		count := map[string]int{}
		for i := range claims {
			if claims[i].of(class.source) {
				list, _ := e.found(&claims[i])
				count[claims[i].outcome(list)]++
			}
		}
		fmt.Fprintf(e, "| %s |", class.title)
		for _, h := range heads {
			fmt.Fprintf(e, " %d |", count[h])
		}
		e.WriteString("\n")
	}
	e.WriteString("\n" + prose("",
		"*Holds*: in at least one experiment, and no other contradicts it. *Does not hold*: contradicted "+
			"in at least one, and it holds in no other. *Differs*: it holds in one experiment and not in another.") +
		"\n")
}

// words explains the tables' terms, except those only a page has.
func (e *evidence) words() {
	e.WriteString("Words:\n\n")
	for _, w := range words {
		e.WriteString(prose("- ", fmt.Sprintf("**%s**: %s.", w.Word, strings.TrimSuffix(w.Says, "."))))
	}
	e.WriteString("\n")
}

// claims writes a table for each class.
func (e *evidence) claims() {
	for _, class := range classes {
		fmt.Fprintf(e,
			"## %s\n\n| claim | source | found, with 95 %% interval | size, tokens, seeds | verdict | repeat |\n"+
				"|---|---|---|---|---|---|\n", class.title)
		for i := range claims {
			if claims[i].of(class.source) {
				e.claim(&claims[i])
			}
		}
		e.WriteString("\n")
	}
}

// claim writes a line for every experiment that measures the claim.
func (e *evidence) claim(c *claim) {
	list, links := e.found(c)
	for i, v := range list {
		text, source := v.Claim, v.Source
		if i > 0 {
			text, source = "″", "″"
		}
		e.row(text, source, v.Figure, v.Basis, "**"+v.Verdict+"**", links[i])
	}
	if len(list) > 0 {
		return
	}
	repeat := "`" + c.command + "`"
	if c.command == "" {
		repeat = link(cmp.Or(c.cell, cells[0].name))
	}
	e.row(c.text, c.from(), "–", cmp.Or(c.why, "no row measures it yet"), "**"+c.unmeasured()+"**", repeat)
}

// row writes a row of a table; cells made here are already Markdown, others are text.
func (e *evidence) row(list ...string) {
	for _, s := range list {
		fmt.Fprintf(e, "| %s ", markdown(s))
	}
	e.WriteString("|\n")
}

// markdown escapes text for a table cell.
func markdown(s string) string {
	return strings.NewReplacer("|", "\\|", "<", "&lt;", "\n", " ", "\r", " ").Replace(s)
}

// link refers to the section of an experiment, which begins with its command.
func link(name string) string { return fmt.Sprintf("[%s](#%s)", name, anchor(name)) }

// anchor is the target of links to a heading.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case strings.ContainsRune("`~!@#$%^&*()+=<>?,./:;\"'|{}[]\\", r):
			return -1
		}
		return r
	}, strings.ToLower(heading))
}
