// Package experiment compares architectures by training: data × sizes × architectures × learning rates × seeds as one
// folder that can be stopped anywhere and continued.
//
//	dir/experiment.json   the Spec
//	dir/data/             one token set with its tokenizer, which every run reads
//	dir/runs/NAME/        run folders (see package train), each with the stores of its probes and of its evaluation
//	dir/runs/NAME/rows.jsonl  what the run showed; its presence says that the run is finished
//	dir/rows.jsonl        the rows of all finished runs
//	dir/report.html       the page made of them
//
// [Spec.Runs] lays out the grid, [Work] trains and judges what is missing, and [Summarize] makes the page from rows
// alone, so that rows from several machines can be put together later.
package experiment

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"

	"antiphase/layer"
	"antiphase/recipe"
)

const specFormat = 1

// Spec defines an experiment: everything that determines its numbers.
type Spec struct {
	Format    int       `json:"format"`
	Name      string    `json:"name"`
	Data      []string  `json:"data,omitempty"`      // sources; none: the first size's own
	Tokenizer string    `json:"tokenizer,omitempty"` // file, or "bytes"; empty: trained on the data
	Vocab     int       `json:"vocab,omitempty"`     // of the models, where Tokenizer is given; see Resolve
	Sizes     []string  `json:"sizes"`
	Archs     []string  `json:"archs"`
	Variants  []Variant `json:"variants,omitempty"`
	LRs       []float64 `json:"lrs,omitempty"` // none: each size's own
	Seeds     []uint64  `json:"seeds"`
	TuneSeeds int       `json:"tune_seeds"`        // seeds of every rate before the best is selected; 0: all
	TuneBy    Ask       `json:"tune_by,omitempty"` // chooses the rate: one of Tasks, or "probe"; none: held-out loss
	Steps     int       `json:"steps,omitempty"`   // 0: each size's own
	Set       []string  `json:"set,omitempty"`     // changes to every recipe
	Tasks     []Ask     `json:"tasks"`
	Probes    []Ask     `json:"probes,omitempty"` // asked while training
	Every     int       `json:"probe_every,omitempty"`
	EvalSeed  uint64    `json:"eval_seed"`
}

// Check finds errors in an experiment, naming the wrong flag.
func (s *Spec) Check() error {
	switch {
	case len(s.Sizes) == 0 || len(s.Archs) == 0 || len(s.Seeds) == 0:
		return errors.New("--size, --arch and --seeds: each needs at least one value")
	case s.TuneSeeds < 0 || s.TuneSeeds > len(s.Seeds):
		return fmt.Errorf("--tune-seeds: is %d, there are %d seeds", s.TuneSeeds, len(s.Seeds))
	case s.Steps < 0:
		return fmt.Errorf("--steps: is %d, must be positive", s.Steps)
	case len(s.Tasks) == 0:
		return errors.New("--task: an experiment without a task measures nothing")
	case s.Every < 0:
		return fmt.Errorf("--probe-every: is %d, must be positive", s.Every)
	}
	for _, err := range []error{twice("--size", s.Sizes), twice("--seeds", s.Seeds),
		twice("--lr", s.LRs), twice("--task", wordsOf(s.Tasks)), twice("--probe", wordsOf(s.Probes))} {
		if err != nil {
			return err
		}
	}
	for _, a := range s.Archs {
		if _, err := layer.LookupArch(a); err != nil {
			return fmt.Errorf("--arch: %w", err)
		}
	}
	if err := s.checkSettings(); err != nil {
		return err
	}
	if err := s.checkNames(); err != nil {
		return err
	}
	for _, lr := range s.LRs {
		if !(lr > 0) || math.IsInf(lr, 0) {
			return fmt.Errorf("--lr: %g is not a learning rate; want a positive number", lr)
		}
	}
	runs, err := s.Grid(nil)
	if err != nil {
		return err
	}
	if err := checkMeaning(s); err != nil {
		return err
	}
	if err := s.checkAsks(runs); err != nil {
		return err
	}
	_, err = s.tuned()
	return err
}

// checkNames rejects names of sides that are the same folder somewhere, variants named like an architecture, and a name
// of the experiment that no line can hold.
func (s *Spec) checkNames() error {
	flag, folders := "--arch", []string{}
	if len(s.Variants) > 0 {
		flag = "--arch, --variant"
	}
	for _, name := range s.sides()[len(s.Archs):] {
		if slices.ContainsFunc(layer.Archs(), func(a *layer.Arch) bool { return strings.EqualFold(a.Name, name) }) {
			return fmt.Errorf("--variant: %s is the name of an architecture; a variant needs one of its own, such as "+
				"%s-changed", name, name)
		}
	}
	if err := twice(flag, s.sides()); err != nil {
		return err
	}
	for _, name := range s.sides() {
		folders = append(folders, strings.ToLower(name))
	}
	if err := twice(flag+": names without regard to case", folders); err != nil {
		return err
	}
	if strings.ContainsFunc(s.Name, unicode.IsControl) {
		return fmt.Errorf("--name: %q has a control character; want one line of text", s.Name)
	}
	return nil
}

// decided are the fields of a recipe that flags of an experiment decide, by run or for all.
var decided = map[string]string{"name": "--name", "train.seed": "--seeds", "train.steps": "--steps", "optim.lr": "--lr",
	"model.arch": "--arch", "data.sources": "--data", "tokenizer.path": "--tokenizer"}

// shared are the fields of a model that text and questions depend on.
var shared = []string{"model.vocab", "model.context"}

// checkSettings rejects changes that would make runs something else than their names say, and those of one variant that
// all runs share or that would be unfair: the data, the tokens and their number.
func (s *Spec) checkSettings() error {
	for _, x := range s.Set {
		key, _, _ := strings.Cut(x, "=")
		if flag := decided[strings.TrimSpace(key)]; flag != "" {
			return fmt.Errorf("--set: %s is decided by %s", strings.TrimSpace(key), flag)
		}
	}
	for _, v := range s.Variants {
		name, _, set, err := v.parts()
		if err != nil {
			return err
		}
		for _, x := range set {
			key, _, _ := strings.Cut(x, "=")
			if flag := decided[key]; flag != "" {
				return fmt.Errorf("--variant: %s: %s is decided by %s", name, key, flag)
			}
			if !strings.HasPrefix(key, "model.") && !strings.HasPrefix(key, "optim.") || slices.Contains(shared, key) {
				return fmt.Errorf("--variant: %s: %s must be the same for all sides: use --set; a variant changes "+
					"model.… or optim.…", name, key)
			}
		}
	}
	return nil
}

// twice rejects a list with duplicates: they would be the same run, or the same question, again.
func twice[T comparable](flag string, list []T) error {
	for i, x := range list {
		if slices.Contains(list[:i], x) {
			return fmt.Errorf("%s: %v is there twice; name each once", flag, x)
		}
	}
	return nil
}

// continues describes how s differs from the experiment in a folder, or "". Lists of the grid may grow, because
// finished runs do not change; everything else must be the same.
func (s *Spec) continues(old *Spec) string {
	for _, c := range []struct {
		flag string
		ok   bool
	}{
		{"--size", grows(old.Sizes, s.Sizes)}, {"--arch", grows(old.Archs, s.Archs)},
		{"--variant", grows(old.Variants, s.Variants)},
		{"--lr", grows(old.LRs, s.LRs) && (len(old.LRs) > 0) == (len(s.LRs) > 0)}, {"--seeds",
			grows(old.Seeds, s.Seeds)},
		{"--size (the first one decides the tokenizer)", old.Sizes[0] == s.Sizes[0]},
	} {
		if !c.ok {
			return c.flag
		}
	}
	a, b := *old, *s
	a.Sizes, a.Archs, a.Variants, a.LRs, a.Seeds = b.Sizes, b.Archs, b.Variants, b.LRs, b.Seeds
	var left, right map[string]json.RawMessage
	x, _ := json.Marshal(a) // plain values
	y, _ := json.Marshal(b)
	_ = json.Unmarshal(x, &left)
	_ = json.Unmarshal(y, &right)
	for _, key := range slices.Sorted(maps.Keys(left)) {
		if string(left[key]) != string(right[key]) {
			return fmt.Sprintf("%s (there: %s, here: %s)", key, left[key], cmp.Or(string(right[key]), "none"))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(right)) {
		if _, ok := left[key]; !ok {
			return fmt.Sprintf("%s (there: none, here: %s)", key, right[key])
		}
	}
	return ""
}

func grows[T comparable](old, now []T) bool {
	return !slices.ContainsFunc(old, func(x T) bool { return !slices.Contains(now, x) })
}

// Run is one training run of the grid.
type Run struct {
	Size   string
	Arch   string // or the name of a variant
	LR     float64
	Seed   uint64
	Recipe recipe.Recipe
}

// Name names the run and its folder.
func (r *Run) Name() string { return fmt.Sprintf("%s-%s-lr%g-s%d", r.Size, r.Arch, r.LR, r.Seed) }

// rates are the learning rates of a size.
func (s *Spec) rates(size string) ([]float64, error) {
	if len(s.LRs) > 0 {
		return s.LRs, nil
	}
	r, err := recipe.Named(size, s.Archs[0])
	return []float64{r.Optim.LR}, err
}

// tuning reports whether there is a learning rate to select.
func (s *Spec) tuning() bool { return len(s.LRs) > 1 && s.TuneSeeds > 0 }

// Grid is every run of the experiment: all learning rates with the tuning seeds, then the rest of the seeds at the
// learning rate that best returns for a size and an architecture, or at each if best is nil. Architectures alternate
// innermost, so that whatever is finished when time runs out compares them.
func (s *Spec) Grid(best func(size, arch string) (float64, bool)) ([]Run, error) {
	var out []Run
	for i, seed := range s.Seeds {
		for _, size := range s.Sizes {
			rates, err := s.rates(size)
			if err != nil {
				return nil, err
			}
			for _, lr := range rates {
				for _, arch := range s.sides() {
					if s.tuning() && i >= s.TuneSeeds && best != nil {
						if x, ok := best(size, arch); !ok || x != lr {
							continue
						}
					}
					r := Run{Size: size, Arch: arch, LR: lr, Seed: seed}
					if r.Recipe, err = s.recipe(&r); err != nil {
						return nil, err
					}
					out = append(out, r)
				}
			}
		}
	}
	return out, nil
}

// TuningRuns is the number of leading runs of the grid that select the learning rate.
func (s *Spec) TuningRuns() int {
	if !s.tuning() {
		return 0
	}
	return s.TuneSeeds * len(s.Sizes) * len(s.LRs) * len(s.sides())
}

// base is the recipe that determines data and tokenizer.
func (s *Spec) base() (recipe.Recipe, error) {
	r, err := recipe.Named(s.Sizes[0], s.Archs[0])
	if err != nil {
		return r, err
	}
	if s.Tokenizer != "" {
		r.Tokenizer.Path, r.Model.Vocab = s.Tokenizer, s.Vocab
	}
	return r, nil
}

// Resolve reads the tokenizer, if one is named, and sets the models' vocabulary by it.
func (s *Spec) Resolve() error {
	s.Format = specFormat
	if s.Tokenizer == "" {
		return nil
	}
	tok, err := openTokenizer(s.Tokenizer)
	if err != nil {
		return fmt.Errorf("--tokenizer: %w", err)
	}
	s.Vocab = (tok.Vocab() + 63) / 64 * 64
	return nil
}

// recipe is the complete recipe of a run.
func (s *Spec) recipe(run *Run) (r recipe.Recipe, err error) {
	arch, own := s.made(run.Arch)
	if r, err = recipe.Named(run.Size, arch); err != nil {
		return r, err
	}
	base, err := s.base()
	if err != nil {
		return r, err
	}
	r.Tokenizer, r.Data, r.Model.Vocab = base.Tokenizer, base.Data, base.Model.Vocab
	if len(s.Data) > 0 {
		r.Data.Sources = nil
		for _, d := range s.Data {
			src, err := recipe.ParseSource(d)
			if err != nil {
				return r, fmt.Errorf("--data: %w", err)
			}
			r.Data.Sources = append(r.Data.Sources, src)
		}
	}
	t := &r.Train
	if s.Steps > 0 {
		t.Steps = s.Steps
		r.Optim.Warmup = min(r.Optim.Warmup, max(s.Steps/20, 1))
	}
	t.Seed, r.Optim.LR = run.Seed, run.LR
	t.EvalEvery, t.SaveEvery = max(t.Steps/40, min(t.Steps/4, 50), 1), saveEvery(t.Steps)
	for i, set := range slices.Concat(s.Set, own) {
		if err := r.SetPair(set); err != nil && i < len(s.Set) {
			return r, fmt.Errorf("--set: %w", err)
		} else if err != nil {
			return r, fmt.Errorf("--variant: %s: %w", run.Arch, err)
		}
	}
	if generated(r.Data.Sources) && r.Data.MaxTokens == 0 && !r.Data.Mixed() {
		// One pass over as much data as the steps need, plus the held-out part; at least so much that something is held
		// out.
		r.Data.MaxTokens = max(int64(float64(t.Steps*t.Batch*t.SeqLen)*1.05/(1-r.Data.HeldOut)), 1<<18)
	}
	if r.Data.HeldOut <= 0 {
		return r, fmt.Errorf("data.held_out: is %g; runs are compared on held-out text", r.Data.HeldOut)
	}
	r.Name = run.Name()
	return r.Complete()
}

// generated reports whether every source generates its text.
func generated(list []recipe.Source) bool {
	return !slices.ContainsFunc(list, func(s recipe.Source) bool { return !strings.HasPrefix(s.Path, "synthetic") })
}
