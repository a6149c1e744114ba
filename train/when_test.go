package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"antiphase/metrics"
	"antiphase/model"
	"antiphase/recipe"
	"antiphase/tokenizer"
)

// whenCase has the steps of a run, how often it does each thing, a step at which a save is asked for, and one at which
// it is stopped.
type whenCase struct{ steps, eval, batches, save, log, probe, asked, stop int }

// TestWhen: which steps evaluate, save, probe and measure gradients by kind, for several settings of each, and what
// every row says of its step: rate, tokens, running mean of the loss.
func TestWhen(t *testing.T) {
	for _, x := range []whenCase{
		{5, 2, 2, 3, 2, 3, 0, 0}, {4, 3, 0, 2, 9, 4, 0, 0}, {5, 0, 2, 0, 2, 0, 3, 0}, {5, 4, 2, 4, 2, 4, 0, 3},
	} {
		r := nano(t, "diff", fmt.Sprint("train.steps=", x.steps), fmt.Sprint("train.eval_every=", x.eval),
			fmt.Sprint("train.eval_batches=", x.batches),
			fmt.Sprint("train.save_every=", x.save), fmt.Sprint("train.log_every=", x.log), "train.keep_last=99",
			"train.micro_batch=1", "data.held_out=0.3", "optim.warmup=3")
		opt := options(t, t.TempDir())
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var saved, probed []int
		opt.ProbeEvery = x.probe
		opt.Probe = func(_ context.Context, step int, _ *model.Model, _ *tokenizer.Tokenizer) error {
			probed = append(probed, step)
			return nil
		}
		opt.fs = committing(&saved)
		ask := make(chan struct{}, 1)
		opt.Save = ask
		var rows []Row
		opt.Report = func(row Row) {
			row.Groups = slices.Clone(row.Groups)
			if rows = append(rows, row); row.Step == x.asked {
				ask <- struct{}{}
			}
			if row.Step == x.stop {
				cancel()
			}
		}
		res, err := Run(ctx, r, opt)
		last := x.steps
		if x.stop > 0 {
			last = x.stop
			if !errors.Is(err, ErrInterrupted) {
				t.Fatalf("%+v: %v", x, err)
			}
		} else if err != nil {
			t.Fatal(err)
		}
		if res.Steps != last || len(rows) != last {
			t.Errorf("%+v: %d steps, %d rows", x, res.Steps, len(rows))
		}
		wantSaved, wantProbed := x.check(t, r, rows, last)
		if !slices.Equal(saved, wantSaved) || !slices.Equal(probed, wantProbed) {
			t.Errorf("%+v: saved %v, probed %v; want %v, %v", x, saved, probed, wantSaved, wantProbed)
		}
		written, err := metrics.Read(filepath.Join(opt.Dir, metrics.FileName), func(s string) { t.Error(s) })
		if err != nil || len(written) != last {
			t.Errorf("%+v: %d rows are written, %v", x, len(written), err)
		}
	}
}

// check compares what the rows of the steps up to last say with their definition; it returns the steps that save and
// probe.
func (x whenCase) check(t *testing.T, r recipe.Recipe, rows []Row, last int) (saved, probed []int) {
	t.Helper()
	due := func(every, step int) bool { return every > 0 && step%every == 0 }
	ema := rows[0].Loss
	for i, row := range rows {
		step := i + 1
		if due(x.save, step) || step == last || step == x.asked {
			saved = append(saved, step)
		}
		if due(x.probe, step) || step == x.steps {
			probed = append(probed, step)
		}
		if want := x.batches > 0 && (due(x.eval, step) || step == x.steps); math.IsNaN(row.Valid) == want {
			t.Errorf("%+v: step %d has the held-out loss %g", x, step, row.Valid)
		}
		if (len(row.Groups) > 0) != due(x.log, step) {
			t.Errorf("%+v: step %d has %d norms by kind", x, step, len(row.Groups))
		}
		ema = 0.98*ema + 0.02*row.Loss
		if row.Step != step || row.LR != r.Optim.Rate(i, x.steps) ||
			row.Tokens != int64(step*r.Train.Batch*r.Train.SeqLen) || !(math.Abs(row.LossEMA-ema) <= 1e-12) {
			t.Errorf("%+v: row %+v", x, row)
		}
	}
	return saved, probed
}
