package train

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/data"
	"antiphase/model"
	"antiphase/recipe"
	"antiphase/tokenizer"
)

// meanLoss is the held-out loss by the words of its contract: the mean over every token that has a target, of the first
// batches of a split in the order of seed 0, documents kept apart where the recipe says so. skipped counts tokens
// without a target.
func meanLoss(t *testing.T, m *model.Model, sp *data.Split, r recipe.Recipe) (mean float64, skipped int) {
	t.Helper()
	b, T := r.Train.MicroBatch, r.Train.SeqLen
	rows := data.NewLoader(sp, b, T, 0)
	sum, count := 0.0, 0
	for range r.Train.EvalBatches {
		ids, targets, starts := make([]int32, b*T), make([]int32, b*T), make([]int32, b*T)
		rows.Next(ids, targets, starts)
		batch := model.Batch{B: b, T: T, IDs: ids, Targets: targets}
		if r.Data.Isolate {
			batch.Starts = starts
		}
		losses := make([]float32, b*T)
		if err := m.Score(&batch); err != nil {
			t.Fatal(err)
		}
		m.Losses(losses)
		for i, x := range losses {
			if targets[i] < 0 {
				skipped++
				continue
			}
			sum += float64(x)
			count++
		}
	}
	return sum / float64(count), skipped
}

// opened is a run's newest checkpoint and its model.
func opened(t *testing.T, opt Options) (*Saved, *model.Model) {
	t.Helper()
	s, err := Open(opt.Dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Model(opt.Device)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Free)
	return s, m
}

// trained is a finished run's model and its data.
func trained(t *testing.T, r recipe.Recipe) (Result, *model.Model, *data.Set) {
	t.Helper()
	opt := options(t, t.TempDir())
	res := mustRun(t, r, opt)
	_, m := opened(t, opt)
	set, err := data.OpenSet(filepath.Join(opt.Dir, "data"), true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	return res, m, set
}

func splitOf(t *testing.T, set *data.Set, name string) *data.Split {
	t.Helper()
	sp, err := set.Split(name)
	if err != nil {
		t.Fatal(err)
	}
	return sp
}

// The reported held-out loss is that of the held-out split, with and without isolation, whatever the run's seed.
func TestHeldOutLoss(t *testing.T) {
	for _, sets := range [][]string{{"data.isolate=false"}, {"data.isolate=true"},
		{"data.isolate=true", "train.seed=9"}} {
		r := nano(t, "diff", append([]string{"train.steps=3", "train.eval_batches=6", "train.micro_batch=1",
			"data.sources=synthetic:docs=90,len=128", "train.seq_len=64", "data.held_out=0.3"}, sets...)...)
		res, m, set := trained(t, r)
		want, _ := meanLoss(t, m, splitOf(t, set, data.Valid), r)
		other, _ := meanLoss(t, m, splitOf(t, set, data.Train), r)
		if !(math.Abs(res.Valid-want) <= 1e-6) || !(math.Abs(other-want) >= 1e-4) {
			t.Errorf("%v: reported %v, the held-out split has %v, the training split %v", sets, res.Valid, want, other)
		}
		r.Data.Isolate = !r.Data.Isolate
		if other, _ = meanLoss(t, m, splitOf(t, set, data.Valid), r); !(math.Abs(other-want) >= 1e-5) {
			t.Errorf("%v: isolation makes no difference to %v; the test tests nothing", sets, want)
		}
	}
}

// endless is the byte tokenizer without an end-of-text id: the last token of a document has no target.
type endless struct{ *tokenizer.Tokenizer }

func (endless) EOS() (int32, bool) { return 0, false }
func (e endless) Hash() string     { return "endless-" + e.Tokenizer.Hash() }

// Tokens without a target do not count in the mean; those whose target is the first id do. Ranks divide the batches.
func TestHeldOutSkipsWhatHasNoTarget(t *testing.T) {
	r := nano(t, "diff", "train.steps=2", "train.eval_batches=9", "train.seq_len=64")
	_, m, _ := trained(t, r)
	src, err := data.Open(short(t, "zeros.jsonl", strings.Repeat(`{"text": "a\u0000bc\u0000\u0000 def"}`+"\n", 200)))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "set")
	if _, err := data.Build(context.Background(), dir, []data.Source{src}, endless{tokenizer.Bytes()},
		data.BuildOptions{}); err != nil {
		t.Fatal(err)
	}
	set, err := data.OpenSet(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	want, skipped := meanLoss(t, m, splitOf(t, set, data.Train), r)
	got, err := HeldOut(m, splitOf(t, set, data.Train), r, r.Train.EvalBatches)
	if err != nil || skipped == 0 || !(math.Abs(got-want) <= 1e-6) {
		t.Errorf("%v, want %v without the %d tokens that have no target; %v", got, want, skipped, err)
	}
	all := make([]float64, 2*r.Train.EvalBatches)
	for part := range 4 {
		sums := make([]float64, len(all))
		if err := score(m, splitOf(t, set, data.Train), r, sums, part, 4); err != nil {
			t.Fatal(err)
		}
		for i, x := range sums {
			if all[i] += x; (x > 0) != (i/2%4 == part) {
				t.Errorf("rank %d has %v of the batches", part, sums)
			}
		}
	}
	if mean(all) != got {
		t.Errorf("%v in four parts, %v whole", mean(all), got)
	}
}

// data.isolate reaches the training step: its first loss is that of the initial weights on the same rows, kept apart.
func TestIsolationInTraining(t *testing.T) {
	var losses []float64
	for _, set := range []string{"data.isolate=true", "data.isolate=false"} {
		r := nano(t, "diff", "train.steps=1", "train.batch=4", "data.sources=synthetic:docs=90,len=128",
			"train.seq_len=64", set)
		opt := options(t, t.TempDir())
		opt.Report = func(row Row) { losses = append(losses, row.Loss) }
		mustRun(t, r, opt)
	}
	if len(losses) != 2 || !(math.Abs(losses[0]-losses[1]) >= 1e-5) {
		t.Errorf("first losses with and without isolation: %v", losses)
	}
}

// A finished run that is called again knows its losses, and the smoothed loss is 0.98 of the old and 0.02 of the new.
func TestStateIsRestored(t *testing.T) {
	r := nano(t, "diff", "train.steps=6", "data.held_out=0.2")
	opt := options(t, t.TempDir())
	ema := 0.0
	opt.Report = func(row Row) {
		if row.Step == 1 {
			ema = row.Loss
		}
		ema = 0.98*ema + 0.02*row.Loss
		if !(math.Abs(row.LossEMA-ema) <= 1e-12) {
			t.Errorf("step %d: smoothed loss %v, want %v", row.Step, row.LossEMA, ema)
		}
	}
	first := mustRun(t, r, opt)
	again := mustRun(t, r, opt)
	if first.Valid == 0 || again.Valid != first.Valid || again.Loss != first.Loss || again.Resumed != 6 {
		t.Errorf("first %+v, again %+v", first, again)
	}
}

// A token set that is not the run's is not trained on: the right one is built again from the sources.
func TestForeignTokenSet(t *testing.T) {
	r := nano(t, "diff", "train.steps=8", "train.save_every=0")
	whole, other, dir := t.TempDir(), t.TempDir(), t.TempDir()
	mustRun(t, r, options(t, whole))
	mustRun(t, nano(t, "diff", "train.steps=1", "data.sources=synthetic:docs=60,seed=5"), options(t, other))
	opt := options(t, dir)
	stopAt(t, r, opt, 3)
	if err := os.RemoveAll(filepath.Join(dir, "data")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(other, "data"), filepath.Join(dir, "data")); err != nil {
		t.Fatal(err)
	}
	said := ""
	opt.Say = func(f string, _ ...any) { said += f }
	mustRun(t, r, opt)
	if !strings.Contains(said, "building it again") {
		t.Errorf("said %q", said)
	}
	sameFiles(t, files(t, filepath.Join(dir, "checkpoints", "step-00000008")),
		files(t, filepath.Join(whole, "checkpoints", "step-00000008")))
}

// keep_last is how many checkpoints are left.
func TestKeepLast(t *testing.T) {
	for _, keep := range []string{"1", "3"} {
		dir := t.TempDir()
		mustRun(t, nano(t, "diff", "train.steps=6", "train.save_every=1", "train.keep_last="+keep), options(t, dir))
		found, _ := filepath.Glob(filepath.Join(dir, "checkpoints", "step-*"))
		if want := int(keep[0] - '0'); len(found) != want || filepath.Base(found[len(found)-1]) != "step-00000006" {
			t.Errorf("keep_last=%s left %q", keep, found)
		}
	}
}
