package train

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/internal/flock"
	"antiphase/layer"
	"antiphase/tensor"
)

// Stop after every step, and before the first, and resume: the last checkpoint is the same to the byte, for every
// architecture, across epochs and with micro-batches.
func TestResumeIsExact(t *testing.T) {
	const steps = 21
	for _, a := range layer.Archs() {
		t.Run(a.Name, func(t *testing.T) {
			r := nano(t, a.Name, "train.steps=21", "train.save_every=4", "train.micro_batch=1", "train.eval_every=5",
				"data.sources=synthetic:docs=6,len=128", "data.held_out=0.2")
			whole := t.TempDir()
			mustRun(t, r, options(t, whole))
			want := files(t, filepath.Join(whole, "checkpoints", "step-00000021"))
			for k := range steps {
				if (a.Name != "diff" || testing.Short()) && k%5 != 0 {
					continue // where a run stops is the same for all, and what is saved the same wherever it stops
				}
				dir := t.TempDir()
				opt := options(t, dir)
				if k == 0 {
					initial := r
					initial.Train.Steps = 0
					mustRun(t, initial, opt)
				} else {
					stopAt(t, r, opt, k)
				}
				if res := mustRun(t, r, opt); res.Resumed != k || res.Steps != steps {
					t.Fatalf("stopped at %d: resumed from %d, ended at %d", k, res.Resumed, res.Steps)
				}
				sameFiles(t, files(t, filepath.Join(dir, "checkpoints", "step-00000021")), want)
			}
		})
	}
}

// One thread and many train to the same bytes.
func TestThreadsDoNotMatter(t *testing.T) {
	for _, a := range layer.Archs() {
		r := nano(t, a.Name, "train.steps=5")
		var want map[string][]byte
		for _, n := range []int{1, 2, 5} {
			dir := t.TempDir()
			d := cpu.New(cpu.Options{Threads: n})
			mustRun(t, r, Options{Dir: dir, Device: d})
			d.Close()
			got := files(t, filepath.Join(dir, "checkpoints", "step-00000005"))
			if want == nil {
				want = got
			}
			sameFiles(t, got, want)
		}
	}
}

// Micro-batches give the large batch's losses and weights to float32 accuracy.
func TestAccumulation(t *testing.T) {
	for _, a := range layer.Archs() {
		var want []Row
		for _, micro := range []string{"4", "2", "1"} {
			r := nano(t, a.Name, "train.batch=4", "train.micro_batch="+micro, "train.steps=6")
			opt := options(t, t.TempDir())
			var rows []Row
			opt.Report = func(row Row) { rows = append(rows, row) }
			mustRun(t, r, opt)
			if want == nil {
				want = rows
			}
			for i := range rows {
				if !(math.Abs(rows[i].Loss-want[i].Loss) <= 1e-4) ||
					!(math.Abs(rows[i].GradNorm/want[i].GradNorm-1) <= 1e-3) {
					t.Errorf("%s, micro-batches of %s, step %d: loss %g, norm %g; whole: %g, %g", a.Name, micro, i+1,
						rows[i].Loss, rows[i].GradNorm, want[i].Loss, want[i].GradNorm)
				}
			}
		}
	}
}

// Every architecture learns: the loss of a few hundred tiny steps falls well below the start.
func TestLearns(t *testing.T) {
	for _, a := range layer.Archs() {
		for _, set := range []string{"optim.bf16_weights=false", "optim.bf16_weights=true"} {
			r := nano(t, a.Name, "train.steps=60", "train.batch=4", "train.seq_len=32", "train.save_every=0", set)
			opt := options(t, t.TempDir())
			var first, last float64
			opt.Report = func(row Row) {
				if row.Step == 1 {
					first = row.Loss
				}
				last = row.LossEMA
			}
			res := mustRun(t, r, opt)
			if !(last < first-1) || !(res.Valid < first-1) || res.Valid == 0 {
				t.Errorf("%s %s: loss %g → %g, held out %g", a.Name, set, first, last, res.Valid)
			}
		}
	}
}

// With bf16 weights a resumed run equals an unbroken one too.
func TestResumeRoundedWeights(t *testing.T) {
	r := nano(t, "diff", "train.steps=8", "optim.bf16_weights=true", "train.save_every=0")
	whole, broken := t.TempDir(), t.TempDir()
	mustRun(t, r, options(t, whole))
	opt := options(t, broken)
	stopAt(t, r, opt, 3)
	mustRun(t, r, opt)
	want := files(t, filepath.Join(whole, "checkpoints", "step-00000008"))
	sameFiles(t, files(t, filepath.Join(broken, "checkpoints", "step-00000008")), want)
	first, initial := options(t, t.TempDir()), r // the first step computes with rounded weights too
	initial.Train.Steps = 0
	mustRun(t, initial, first)
	mustRun(t, r, first)
	sameFiles(t, files(t, filepath.Join(first.Dir, "checkpoints", "step-00000008")), want)
}

// A damaged newest checkpoint is named and the one before is used; the end is the same.
func TestDamagedCheckpoint(t *testing.T) {
	r := nano(t, "diff", "train.steps=12", "train.save_every=3")
	whole, dir := t.TempDir(), t.TempDir()
	mustRun(t, r, options(t, whole))
	opt := options(t, dir)
	stopAt(t, r, opt, 7)
	path := filepath.Join(dir, "checkpoints", "step-00000007", "model.safetensors")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	var said []string
	opt.Say = func(f string, args ...any) { said = append(said, strings.TrimSpace(f)+" "+sprint(args)) }
	if res := mustRun(t, r, opt); res.Resumed != 6 {
		t.Errorf("resumed from %d, want 6", res.Resumed)
	}
	if s := strings.Join(said, "\n"); !strings.Contains(s, "step-00000007") ||
		!strings.Contains(s, "model.safetensors") {
		t.Errorf("the damaged checkpoint was not named: %s", s)
	}
	sameFiles(t, files(t, filepath.Join(dir, "checkpoints", "step-00000012")),
		files(t, filepath.Join(whole, "checkpoints", "step-00000012")))
}

func sprint(args []any) string {
	var b strings.Builder
	for _, a := range args {
		if s, ok := a.(string); ok {
			b.WriteString(s)
		}
	}
	return b.String()
}

func TestSecondTrainerIsRefused(t *testing.T) {
	dir := t.TempDir()
	lock, err := flock.Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	if _, err := Run(context.Background(), nano(t, "diff"), options(t, dir)); !errors.Is(err, flock.ErrHeld) {
		t.Errorf("error %v", err)
	}
}

// What may change between two calls of one run, and what may not.
func TestChangedRecipe(t *testing.T) {
	dir := t.TempDir()
	r := nano(t, "diff", "train.steps=4")
	mustRun(t, r, options(t, dir))
	for _, c := range []struct {
		set string
		ok  bool
	}{
		{"train.steps=5", true}, {"train.save_every=2", true}, {"name=other", true}, {"train.log_every=3", true},
		{"model.ffn=64", false}, {"optim.lr=0.1", false}, {"train.seed=9", false}, {"train.batch=4", false},
		{"model.head_norm=plain", false}, {"data.held_out=0.5", false},
	} {
		changed := nano(t, "diff", "train.steps=4", c.set)
		_, err := Run(context.Background(), changed, options(t, dir))
		key, _, _ := strings.Cut(c.set, "=")
		switch {
		case c.ok && err != nil:
			t.Errorf("%s: %v", c.set, err)
		case !c.ok && err == nil:
			t.Errorf("%s: accepted", c.set)
		case !c.ok && !errors.Is(err, ErrChanged) && !strings.Contains(err.Error(), "data set"):
			t.Errorf("%s: error %v", c.set, err)
		case !c.ok && errors.Is(err, ErrChanged) && !strings.Contains(err.Error(), key):
			t.Errorf("%s: the difference is not named: %v", c.set, err)
		}
		if c.ok { // bring the folder back to step 4's recipe
			os.RemoveAll(filepath.Join(dir, "checkpoints"))
			mustRun(t, r, options(t, dir))
		}
	}
}

// A refused call leaves the run as it was, and a run continues without its sources.
func TestShardsAreTheRuns(t *testing.T) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(file, []byte(strings.Repeat("one two three four. ", 200)), 0o644); err != nil {
		t.Fatal(err)
	}
	r := nano(t, "diff", "train.steps=8", "train.save_every=2", "data.held_out=0", "data.sources="+file)
	opt := options(t, dir)
	stopAt(t, r, opt, 3)
	before := files(t, filepath.Join(dir, "data"))
	other := nano(t, "diff", "train.steps=8", "train.save_every=2", "data.held_out=0")
	if _, err := Run(context.Background(), other, opt); !errors.Is(err, ErrChanged) {
		t.Fatalf("other data: %v", err)
	}
	sameFiles(t, files(t, filepath.Join(dir, "data")), before)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if res := mustRun(t, r, opt); res.Resumed != 3 || res.Steps != 8 || res.Loss == 0 {
		t.Errorf("%+v", res)
	}
}

// A source that breaks off gives an error and no tokenizer.
func TestBrokenSource(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "a.jsonl")
	if err := os.WriteFile(bad, []byte("{\"text\":\"fine\"}\n{\"text\": 7}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := nano(t, "diff", "tokenizer.path=", "tokenizer.vocab=260", "data.sources="+bad)
	if _, err := Run(context.Background(), r, options(t, filepath.Join(dir, "run"))); err == nil ||
		!strings.Contains(err.Error(), bad) {
		t.Errorf("error %v", err)
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "run", "tokenizer.json*")); len(found) > 0 {
		t.Errorf("left %v", found)
	}
}

// A loss that is not finite stops the run before the update, with the batch on disk.
func TestNotFinite(t *testing.T) {
	dir := t.TempDir()
	r := nano(t, "diff", "train.steps=9", "train.save_every=2", "optim.clip=0", "optim.lr=900", "optim.warmup=0",
		"optim.schedule=constant")
	_, err := Run(context.Background(), r, options(t, dir))
	if !errors.Is(err, ErrNotFinite) {
		t.Fatalf("a learning rate of 900: %v", err)
	}
	found, _ := filepath.Glob(filepath.Join(dir, "crash-step-*", "batch.json"))
	if len(found) != 1 || !strings.Contains(err.Error(), filepath.Dir(found[0])) {
		t.Errorf("crash folder: %v, error %v", found, err)
	}
}

// So does a held-out loss: weights may overflow in the last update, which no training loss sees.
func TestHeldOutNotFinite(t *testing.T) {
	r := nano(t, "diff", "train.steps=1", "train.eval_every=1", "data.held_out=0.2", "optim.clip=0", "optim.lr=900",
		"optim.warmup=0", "optim.schedule=constant")
	if _, err := Run(context.Background(), r, options(t, t.TempDir())); !errors.Is(err, ErrNotFinite) {
		t.Errorf("a learning rate of 900: %v", err)
	}
}

// Metrics of a resumed run have every step once.
func TestMetricsAreCut(t *testing.T) {
	dir := t.TempDir()
	r := nano(t, "diff2", "train.steps=10", "train.save_every=4")
	opt := options(t, dir)
	stopAt(t, r, opt, 6)
	if err := os.RemoveAll(filepath.Join(dir, "checkpoints", "step-00000006")); err != nil {
		t.Fatal(err)
	}
	if res := mustRun(t, r, opt); res.Resumed != 4 {
		t.Fatalf("resumed from %d", res.Resumed)
	}
	b, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if len(lines) != 10 {
		t.Fatalf("%d rows, want 10", len(lines))
	}
	for i, l := range lines {
		if !strings.Contains(l, `"step":`+strconv.Itoa(i+1)+",") || !strings.Contains(l, `"lambda":[0.`) {
			t.Errorf("row %d: %s", i, l)
		}
	}
}

// A steady training step, its row included, allocates nothing.
func TestStepDoesNotAllocate(t *testing.T) {
	for _, a := range layer.Archs() {
		for _, isolate := range []string{"data.isolate=false", "data.isolate=true"} {
			r := nano(t, a.Name, "train.steps=1000", "train.micro_batch=1", isolate)
			opt := options(t, t.TempDir())
			opt.Say = func(string, ...any) {}
			run, err := newRun(context.Background(), r, &opt)
			if err != nil {
				t.Fatal(err)
			}
			run.clock.start(r)
			once := func() {
				if err := errors.Join(run.step(), run.report()); err != nil {
					t.Fatal(err)
				}
			}
			once()
			if n := testing.AllocsPerRun(10, once); n != 0 {
				t.Errorf("%s %s: %v allocations per step", a.Name, isolate, n)
			}
			run.close()
		}
	}
}

// A row has a held-out loss where one was measured at its step, and none before the first.
func TestRowsWithHeldOutLoss(t *testing.T) {
	r := nano(t, "transformer", "train.steps=4", "train.eval_every=2", "data.sources=synthetic:docs=6,len=128",
		"data.held_out=0.2")
	opt := options(t, t.TempDir())
	opt.Report = func(row Row) {
		if measured := row.Step%2 == 0; measured != (row.Valid > 0) || measured == math.IsNaN(row.Valid) {
			t.Errorf("step %d: held-out loss %g", row.Step, row.Valid)
		}
	}
	mustRun(t, r, opt)
}

// boundless is a device on which the gradient's norm is infinite while the loss is not.
type boundless struct{ *cpu.Device }

func (d boundless) SumSquares(dst, x tensor.Tensor) {
	device.WriteFloats(d.Device, dst, []float32{float32(math.Inf(1))})
}

// A gradient norm that is not finite stops the run like a loss, before the update.
func TestNormNotFinite(t *testing.T) {
	opt := options(t, t.TempDir())
	opt.Device = boundless{opt.Device.(*cpu.Device)}
	res, err := Run(context.Background(), nano(t, "diff", "train.steps=3"), opt)
	if !errors.Is(err, ErrNotFinite) || !strings.Contains(err.Error(), "gradient norm +Inf") || res.Steps != 0 {
		t.Errorf("at step %d: %v", res.Steps, err)
	}
}
