package train

import (
	"context"
	"fmt"
	"math"

	"antiphase/checkpoint"
	"antiphase/data"
	"antiphase/internal/vfs"
	"antiphase/layer"
	"antiphase/metrics"
	"antiphase/model"
	"antiphase/optim"
	"antiphase/recipe"
	"antiphase/tokenizer"
)

// run is a training run in progress.
type run struct {
	opt    *Options
	recipe recipe.Recipe
	tok    *tokenizer.Tokenizer
	set    *data.Set
	store  *checkpoint.Store

	model   *model.Model
	optim   *optim.AdamW
	loader  *data.Prefetcher
	valid   *data.Split // nil without a held-out split
	state   State
	fresh   bool // there was no checkpoint
	resumed int

	batch   model.Batch  // a whole step's rows
	starts  []int32      // document starts of its rows; the batch has them if documents are isolated
	data    optim.Ranks  // ranks with the same part of the model; nil for a single process
	split   *layer.Split // this rank's part of the model; nil if whole
	saver   saver
	stepper *optim.Stepper
	metrics rowWriter
	clock   clock
	watch   watch
	row     Row
	norms   []float64
	groups  *model.GradientNorms // nil if gradients are sharded over ranks

	unrecorded bool // already reported that steps cannot be recorded
	unwritten  bool // already reported that rows cannot be written
}

// build allocates everything that has memory.
func (t *run) build() error {
	r, dev := t.recipe, t.opt.Device
	micro, err := t.microBatch()
	if err != nil {
		return err
	}
	split, err := trainSplit(t.set, r)
	if err != nil {
		return err
	}
	rows := loader(split, r, r.Train.Batch, r.Train.Seed)
	if err := checkRows(split, rows, r); err != nil {
		return err
	}
	if t.set.Has(data.Valid) || t.opt.Judged {
		if t.valid, err = t.set.Split(data.Valid); err != nil {
			return err
		}
	} else if r.Data.HeldOut > 0 {
		t.opt.Say("warning: there is too little data to hold any out; no held-out loss will be measured")
	}
	memory := layer.Memory{Train: true, Master: r.Optim.RoundBF16, DecayEmbeddings: r.Optim.DecayEmb, Split: t.split}
	m, err := model.New(dev, r.Model, optim.Memory(memory, t.data, t.opt.Shard))
	if err != nil {
		return err
	}
	m.Recompute(r.Train.Recompute)
	n := r.Train.Batch * r.Train.SeqLen
	t.model, t.optim = m, t.newOptim(m)
	t.loader = data.Prefetch(rows)
	t.stepper = optim.NewStepper(m, t.optim, micro)
	if t.opt.Ranks == nil {
		t.groups = m.NewGradientNorms(m.GradientGroups(-1))
	} else {
		t.opt.Say("moments on this rank: %.2f MiB", float64(t.optim.MomentBytes())/(1<<20))
	}
	t.batch = model.Batch{B: r.Train.Batch, T: r.Train.SeqLen, IDs: make([]int32, n), Targets: make([]int32, n)}
	if t.starts = make([]int32, n); r.Data.Isolate {
		t.batch.Starts = t.starts
	}
	t.row.Lambda, t.row.Valid = make([]float64, 0, r.Model.Layers), math.NaN()
	return nil
}

// close releases what the run has allocated so far.
func (t *run) close() {
	if t.saver.done != nil {
		<-t.saver.done // whatever ended the run, this save may still be complete
	}
	if t.metrics != nil {
		t.metrics.Close()
	}
	if t.stepper != nil {
		t.stepper.Free()
	}
	if t.optim != nil {
		t.optim.Free()
	}
	if t.groups != nil {
		t.groups.Free()
	}
	if t.model != nil {
		t.model.Free()
	}
	if t.loader != nil {
		t.loader.Close() // before the files that it reads
	}
	if t.set != nil {
		_ = t.set.Close() // opened for reading only
	}
}

// loop takes steps until the last one, the end of the context, or an error.
func (t *run) loop(ctx context.Context) (Result, error) {
	tr := t.recipe.Train
	t.clock.start(t.recipe)
	t.saver.last = t.clock.mark
	if tr.Steps == 0 && t.fresh {
		return t.result(), finisher{t}.end(ctx, true)
	}
	for t.state.Step < tr.Steps {
		t.vote(ctx)
		if err := t.step(); err != nil {
			return t.result(), err
		}
		if err := t.saver.finish(false); err != nil {
			return t.result(), err
		}
		if tr.EvalEvery > 0 && t.state.Step%tr.EvalEvery == 0 || t.state.Step == tr.Steps {
			if err := t.evaluate(); err != nil {
				return t.result(), err
			}
		}
		if err := t.report(); err != nil {
			return t.result(), err
		}
		if err := t.probe(ctx); err != nil { // after the row, which reads the λ of the step's own pass
			return t.result(), err
		}
		if t.state.Step == tr.Steps {
			return t.result(), finisher{t}.end(ctx, true)
		}
		stop := t.stopping(ctx)
		if stop || tr.SaveEvery > 0 && t.state.Step%tr.SaveEvery == 0 || t.saving() ||
			t.opt.Ranks == nil && t.saver.due(t.clock.now(), t.opt.SaveAfter) {
			if err := t.saver.save(stop); err != nil {
				return t.result(), err
			}
		}
		if stop {
			return t.result(), fmt.Errorf("step %d of %d: %w", t.state.Step, tr.Steps, ErrInterrupted)
		}
	}
	return t.result(), finisher{t}.end(ctx, false)
}

// asked reports whether a checkpoint was requested.
func (t *run) asked() bool {
	select {
	case <-t.opt.Save:
		t.opt.Say("saving step %d, as asked", t.state.Step)
		return true
	default:
		return false
	}
}

// step is one optimiser step on the loader's next batch. After the first steps it allocates nothing.
func (t *run) step() error {
	if err := t.loader.Next(t.batch.IDs, t.batch.Targets, t.starts); err != nil {
		return fmt.Errorf("train: step %d: %w", t.state.Step+1, err)
	}
	lr := t.recipe.Optim.Rate(t.state.Step, t.recipe.Train.Steps)
	loss, norm, err := t.stepper.Step(&t.batch, t.state.Step+1, lr)
	if err != nil {
		return fmt.Errorf("train: step %d: %w", t.state.Step+1, err)
	}
	if !finite(loss) || !finite(norm) {
		return t.crash(loss, norm)
	}
	t.state.advance(loss, len(t.batch.IDs))
	t.row.Loss, t.row.GradNorm, t.row.LR = loss, norm, lr
	t.measureGroups()
	if _, why := t.stepper.Recorded(); why != nil && !t.unrecorded {
		t.unrecorded = true
		t.opt.Say("warning: steps cannot be recorded and are launched op by op, which is slower: %v", why)
	}
	return nil
}

// measureGroups adds gradient norms by kind of parameter to the rows that are shown.
func (t *run) measureGroups() {
	t.row.Groups = t.row.Groups[:0]
	every := t.recipe.Train.LogEvery
	if t.groups == nil || every == 0 || t.state.Step%every != 0 {
		return
	}
	t.norms = t.groups.Read(t.norms[:0])
	for i, x := range t.norms {
		t.row.Groups = append(t.row.Groups, metrics.Group{Name: t.groups.Groups[i].Name, Norm: x})
	}
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

func (t *run) result() Result {
	return Result{Steps: t.state.Step, Loss: t.state.Loss, Valid: t.state.Valid, Resumed: t.resumed,
		Warnings: t.watch.steps}
}

// report completes the step's row, writes it and passes it on.
func (t *run) report() error {
	t.clock.fill(&t.row, t.state, t.recipe)
	t.row.Epoch, t.row.DataPos = t.loader.Epoch(), t.state.Tokens
	t.row.Epochs = t.loader.Epochs(t.row.Epochs[:0])
	t.row.LossEMA = t.state.EMA
	t.row.MemGB = float64(t.model.ActivationBytes()) / (1 << 30)
	t.row.Lambda, t.row.LambdaMin, t.row.LambdaMax = t.model.LambdaRange(t.row.Lambda[:0])
	t.watch.judge(&t.row, t.opt.Say)
	err := t.metrics.Write(&t.row)
	full := vfs.IsNoSpace(err)
	if full && !t.unwritten {
		t.opt.Say("warning: rows from step %d are not written until there is room: %v", t.state.Step, err)
	} else if err != nil && !full {
		return err
	}
	t.unwritten = full
	if t.opt.Report != nil {
		t.opt.Report(t.row)
	}
	t.row.Valid = math.NaN()
	return nil
}

// evaluate measures the held-out loss, always on the same rows.
func (t *run) evaluate() error {
	if t.valid == nil || t.recipe.Train.EvalBatches == 0 {
		return nil
	}
	t.clock.lap(&t.clock.step)
	defer t.clock.lap(&t.clock.eval)
	loss, err := t.heldOut()
	if err != nil {
		return err
	}
	if !finite(loss) {
		return fmt.Errorf(
			"train: held-out loss after step %d is %v: %w; a lower learning rate (optim.lr) or tighter clipping "+
				"(optim.clip) often helps", t.state.Step, loss, ErrNotFinite)
	}
	t.state.Valid, t.row.Valid = loss, loss
	return nil
}

// probe passes the model to Options.Probe when one is due; its time counts in the next row. It is not cut short when
// the context ends: the step's checkpoint is written next, and a resumed run would not repeat the probe.
func (t *run) probe(ctx context.Context) error {
	every, step := t.opt.ProbeEvery, t.state.Step
	if t.opt.Probe == nil || step != t.recipe.Train.Steps && (every == 0 || step%every != 0) {
		return nil
	}
	t.clock.lap(&t.clock.step)
	defer t.clock.lap(&t.clock.eval)
	if err := t.opt.Probe(context.WithoutCancel(ctx), step, t.model, t.tok); err != nil {
		return fmt.Errorf("train: probe of step %d: %w", step, err)
	}
	return nil
}
