package experiment

import (
	"cmp"
	"fmt"
	"slices"

	"antiphase/eval"
)

// final is the basis of comparisons: the runs of each size and architecture at its best learning rate, one set of rows
// per run.
type final struct {
	tuning       // of every learning rate; the first architecture is the reference
	rows   []Row // of the best
	eval   *eval.Evaluation
}

// newFinal gathers the runs to compare.
func newFinal(rows []Row) *final {
	f := &final{tuning: tuning{all: unique(rows)}}
	f.best = Choose(f.all)
	for _, r := range f.all {
		if !slices.Contains(f.sizes, r.Size) {
			f.sizes = append(f.sizes, r.Size)
		}
		if !slices.Contains(f.archs, r.Arch) {
			f.archs = append(f.archs, r.Arch)
		}
		if lr, ok := f.best[[2]string{r.Size, r.Arch}]; ok && lr == r.LR {
			f.rows = append(f.rows, r)
		}
	}
	slices.SortStableFunc(f.rows, func(a, b Row) int { // a side's place does not depend on its learning rate
		return cmp.Or(cmp.Compare(slices.Index(f.sizes, a.Size), slices.Index(f.sizes, b.Size)),
			cmp.Compare(slices.Index(f.archs, a.Arch), slices.Index(f.archs, b.Arch)))
	})
	f.eval = f.evaluation()
	return f
}

// unique drops the rows of duplicate runs: the first counts.
func unique(rows []Row) []Row {
	type key struct{ experiment, run, measure, question string }
	seen := map[key]bool{}
	var out []Row
	for _, r := range rows {
		k := key{r.Experiment, r.Run, r.Measure, ""}
		if r.Task != nil {
			k.question = r.Task.Question
		}
		if !seen[k] {
			out = append(out, r)
		}
		seen[k] = true
	}
	return out
}

// diverged is the number of runs of a side whose loss was not finite.
func (f *final) diverged(size, arch string) int { return len(f.values(size, arch, Failed)) }

// allDiverged reports whether no run of an experiment came to its end.
func allDiverged(rows []Row) bool {
	return !slices.ContainsFunc(rows, func(r Row) bool { return r.Measure == Finished })
}

// side names a size and an architecture among the others.
func (f *final) side(size, arch string) string {
	if len(f.sizes) > 1 {
		return size + " " + arch
	}
	return arch
}

// evaluation puts the runs' scores side by side: seeds of one side are a group, so that intervals and tests are over
// seeds and items as crossed random effects. (A hierarchical bootstrap over seeds, then items, covers too little with
// few seeds.)
func (f *final) evaluation() *eval.Evaluation {
	var cells []*eval.Cell
	at := map[[2]string]*eval.Cell{} // run and question
	names := f.names()
	for i := range f.rows {
		r := &f.rows[i]
		if r.Task == nil || r.Metric == "" {
			continue
		}
		key := [2]string{r.Run, r.Task.Question}
		c := at[key]
		if c == nil {
			side := f.side(r.Size, r.Arch)
			c = &eval.Cell{
				Head: eval.Head{Model: eval.Model{Name: names[r.Run], Group: side, Hash: r.Run, Arch: r.Arch,
					Parameters: r.Parameters, Context: r.Task.Context},
					Machine: r.Machine, Commit: r.Commit, Seed: r.Task.Seed},
				Result: &eval.Result{Question: r.Task.Question, Task: r.Task.Name, Kind: r.Task.Kind,
					Place: r.Task.Place, Version: r.Task.Version,
					Context: r.Task.Context, Config: r.Task.Config, N: r.N},
			}
			at[key] = c
			cells = append(cells, c)
		}
		r.into(c.Result)
	}
	e := eval.Assemble(cells)
	e.Date = "" // rows do not say when
	e.Warnings = unequal(f.allSized())
	return e
}

// names are the runs' names in figures: their side, with the seed if it has several.
func (f *final) names() map[string]string {
	out := map[string]string{}
	seeds := map[string]int{}
	for _, r := range f.rows {
		s := f.side(r.Size, r.Arch)
		if seeds[s] == 0 {
			seeds[s] = len(f.seeds(r.Size, r.Arch))
		}
		if out[r.Run] = s; seeds[s] > 1 {
			out[r.Run] = fmt.Sprintf("%s s%d", s, r.Seed)
		}
	}
	return out
}

// into adds the row's measure to a result, with the samples' values.
func (r *Row) into(res *eval.Result) {
	res.Add(r.Metric, r.Label, r.Better, eval.Mean{Value: r.Value, StdErr: r.StdErr, N: r.N})
	res.Metrics[len(res.Metrics)-1].Floors = r.Floors
	if len(r.Detail) > 0 {
		res.Detail = r.Detail
	}
	for i, v := range r.Items {
		if len(res.Answers) <= i {
			res.Answers = append(res.Answers, eval.Answer{ID: fmt.Sprint(i), Values: map[string]float64{},
				Weights: map[string]float64{}})
		}
		a := &res.Answers[i]
		if len(r.Clusters) > 0 {
			a.Cluster = r.Clusters[i]
		}
		w := 1.0
		if len(r.Weights) > 0 {
			w = r.Weights[i]
		}
		if w > 0 {
			a.Values[r.Metric], a.Weights[r.Metric] = v, w
		}
	}
}

// values are a measure of every run of a side, by seed; of a measure that was asked in two ways the first.
func (f *final) values(size, arch, measure string) map[uint64]*Row {
	out := map[uint64]*Row{}
	for i := range f.rows {
		if r := &f.rows[i]; r.Size == size && r.Arch == arch && r.Measure == measure && out[r.Seed] == nil {
			out[r.Seed] = r
		}
	}
	return out
}

// seeds are those of a side, in order.
func (f *final) seeds(size, arch string) []uint64 {
	var out []uint64
	for _, r := range f.rows {
		if r.Size == size && r.Arch == arch && !slices.Contains(out, r.Seed) {
			out = append(out, r.Seed)
		}
	}
	slices.Sort(out)
	return out
}

// tokens that a run of the size trains on.
func (f *final) tokens(size string) int64 {
	for _, r := range f.rows {
		if r.Size == size {
			return r.Tokens
		}
	}
	return 0
}
