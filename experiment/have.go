package experiment

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"antiphase/data"
	"antiphase/eval"
	"antiphase/eval/task"
	"antiphase/internal/vfs"
)

// errOtherRows is ErrOther of rows.
var errOtherRows error = otherRows{}

type otherRows struct{}

func (otherRows) Error() string { return "not rows of this experiment" }

func (otherRows) Is(target error) bool { return target == ErrOther }

// elsewhere are the rows of runs finished on other machines, by the name of the run. All are checked; runs that are not
// in the grid, or are done here, are ignored, and one that several files have must have the same values in all. set is
// the hash of the token set here, "" before there is one.
func (s *Spec) elsewhere(paths []string, runs []Run, set string, done func(*Run) bool) (map[string][]Row, error) {
	out, from := map[string][]Row{}, map[string]string{}
	for _, path := range paths {
		rows, err := ReadRowFiles(path)
		if err != nil {
			return nil, fmt.Errorf("--have: %w", err)
		}
		if err := s.named(path, rows); err != nil {
			return nil, fmt.Errorf("--have: %w", err)
		}
		byRun := map[string][]Row{}
		for _, r := range rows {
			if r.Experiment == s.Name {
				byRun[r.Run] = append(byRun[r.Run], r)
			}
		}
		for i := range runs {
			r := &runs[i]
			rows := byRun[r.Name()]
			if len(rows) == 0 || done(r) {
				continue
			}
			if err := s.fits(r, rows, set); err != nil {
				return nil, fmt.Errorf("--have: %s: %w", path, err)
			}
			if first := out[r.Name()]; first == nil {
				out[r.Name()], from[r.Name()] = rows, path
			} else if what := unequalRows(first, rows); what != "" {
				return nil, fmt.Errorf("--have: %w", &data.CorruptError{File: path, Fault: fmt.Sprintf(
					"has other values of %s for %s than %s: give the file that is right", what, r.Name(),
					from[r.Name()])})
			}
		}
	}
	return out, nil
}

// unequalRows names a measure of a run in which two lists of its rows differ, "" if there is none. Times differ between
// machines.
func unequalRows(a, b []Row) string {
	type values struct {
		question     string
		value        float64
		items, curve string
	}
	of := func(rows []Row) map[string][]values {
		out := map[string][]values{}
		for _, r := range rows {
			if timed(&r) || r.Measure == Finished { // Finished counts rows, those of times too
				continue
			}
			v := values{value: r.Value, items: fmt.Sprint(r.Items), curve: fmt.Sprint(r.Curve)}
			if r.Task != nil {
				v.question = r.Task.Question
			}
			out[r.Measure] = append(out[r.Measure], v)
		}
		return out
	}
	x, y := of(a), of(b)
	for _, measure := range slices.Sorted(maps.Keys(x)) {
		if !slices.Equal(x[measure], y[measure]) {
			return measure
		}
	}
	for _, measure := range slices.Sorted(maps.Keys(y)) {
		if x[measure] == nil {
			return measure
		}
	}
	return ""
}

// timed reports whether a row's value depends on the machine's speed.
func timed(r *Row) bool {
	return r.Timing || r.Task != nil && slices.ContainsFunc(task.All(), func(t eval.Task) bool {
		return t.Timed && t.Name == r.Task.Kind
	})
}

// Finished are the runs that need not be repeated: those in the experiment's folder and those in files of rows. It
// rejects a folder or a file of another experiment, and changes nothing.
func (s *Spec) Finished(opt Options) (out []Run, err error) {
	l := &lab{Options: opt, spec: s}
	if err := l.mayBegin(); err != nil {
		return nil, err
	}
	runs, err := s.Grid(nil)
	if err != nil {
		return nil, err
	}
	have, err := s.elsewhere(opt.Have, runs, "", l.done) // mayBegin has checked them
	for i := range runs {
		if r := &runs[i]; l.done(r) || have[r.Name()] != nil {
			out = append(out, *r)
		}
	}
	return out, err
}

// named rejects a file without any row of the experiment.
func (s *Spec) named(path string, rows []Row) error {
	var others []string
	for _, r := range rows {
		if r.Experiment == s.Name {
			return nil
		}
		if !slices.Contains(others, r.Experiment) {
			others = append(others, r.Experiment)
		}
	}
	if len(others) == 0 {
		return &data.CorruptError{File: path, Fault: "has no rows"}
	}
	return fmt.Errorf("%s has rows of %s and none of %q, the name of this experiment; --name %s would take them: %w",
		path, strings.Join(others, ", "), s.Name, ShellWord(others[0]), errOtherRows)
}

// take adds runs finished on other machines to this folder: they are not repeated, and count in the choice of learning
// rates.
func (l *lab) take(byRun map[string][]Row, runs []Run) error {
	for i := range runs {
		r := &runs[i]
		if byRun[r.Name()] == nil {
			continue
		}
		b, err := Encode(byRun[r.Name()])
		if err != nil {
			return err
		}
		if err := os.MkdirAll(l.dir(r), 0o755); err != nil {
			return err
		}
		if err := vfs.WriteFile(vfs.OS{}, filepath.Join(l.dir(r), rowsName), b); err != nil {
			return err
		}
		l.Say("%s: finished elsewhere", r.Name())
	}
	return nil
}

// notOf says why rows are not those of the finished run r and of nothing else, "" if they are.
func (s *Spec) notOf(r *Run, rows []Row) string {
	if !whole(rows) {
		return fmt.Sprintf("the %s are not those of one finished run: the file was cut, or has it twice",
			plural(len(rows), "row"))
	}
	for i := range rows {
		x := &rows[i]
		if x.Experiment != s.Name || x.Run != r.Name() {
			return fmt.Sprintf("has rows of %s of experiment %s, want only those of %s of %s", x.Run, x.Experiment,
				r.Name(), s.Name)
		}
		if x.Size != r.Size || x.Arch != r.Arch || x.LR != r.LR || x.Seed != r.Seed {
			return fmt.Sprintf("%s of %s is of size %s, %s, learning rate %g and seed %d, which its name contradicts",
				x.Measure, x.Run, x.Size, x.Arch, x.LR, x.Seed)
		}
	}
	return ""
}

// fits returns why rows cannot be those of a run of the experiment, as far as rows tell.
func (s *Spec) fits(r *Run, rows []Row, set string) error {
	if fault := s.notOf(r, rows); fault != "" {
		return &data.CorruptError{File: r.Name(), Fault: fault}
	}
	tuned, _ := s.tuned() // checked by Check
	x, n := rows[0], r.parameters()
	switch {
	case x.Steps != r.Recipe.Train.Steps || x.Tokens != r.tokens():
		return fmt.Errorf("%s had %d steps and %d tokens there, %d and %d here: %w", r.Name(), x.Steps, x.Tokens,
			r.Recipe.Train.Steps, r.tokens(), errOtherRows)
	case x.Data != "" && set != "" && x.Data != set:
		return fmt.Errorf("%s was trained on other text or tokens there (set %s, here %s): --data and --tokenizer "+
			"must mean the same: %w", r.Name(), x.Data, set, errOtherRows)
	case x.Parameters != n:
		return fmt.Errorf("%s had %d parameters there, %d here: %w", r.Name(), x.Parameters, n, errOtherRows)
	case x.Tuned != tuned:
		return fmt.Errorf("the learning rate of %s was chosen by %s there: --tune-by says otherwise: %w", r.Name(),
			x.tunedBy(), errOtherRows)
	case rows[len(rows)-1].Measure == Failed:
		return s.settled(r, x)
	}
	for _, a := range s.Tasks {
		if name := a.measure(); !slices.ContainsFunc(rows, func(x Row) bool { return x.Measure == name }) {
			return fmt.Errorf("%s was not asked %q there: %w", r.Name(), string(a), errOtherRows)
		}
	}
	return s.settled(r, x)
}

// settled refuses a row of a run that had other settings. A row of an older version tells them by its command.
func (s *Spec) settled(r *Run, x Row) error {
	if x.Settings == r.settings(s) {
		return nil
	}
	if how := otherwise(s, r, x.Command); how != "" {
		return fmt.Errorf("%s had other settings there: its command has %s: %w", r.Name(), how, errOtherRows)
	}
	if x.Settings == "" {
		return nil
	}
	return fmt.Errorf("%s had other settings there: --data, --steps, --set, --variant, --task, --probe, --probe-every "+
		"and --eval-seed must be the same: %w", r.Name(), errOtherRows)
}

// apart are the keys of a recipe that do not decide a run's numbers, and those that rows have otherwise: the seed, and
// paths, for which the token set stands.
var apart = []string{"name", "train.seed", "data.sources", "tokenizer.path", "train.micro_batch", "train.recompute",
	"train.log_every", "train.save_every", "train.keep_last", "train.strict_save"}

// settings identifies what decides the numbers of a run besides its text and its seed: its recipe and its questions.
// Keys without a value do not count, so that rows stay comparable when recipes get a key.
func (r *Run) settings(s *Spec) string {
	h := sha256.New()
	for _, f := range r.Recipe.Fields() {
		if !slices.Contains(apart, f.Path) && !slices.Contains([]string{"", "0", "false"}, f.Value) {
			fmt.Fprintf(h, "%s=%s\n", f.Path, f.Value)
		}
	}
	for _, src := range r.Recipe.Data.Sources {
		fmt.Fprintf(h, "%g %g\n", src.Weight, src.Epochs)
	}
	fmt.Fprintf(h, "%q %q %d %d", wordsOf(s.Tasks), wordsOf(s.Probes), s.Every, s.EvalSeed)
	return hex.EncodeToString(h.Sum(nil)[:8])
}
