// Package train runs a recipe: it prepares tokenizer and data, then runs the loop, in a run folder that survives
// crashes.
//
//	run/recipe.json       the resolved recipe; itself a recipe
//	run/tokenizer.json    the tokenizer, if one was trained; every checkpoint has its own copy
//	run/data/             token shards (or elsewhere, see Options.Data)
//	run/metrics.jsonl     one row per step
//	run/checkpoints/      see the checkpoint package
//	run/crash-step-N/     data to reproduce a step whose loss was not finite
//
// The same call continues where the last one stopped, bit for bit. Nothing here depends on a terminal or a kind of
// device: progress is reported to the functions in Options.
package train

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"antiphase/checkpoint"
	"antiphase/device"
	"antiphase/internal/flock"
	"antiphase/internal/vfs"
	"antiphase/metrics"
	"antiphase/model"
	"antiphase/recipe"
	"antiphase/tokenizer"
)

// ErrInterrupted means that the context ended, all work is saved, and the same call will continue from there.
var ErrInterrupted = errors.New("interrupted; run the same command again to continue")

// ErrPreparing accompanies ErrInterrupted before the first step. Of several ranks only this one knows about it.
var ErrPreparing = errors.New("while preparing")

// ErrChanged means that a run folder holds a run of another recipe.
var ErrChanged = errors.New("the run folder holds a different run")

// Options is everything about a run that is not its recipe.
type Options struct {
	Dir       string // run folder, created if missing
	Data      string // token set; default Dir/data
	Built     bool   // Data is a finished set with its tokenizer: it is used as it is, and the sources are not read
	Tokenizer string // tokenizer file to use or make; default Dir/tokenizer.json
	Device    device.Device
	Force     bool // continue although the recipe changed in ways that alter results
	Inexact   bool // continue on another device, precision or kernels, not bit for bit

	Ranks Ranks // processes that train this run together; nil for a single one
	Shard bool  // ranks hold parts of the optimiser's moments instead of all of them (ZeRO-1)

	Tensor int // consecutive ranks that hold a model together, each with its heads, columns and classes; 0 and 1: none

	Begin *Begin // the model to start from, used if there is no checkpoint; nil draws the weights

	Save <-chan struct{} // requests a checkpoint after the current step, without stopping; may be nil

	// SaveAfter saves between the recipe's own checkpoints when the last one is this old, and old enough that saving
	// takes 2 % of the time; 0: never. A single process only.
	SaveAfter time.Duration

	Judged bool // held-out text is needed: data without any is refused before the first step

	Probe      Probe // inspects the model between steps; may be nil
	ProbeEvery int   // steps between probes; the last step is probed too

	// Finish gets the trained model after the last step, also if an earlier call took that step; may be nil. The model
	// is the one that Open would give, to the bit, and is freed afterwards. The last checkpoint is written beside
	// Finish where the device leaves the host free, and waited for after it. If there is no memory for the model beside
	// the one in training, Run saves the last step and returns a *tensor.NoMemory. A single process only.
	Finish func(ctx context.Context, m *model.Model, tok *tokenizer.Tokenizer) error

	// Discard says that nobody keeps the trained model. Then the last step is saved only if Finish fails or is
	// interrupted, or if losing it would cost more than SaveAfter allows.
	Discard bool

	Say      func(format string, args ...any)      // one-off messages; may be nil
	Progress func(stage string, done, total int64) // preparation; total is 0 if unknown; may be nil
	Report   func(Row)                             // every step's row; may be nil

	fs     vfs.FS // of the run folder; nil is the machine's; tests use others
	beside bool   // write checkpoints concurrently with training on any device, for tests
}

// Probe inspects a model in training after a step. It may compute with the model but must not change it. A resumed run
// repeats the steps since its checkpoint, and their probes, with the same model.
type Probe func(ctx context.Context, step int, m *model.Model, tok *tokenizer.Tokenizer) error

// Begin is a model to start from.
type Begin struct {
	Weights func(name string) ([]float32, error)
	Parent  func() (*Parent, error) // recorded in the state
}

// Parent identifies the model a run started from.
type Parent struct {
	Path   string `json:"path"`
	Step   int    `json:"step,omitempty"` // of a run
	SHA256 string `json:"sha256"`         // of its weight files, concatenated in order of names
}

// Result is the state of a run when Run returned.
type Result struct {
	Steps   int
	Loss    float64 // last step's
	Valid   float64 // last held-out loss; 0 if there was none
	Resumed int     // step from which this call continued

	Warnings int // steps of the run with a warning, see metrics.Warning
}

// Run trains r to its last step, continuing what Dir already holds.
func Run(ctx context.Context, r recipe.Recipe, opt Options) (Result, error) {
	if opt.Say == nil {
		opt.Say = func(string, ...any) {}
	}
	opt.fs = vfs.Or(opt.fs)
	if opt.follows() { // rank 0 makes the folder, unless it refuses to begin
		opt.Say, opt.Progress, opt.Report = func(string, ...any) {}, nil, nil
	} else {
		if err := mayBegin(r, &opt); err != nil {
			return Result{}, err
		}
		if err := vfs.MkdirAll(opt.fs, opt.Dir); err != nil {
			return Result{}, fmt.Errorf("train: %w", err)
		}
		if err := foreign(r, &opt); err != nil {
			return Result{}, err
		}
		lock, err := flock.Acquire(opt.Dir)
		if err != nil {
			return Result{}, fmt.Errorf("train: %w", err)
		}
		defer lock.Release()
		sweep(opt.fs, opt.Dir)
	}
	run, err := newRun(ctx, r, &opt)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%w: %w", ErrPreparing, ErrInterrupted)
	}
	if err != nil {
		return Result{}, err
	}
	defer run.close()
	res, err := run.loop(ctx)
	if err == nil || errors.Is(err, ErrInterrupted) {
		err = errors.Join(err, run.agree("end", nil)) // rank 0 writes the last checkpoint
	}
	return res, err
}

// newRun prepares a run for its next step.
func newRun(ctx context.Context, r recipe.Recipe, opt *Options) (*run, error) {
	opt.fs = vfs.Or(opt.fs)
	t := &run{opt: opt, recipe: r, clock: clock{now: time.Now}}
	t.saver.run = t
	if err := t.ready(ctx); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// ready looks for a checkpoint first, so that a run of another recipe is refused before anything of it is touched. Then
// it prepares tokenizer and data, builds the model, the optimiser and the loader, and restores.
func (t *run) ready(ctx context.Context) (err error) {
	if err := t.meet(); err != nil {
		return err
	}
	if t.opt.follows() {
		if err := waitPrepared(ctx, t.opt.Ranks); err != nil {
			return err
		}
	}
	opt := checkpoint.Options{FS: t.opt.fs, KeepLast: t.recipe.Train.KeepLast, ReadOnly: t.opt.follows()}
	if t.store, err = checkpoint.Open(t.opt.Dir, opt); err != nil {
		return err
	}
	c, err := resumer{t}.latest()
	if err != nil {
		return err
	}
	if !t.opt.follows() {
		if err := t.room(c); err != nil {
			return err
		}
	}
	if err := t.memory(); err != nil {
		return err
	}
	t.clock.peak = MachinePeak(t.opt.Device) * float64(t.opt.ranks())
	if t.opt.follows() {
		t.tok, t.set, err = prepared(ctx, t.recipe, t.opt, c)
	} else {
		t.tok, t.set, err = prepare(ctx, t.recipe, t.opt, c)
	}
	if err != nil {
		return err
	}
	if err := t.build(); err != nil {
		return err
	}
	if err := (resumer{t}).resume(c); err != nil {
		return err
	}
	if err := t.open(); err != nil {
		return err
	}
	return t.start()
}

// open opens the files for rows; only rank 0 writes them.
func (t *run) open() error {
	if t.opt.follows() {
		t.metrics = nowhere{}
		return nil
	}
	if err := vfs.WriteFile(t.opt.fs, filepath.Join(t.opt.Dir, "recipe.json"), t.recipe.JSON()); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	w, err := metrics.Open(t.opt.fs, filepath.Join(t.opt.Dir, metrics.FileName), t.state.Step, t.watch.seen,
		func(s string) { t.opt.Say("warning: %s", s) })
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	t.metrics = w
	return nil
}
