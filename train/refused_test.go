package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/checkpoint"
	"antiphase/data"
	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/metrics"
	"antiphase/model"
	"antiphase/recipe"
	"antiphase/tensor"
	"antiphase/tokenizer"
)

// The layout of least memory where none fits; ranks that a layout cannot divide, and moments shared by one rank, are no
// candidates.
func TestFitOfNothing(t *testing.T) {
	types := device.Types{Act: tensor.F32, Stat: tensor.F32}
	r := nano(t, "diff", "train.batch=120", "train.micro_batch=1") // two heads: tp is 1 or 2
	for ranks, want := range map[int]Layout{1: {Data: 1, Tensor: 1}, 2: {Data: 1, Tensor: 2},
		3: {Data: 3, Tensor: 1, Shard: true},
		4: {Data: 2, Tensor: 2, Shard: true}, 5: {Data: 5, Tensor: 1, Shard: true},
		6: {Data: 3, Tensor: 2, Shard: true}, 8: {Data: 4, Tensor: 2, Shard: true}} {
		got := Fit(r, types, ranks, 0)
		if got != want || got.Ranks() != ranks {
			t.Errorf("%d ranks: %v, want %v", ranks, got, want)
		}
		for tensor := 1; tensor <= ranks; tensor++ {
			for _, shard := range []bool{false, true} {
				l := Layout{Data: ranks / tensor, Tensor: tensor, Shard: shard}
				if l.Ranks() == ranks && l.Check(r) == nil &&
					MemoryOf(r, types, l).Sum() < MemoryOf(r, types, got).Sum() {
					t.Errorf("%d ranks: %v needs less than %v", ranks, l, got)
				}
			}
		}
	}
}

// Rows of the held-out split are those of the held-out loss, whatever the run's seed; the last step and micro-batch are
// known; another token set, a folder without a run, and steps beyond the epochs are refused.
func TestRowsOfTheHeldOutLoss(t *testing.T) {
	opt := options(t, t.TempDir())
	r := nano(t, "diff", "train.steps=3", "train.micro_batch=1", "train.seed=9", "train.eval_batches=2",
		"data.held_out=0.3")
	mustRun(t, r, opt)
	rows, err := OpenRows(opt.Dir, "", data.Valid, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	if rows.Steps() != 2 || rows.B != r.Train.MicroBatch || rows.T != r.Train.SeqLen {
		t.Errorf("%d micro-batches of %d × %d", rows.Steps(), rows.B, rows.T)
	}
	plain := data.NewLoader(splitOf(t, rows.set, data.Valid), rows.B, rows.T, 0)
	ids, targets, starts := make([]int32, rows.B*rows.T), make([]int32, rows.B*rows.T), make([]int32, rows.B*rows.T)
	for n := 1; n <= 2; n++ {
		plain.Next(ids, targets, starts)
		if err := rows.At(n); err != nil || !slices.Equal(rows.IDs, ids) || !slices.Equal(rows.Targets, targets) {
			t.Errorf("micro-batch %d has other rows; %v", n, err)
		}
	}
	train, err := OpenRows(opt.Dir, "", data.Train, nil)
	if err != nil || train.Steps() != 3 || train.B != r.Train.Batch || train.Tokenizer == nil {
		t.Fatalf("%+v, %v", train, err)
	}
	train.Close()
	other := filepath.Join(t.TempDir(), "set")
	if err := MakeSet(t.Context(), nano(t, "diff", "data.sources=synthetic:docs=30,seed=4"), other, tokenizer.Bytes(),
		&Options{}); err != nil {
		t.Fatal(err)
	}
	var corrupt *data.CorruptError
	if _, err := OpenRows(opt.Dir, other, data.Train, nil); !errors.As(err, &corrupt) ||
		!strings.Contains(err.Error(), "not the token set of this run") {
		t.Errorf("another set: %v", err)
	}
	if _, err := OpenRows(t.TempDir(), "", data.Train, nil); err == nil {
		t.Error("an empty folder has rows")
	}
	if IsRun(t.TempDir()) || !IsRun(opt.Dir) || !IsRun(filepath.Join(opt.Dir, "checkpoints", "step-00000003")) {
		t.Error("what is a run")
	}
	bounded := options(t, t.TempDir())
	mustRun(t, nano(t, "diff", "train.steps=2", "data.held_out=0",
		`data.sources=[{"path": "synthetic:docs=2,len=128", "epochs": 1}]`), bounded)
	few, err := OpenRows(bounded.Dir, "", data.Train, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer few.Close()
	if err := few.At(1); err != nil {
		t.Error(err)
	}
	if err := few.At(1000); err == nil || !strings.Contains(err.Error(), "step 1000") {
		t.Errorf("beyond the epochs: %v", err)
	}
}

// A measurement replaces a stored peak that is lower, and no other; a stored one is used without measuring.
func TestPeakIsTheHighest(t *testing.T) {
	home := t.TempDir()
	t.Setenv(homeEnv, filepath.Join(home, "new", "folder"))
	d := cpu.New(cpu.Options{Threads: 1, Precision: cpu.FP32})
	defer d.Close()
	key := peakKey(d)
	if !strings.Contains(key, d.Name()) || !strings.Contains(key, device.MachineOf(d)) {
		t.Errorf("key %q", key)
	}
	for stored, kept := range map[float64]bool{1e30: true, 1: false} {
		writePeaks(map[string]float64{key: stored, "other": 5})
		if stored == 1e30 && MachinePeak(d) != stored {
			t.Error("a stored peak is measured again")
		}
		x := MeasurePeak(d)
		if got := readPeaks()[key]; (got == stored) != kept || !kept && got != x || readPeaks()["other"] != 5 ||
			x < 1e6 || x > 1e16 {
			t.Errorf("stored %g, measured %g, kept %g", stored, x, got)
		}
	}
	t.Setenv(homeEnv, "")
	t.Setenv("XDG_CACHE_HOME", home)
	if got := peakFile(); !strings.HasSuffix(got, filepath.Join("antiphase", "peak.json")) {
		t.Errorf("%s", got)
	}
}

// What a row says besides its loss: position, epochs, memory and λ.
func TestRowsSayWhere(t *testing.T) {
	r := nano(t, "diff", "train.steps=4", "data.sources=synthetic:docs=6,len=128", "data.held_out=0")
	opt := options(t, t.TempDir())
	var rows []Row
	opt.Report = func(row Row) {
		row.Lambda = slices.Clone(row.Lambda)
		rows = append(rows, row)
	}
	mustRun(t, r, opt)
	m, err := data.ReadManifest(filepath.Join(opt.Dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	step := r.Train.Batch * r.Train.SeqLen
	whole := float64(m.Tokens / int64(r.Train.SeqLen) * int64(r.Train.SeqLen)) // rows of an epoch are whole
	for i, row := range rows {
		n := (i + 1) * step
		if row.Tokens != int64(n) || row.DataPos != int64(n) || !(math.Abs(row.Epoch-float64(n)/whole) <= 0.05) {
			t.Errorf("step %d: %d tokens, position %d, epoch %g of %g tokens", i+1, row.Tokens, row.DataPos,
				row.Epoch, whole)
		}
		if bytes := row.MemGB * (1 << 30); bytes < 1<<10 || bytes > 1<<26 || !(row.GradNorm > 0) || !(row.MFU > 0) {
			t.Errorf("%+v", row)
		}
		if len(row.Lambda) != 2 || !(row.LambdaMin <= row.Lambda[0] && row.Lambda[1] <= row.LambdaMax &&
			row.LambdaMin < row.LambdaMax) {
			t.Errorf("λ %v from %g to %g", row.Lambda, row.LambdaMin, row.LambdaMax)
		}
	}
	if len(rows) != 4 || rows[0].Loss == rows[1].Loss {
		t.Errorf("%d rows", len(rows))
	}
}

// A folder that cannot be continued says why: a state of a later program, an imported model without moments, weights of
// another shape; and a cancelled call says that it was preparing.
func TestRefusedResumes(t *testing.T) {
	r := nano(t, "diff", "train.steps=6")
	for want, change := range map[string]func(dir string){
		"state.json: format 9, this program reads 1": func(dir string) {
			rewriteState(t, dir,
				func(s map[string]any) { s["format"] = 9 })
		},
		"state.json: recipe:": func(dir string) {
			rewriteState(t, dir, func(s map[string]any) { s["recipe"] = map[string]any{"stepz": 1} })
		},
		"an imported model": func(dir string) { dropFile(t, dir, "optimizer.safetensors") },
	} {
		opt := options(t, t.TempDir())
		stopAt(t, r, opt, 3)
		change(opt.Dir)
		if _, err := Run(t.Context(), r, opt); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if strings.HasPrefix(want, "state.json") {
			if _, err := Open(opt.Dir, nil); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("opened: %v, want %q", err, want)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, nano(t, "diff", "tokenizer.path=", "tokenizer.vocab=260"),
		options(t, t.TempDir())); !errors.Is(err, ErrPreparing) || !errors.Is(err, ErrInterrupted) {
		t.Errorf("cancelled: %v", err)
	}
	begin := options(t, t.TempDir())
	begin.Begin = &Begin{Weights: func(string) ([]float32, error) { return make([]float32, 3), nil },
		Parent: func() (*Parent, error) { return &Parent{}, nil }}
	if _, err := Run(t.Context(), r, begin); err == nil || !strings.Contains(err.Error(), "has 3 values there") {
		t.Errorf("weights of another shape: %v", err)
	}
	probe := options(t, t.TempDir())
	failed := errors.New("failed")
	probe.ProbeEvery = 2
	probe.Probe = func(context.Context, int, *model.Model, *tokenizer.Tokenizer) error { return failed }
	if res, err := Run(t.Context(), r, probe); !errors.Is(err, failed) ||
		!strings.Contains(err.Error(), "probe of step 2") || res.Steps != 2 {
		t.Errorf("a probe that fails: %v after %d steps", err, res.Steps)
	}
	for _, err := range []error{&fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist},
		fmt.Errorf("y: %w", &fs.PathError{Op: "read", Path: "x", Err: fs.ErrPermission})} {
		if errors.Is(damaged(err), checkpoint.ErrDamaged) {
			t.Errorf("%v counts as damage", err)
		}
	}
	if !errors.Is(damaged(failed), checkpoint.ErrDamaged) {
		t.Error("a wrong tensor is no damage")
	}
}

// dropFile saves the newest checkpoint again without one of its files.
func dropFile(t *testing.T, dir, name string) {
	t.Helper()
	store, c := newest(t, dir, checkpoint.Options{})
	var list []checkpoint.File
	for file, b := range files(t, c.Dir) {
		if file != name && file != "MANIFEST.json" {
			list = append(list, checkpoint.File{Name: file, Write: bytesTo(b)})
		}
	}
	if err := store.Save(c.Step, list); err != nil {
		t.Fatal(err)
	}
}

// A crash leaves what repeats the step: its rows, where they come from, and the recipe.
func TestCrashLeavesTheBatch(t *testing.T) {
	r := nano(t, "diff", "train.steps=9", "optim.clip=0", "optim.lr=900", "optim.warmup=0", "optim.schedule=constant")
	opt := options(t, t.TempDir())
	res, err := Run(t.Context(), r, opt)
	if !errors.Is(err, ErrNotFinite) {
		t.Fatal(err)
	}
	step := res.Steps + 1
	b, err := os.ReadFile(filepath.Join(opt.Dir, fmt.Sprintf("crash-step-%d", step), "batch.json"))
	if err != nil {
		t.Fatal(err)
	}
	var left struct {
		Step                 int
		Loss                 string
		Data                 data.Position
		Recipe               recipe.Recipe
		IDs, Targets, Starts []int32
	}
	if err := json.Unmarshal(b, &left); err != nil || left.Step != step || left.Loss == "" ||
		left.Recipe.Optim.LR != 900 {
		t.Fatalf("%+v, %v", left, err)
	}
	rows, err := OpenRows(opt.Dir, "", data.Train, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	if err := rows.At(step); err != nil || !slices.Equal(left.IDs, rows.IDs) ||
		!slices.Equal(left.Targets, rows.Targets) || !slices.Equal(left.Starts, rows.Starts) {
		t.Errorf("other rows than step %d has; %v", step, err)
	}
	again := loader(splitOf(t, rows.set, data.Train), r, r.Train.Batch, r.Train.Seed)
	ids := make([]int32, len(left.IDs))
	if err := again.Seek(left.Data); err != nil {
		t.Fatal(err)
	}
	if again.Next(ids, make([]int32, len(ids)), make([]int32, len(ids))); !slices.Equal(ids, left.IDs) {
		t.Error("its position gives other rows")
	}
	if all, err := metrics.Read(filepath.Join(opt.Dir, metrics.FileName), nil); err != nil || len(all) != res.Steps {
		t.Errorf("%d rows of %d steps, %v", len(all), res.Steps, err)
	}
}
