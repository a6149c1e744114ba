package experiment

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"antiphase/device"
	"antiphase/internal/fault"
	"antiphase/internal/flock"
	"antiphase/internal/vfs"
	"antiphase/train"
)

// Options is everything about an experiment that does not decide its numbers.
type Options struct {
	Dir       string
	Devices   []device.Device // as many runs are worked on at once
	Kind      string          // of the devices, for the identity of results: "cpu avx512", say
	Precision string
	Machine   string // for the rows
	Commit    string
	Command   string
	Program   string // how this program was called, for what the page proposes
	Keep      Keep
	Have      []string      // files of rows: runs that were finished elsewhere
	Inexact   bool          // continue runs on another device, precision or kernels
	SaveAfter time.Duration // age at which a run's checkpoint is renewed; 0: half a minute
	Rank      int           // this process's number among those that divide the runs among them, with the same folder
	Ranks     int           // their number; 0 and 1: there is one
	Wait      func() error  // returns when every one of them has come as far; nil for one

	Say      func(format string, args ...any)
	Progress func(Progress)
}

// Keep says which checkpoints stay when a run is finished.
type Keep string

// The choices of Keep.
const (
	KeepNone Keep = "none" // rows alone
	KeepLast Keep = "last" // the model as it ended
	KeepAll  Keep = "all"  // every checkpoint that training wrote
)

// Progress says how far the experiment has come.
type Progress struct {
	Stage       string // of the data, before any run
	Done, Total int64  // tokens of the data; Total is 0 where it is not known
	Run         string // the run that reports
	Row         *train.Row
	Task        string // that the run is being asked
	Finished    int    // runs
	Runs        int
	Share       float64 // of the work of all runs that is done, in time
	Left        float64 // seconds to the end of all runs; NaN as long as nothing has been measured
}

// lab is an experiment at work.
type lab struct {
	Options
	spec *Spec
	set  string
	hash string // of the token set

	watch stopwatch

	pages pace // of publishing between runs

	mu       sync.Mutex
	survey   survey
	finished int
	runs     []Run
}

// Work runs the experiment to its end, or as far as the context allows: then the error is train.ErrInterrupted, and the
// same call continues later. It returns the rows of all finished runs.
func Work(ctx context.Context, spec *Spec, opt Options) ([]Row, error) {
	if err := spec.Check(); err != nil {
		return nil, err
	}
	l := &lab{Options: opt, spec: spec, set: setOf(opt.Dir)}
	l.survey = survey{tuning: len(l.mine(make([]Run, spec.TuningRuns()))), workers: len(opt.Devices),
		warned: map[side]bool{}}
	if err := l.mayBegin(); err != nil {
		return nil, err
	}
	made := missing(opt.Dir)
	if l.leads() { // before anything is made, too
		if err := spec.Fed(ctx, opt.Dir); err != nil {
			return nil, interrupted(ctx, err)
		}
		if err := os.MkdirAll(opt.Dir, 0o755); err != nil {
			return nil, fmt.Errorf("--dir: %w", err)
		}
	}
	l.watch.start(len(opt.Devices))
	if l.leads() {
		lock, err := flock.Acquire(opt.Dir)
		if err != nil {
			return nil, err
		}
		defer lock.Release()
		if err := undone(ctx, l); err != nil {
			_ = lock.Release() // its file is deleted too
			unmake(made)
			return nil, interrupted(ctx, err)
		}
	}
	err := l.wait()
	if err == nil {
		l.hash, err = setHash(l.set)
	}
	if err != nil {
		return nil, interrupted(ctx, err)
	}
	worked := l.phases(ctx)
	if !l.leads() && worked == nil {
		return l.rows()
	} else if !l.leads() {
		return nil, interrupted(ctx, worked)
	}
	rows, err := finish(l, worked)
	if err != nil {
		return nil, interrupted(ctx, err)
	}
	if spent := l.watch.read(); spent.Runs > 0 {
		l.Say("%s", spent.String())
	}
	return rows, nil
}

// leads reports whether this process makes the data and writes the rows of all.
func (l *lab) leads() bool { return l.Rank == 0 }

func (l *lab) wait() error {
	if l.Wait == nil {
		return nil
	}
	return l.Wait()
}

// mine are the runs that this process works on.
func (l *lab) mine(runs []Run) (out []Run) {
	for i := range runs {
		if i%max(l.Ranks, 1) == l.Rank {
			out = append(out, runs[i])
		}
	}
	return out
}

// mayBegin finds what is wrong with the folder and with rows from elsewhere before anything is made, a lock included.
func (l *lab) mayBegin() error {
	runs, err := l.spec.Grid(nil)
	if err != nil || !l.leads() {
		return err
	}
	if err := admit(l.Dir, l.spec); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := readSpent(l.Dir); err != nil {
		return err
	}
	have, err := l.spec.elsewhere(l.Have, runs, "", l.done)
	if err != nil {
		return err
	}
	return onePrecision(l, have)
}

// begin checks the folder again, now under its lock, then makes the token set.
func (l *lab) begin(ctx context.Context) error {
	runs, err := l.spec.Grid(nil)
	if err != nil {
		return err
	}
	if err := admit(l.Dir, l.spec); err != nil {
		return err
	}
	if l.watch.before, err = readSpent(l.Dir); err != nil {
		return err
	}
	r := runs[0].Recipe
	if err := renew(l.Dir, l.spec); err != nil {
		return err
	}
	sweep(l.Dir)
	for _, s := range Unequal(runs) {
		l.Say("warning: %s", s)
	}
	opt := &train.Options{Say: l.Say, Progress: func(stage string, done, total int64) {
		l.Progress(Progress{Stage: stage, Done: done, Total: total})
	}}
	defer l.watch.prepared(time.Now())
	if err := prepare(ctx, l.Dir, r, opt); err != nil {
		return err
	}
	if err := fills(l.set, runs); err != nil {
		return err
	}
	hash, err := setHash(l.set)
	if err != nil {
		return err
	}
	have, err := l.spec.elsewhere(l.Have, runs, hash, l.done)
	if err != nil {
		return err
	}
	if err := l.rehearse(ctx, slices.DeleteFunc(slices.Clone(runs), func(r Run) bool {
		return have[r.Name()] != nil
	})); err != nil {
		return err
	}
	return l.take(have, runs)
}

// chosen is the grid at the learning rates that rows select.
func chosen(s *Spec, rows []Row, tuning bool) ([]Run, error) {
	best := Choose(rows)
	return s.Grid(func(size, arch string) (float64, bool) {
		lr, ok := best[[2]string{size, arch}]
		if !ok && tuning && s.tuning() {
			return s.LRs[0], true // the choice does not change the number of runs
		}
		return lr, ok
	})
}

// phases runs the runs that select the learning rates, then the rest at the selected rates.
func (l *lab) phases(ctx context.Context) error {
	for _, tuning := range []bool{true, false} {
		rows, err := l.rows()
		if err != nil {
			return err
		}
		runs, err := chosen(l.spec, rows, tuning)
		if err != nil {
			return err
		}
		l.mu.Lock()
		l.runs = runs // a page in progress reads it
		l.survey.lay(l.mine(runs))
		l.survey.finished(rows, l.Machine)
		l.mu.Unlock()
		if tuning {
			runs = runs[:l.spec.TuningRuns()]
		}
		if err := l.all(ctx, l.mine(runs)); err != nil {
			return err
		}
		if err := l.wait(); err != nil {
			return err
		}
	}
	return nil
}

// all processes runs, as many at once as there are devices. The first error stops the others, which save.
func (l *lab) all(ctx context.Context, runs []Run) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l.count()
	queue := make(chan *Run)
	errs := make([]error, len(l.Devices))
	var wg sync.WaitGroup
	for i, d := range l.Devices {
		wg.Go(func() {
			defer fault.Guard()()
			for r := range queue {
				if err := l.one(ctx, d, r); err != nil {
					if errs[i] = err; !isUnpublished(err) {
						errs[i] = fmt.Errorf("%s: %w", r.Name(), err)
					}
					cancel(errs[i])
					return
				}
			}
		})
	}
feed:
	for i := range runs {
		select {
		case queue <- &runs[i]:
		case <-ctx.Done():
			break feed
		}
	}
	close(queue)
	wg.Wait()
	if err := first(errs); err != nil {
		return err
	}
	return ctx.Err()
}

// first is the error that caused the others: one that is not an interruption, if there is one.
func first(errs []error) (out error) {
	for _, err := range errs {
		if err != nil && (out == nil || errors.Is(out, train.ErrInterrupted)) {
			out = err
		}
	}
	return out
}

// one trains a run, evaluates it and writes its rows, unless that has been done.
func (l *lab) one(ctx context.Context, d device.Device, r *Run) error {
	if l.done(r) {
		return l.tidy(r) // the process may have been killed before it
	}
	defer l.watch.over(time.Now())
	dir := l.dir(r)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	judged, note, err := l.train(ctx, d, r)
	if err != nil {
		return err
	}
	rec := l.record(r)
	rows, err := rec.training(note)
	if err != nil {
		return err
	}
	if last := rows[len(rows)-1]; last.Measure == Failed {
		l.Say("warning: %s diverged: %s", r.Name(), last.Note)
	} else {
		rows = append(rows, judged...)
		end := rec.row(Finished)
		end.Value, end.Note = float64(len(rows)), l.spec.unequal(r)
		rows = append(rows, end)
	}
	b, err := Encode(rows)
	if err != nil {
		return err
	}
	if err := vfs.WriteFile(vfs.OS{}, filepath.Join(dir, rowsName), b); err != nil {
		return err
	}
	if err := l.tidy(r); err != nil {
		return err
	}
	l.mu.Lock()
	l.finished++
	l.survey.by[r.Name()].end(time.Now())
	last := l.finished == len(l.runs)
	l.mu.Unlock()
	if last || !l.leads() { // the page of all runs is made at the end
		return nil
	}
	return l.pages.do(func() error { _, err := l.publish(); return err })
}

func (l *lab) dir(r *Run) string { return filepath.Join(l.Dir, "runs", r.Name()) }

// done reports whether the run's rows exist.
func (l *lab) done(r *Run) bool {
	_, err := os.Stat(filepath.Join(l.dir(r), rowsName))
	return err == nil
}

// count updates the number of finished runs.
func (l *lab) count() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.finished = 0
	for i := range l.runs {
		if l.done(&l.runs[i]) {
			l.finished++
		}
	}
}

// tokens that the run trains on.
func (r *Run) tokens() int64 {
	t := r.Recipe.Train
	return int64(t.Steps) * int64(t.Batch*t.SeqLen)
}

// tidy removes checkpoints that are not kept.
func (l *lab) tidy(r *Run) error {
	if l.Keep != KeepNone {
		return nil
	}
	return os.RemoveAll(filepath.Join(l.dir(r), "checkpoints"))
}
