package train

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/device/cpu"
	"antiphase/dist/disttest"
	"antiphase/internal/safetensors"
	"antiphase/recipe"
	"antiphase/tensor"
	"antiphase/tokenizer"
)

// Before the first step ranks compare everything that must be equal: recipe, tokenizer, data, step and layout.
func TestRanksCompareEverything(t *testing.T) {
	dir := t.TempDir()
	var table *facts
	for _, x := range []struct {
		ranked
		steps string
		want  []string
	}{
		{ranked{2, 1, false}, "train.steps=2", []string{"step:0", "sharded:false", "tp:1"}},
		{ranked{2, 1, true}, "train.steps=3", []string{"step:2", "sharded:true", "tp:1"}},
		{ranked{2, 2, false}, "train.steps=4", []string{"step:3", "sharded:false", "tp:2"}},
	} {
		r := nano(t, "diff", "train.batch=4", "optim.schedule=constant", "train.eval_batches=0", x.steps)
		if _, err := x.run(t, r, dir, func(rank int, opt *Options, _ *recipe.Recipe) {
			if rank == 0 { // all have the same table
				table = opt.Ranks.(member).table
			}
		}); err != nil {
			t.Fatal(err)
		}
		set := newestState(t, dir).Data.Dataset
		tok, err := tokenizer.Bytes().MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		hashes := []string{fmt.Sprintf("tokenizer:%.6x", sha256.Sum256(tok)),
			fmt.Sprintf("recipe:%.6x", sha256.Sum256(r.JSON()))}
		for _, said := range table.said["start"] {
			for _, want := range append(x.want, "data:"+set, hashes[0], hashes[1]) {
				if !strings.Contains(said, want) {
					t.Errorf("%v: compared %s, want %s", x.ranked, said, want)
				}
			}
		}
		if len(table.said["start"]) != 2 || len(table.said["prepared"]) != 2 || len(table.said["end"]) != 2 {
			t.Errorf("%v: agreed %v", x.ranked, table.said)
		}
	}
}

// A rank that holds a part of the model, of the rows and of the moments needs memory for that alone; the refusal gives
// both amounts, the rows that the rank computes at a time, and what would fit.
func TestMemoryOfARank(t *testing.T) {
	d := cpu.New(cpu.Options{Threads: 1, Precision: cpu.FP32})
	defer d.Close()
	r, err := recipe.Named("160m", "diff")
	if err != nil {
		t.Fatal(err)
	}
	r.Train.Batch, r.Train.MicroBatch = 16, 16
	for _, x := range []struct {
		ranks, tensor int
		shard         bool
		micro         int
	}{{1, 1, false, 16}, {4, 1, false, 4}, {4, 1, true, 4}, {4, 2, false, 8}, {4, 2, true, 8}} {
		opt := Options{Device: cramped{d, 0}, Tensor: x.tensor, Shard: x.shard}
		if x.ranks > 1 {
			opt.Ranks = member{disttest.NewWorld(x.ranks, disttest.Options{}).Comm(0), newFacts(x.ranks)}
		}
		own := r
		own.Train.MicroBatch = x.micro
		need := MemoryOf(own, d.Types(), Layout{Data: x.ranks / x.tensor, Tensor: x.tensor, Shard: x.shard})
		run := &run{recipe: r, opt: &opt}
		if opt.Device = (cramped{d, need.Sum()}); run.memory() != nil {
			t.Errorf("%+v: %v", x, run.memory())
		}
		opt.Device = cramped{d, need.Sum() - 1}
		err := run.memory()
		want := fmt.Sprintf("%.2f GiB for weights, gradients and moments, %.2f GiB for activations of %d × 2048 "+
			"tokens; train.micro_batch=%d would fit (",
			float64(need.State)/(1<<30), float64(need.Activations)/(1<<30), x.micro, x.micro/2)
		var none *tensor.NoMemory
		if !errors.As(err, &none) || !strings.Contains(err.Error(), want) || none.Bytes != int(need.Sum()) ||
			none.Free != need.Sum()-1 {
			t.Errorf("%+v: %v, want %q", x, err, want)
		}
		own.Train.MicroBatch /= 2
		half := MemoryOf(own, d.Types(), Layout{Data: x.ranks / x.tensor, Tensor: x.tensor, Shard: x.shard}).Sum()
		if !strings.HasSuffix(err.Error(), fmt.Sprintf("would fit (%.2f GiB)", float64(half)/(1<<30))) {
			t.Errorf("%+v: %v, half the rows take %d bytes", x, err, half)
		}
	}
}

// The use of the machine is the operations of training per second over the peak of all ranks together.
func TestMFUIsOfAllRanks(t *testing.T) {
	t.Setenv(homeEnv, t.TempDir())
	d := cpu.New(cpu.Options{Threads: 1, Precision: cpu.FP32})
	defer d.Close()
	const peak = 3e12
	writePeaks(map[string]float64{peakKey(d): peak})
	r := nano(t, "diff", "train.batch=4", "train.steps=2", "train.eval_batches=0")
	_, perToken := r.Model.FLOPs(r.Train.SeqLen)
	for n := 1; n <= 2; n++ {
		rows, err := runRanks(t, r, t.TempDir(), n, false, nil)
		if err != nil || len(rows) != 2 {
			t.Fatal(err)
		}
		for _, row := range rows {
			if want := row.TokS * perToken / (float64(n) * peak); !(math.Abs(row.MFU/want-1) <= 1e-9) {
				t.Errorf("%d ranks: %g of the machine, want %g", n, row.MFU, want)
			}
		}
	}
}

// A checkpoint that one rank is asked for is made by all after the next step, and the run continues.
func TestRanksSaveTogether(t *testing.T) {
	for asked := range 2 {
		dir := t.TempDir()
		r := nano(t, "diff", "train.batch=4", "train.steps=4", "train.save_every=0", "train.keep_last=9",
			"train.eval_batches=0")
		rows, err := runRanks(t, r, dir, 2, false, func(rank int, opt *Options, _ *recipe.Recipe) {
			if save := make(chan struct{}, 1); rank == asked {
				save <- struct{}{}
				opt.Save = save
			}
		})
		found, _ := filepath.Glob(filepath.Join(dir, "checkpoints", "step-*"))
		if err != nil || len(rows) != 4 || len(found) != 2 || filepath.Base(found[0]) != "step-00000001" ||
			filepath.Base(found[1]) != "step-00000004" {
			t.Errorf("rank %d was asked: %d rows, %q, %v", asked, len(rows), found, err)
		}
	}
}

// A checkpoint has one file of each kind if one rank holds everything, and else one of every rank that holds a part;
// ranks that only repeat others' parts write none.
func TestFilesOfEveryLayout(t *testing.T) {
	r := nano(t, "diff", "train.batch=12", "train.micro_batch=2", "train.steps=1", "train.eval_batches=0")
	for l, parts := range map[ranked]int{{2, 1, false}: 1, {3, 1, false}: 1, {3, 1, true}: 3, {2, 2, false}: 2,
		{4, 2, false}: 2, {4, 2, true}: 4} {
		want := []string{"MANIFEST.json", "state.json", "tokenizer.json"}
		for _, kind := range []string{"model", "optimizer"} {
			for rank := range parts {
				name := kind + ".safetensors"
				if parts > 1 {
					name = fmt.Sprintf("%s-rank-%05d.safetensors", kind, rank)
				}
				want = append(want, name)
			}
		}
		dir := t.TempDir()
		if _, err := l.run(t, r, dir, nil); err != nil {
			t.Fatal(err)
		}
		slices.Sort(want)
		if got := slices.Sorted(maps.Keys(files(t,
			filepath.Join(dir, "checkpoints", "step-00000001")))); !slices.Equal(got, want) {
			t.Errorf("%v: files %q, want %q", l, got, want)
		}
	}
}

// Ranks that split a model begin with the given weights, each with its part: the first loss is that of one process.
func TestSplitRanksBegin(t *testing.T) {
	parent := t.TempDir()
	single(t, nano(t, "diff", "train.steps=3"), parent)
	weights, err := safetensors.Open(filepath.Join(parent, "checkpoints", "step-00000003", "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer weights.Close()
	begin := &Begin{Weights: weights.Float32s,
		Parent: func() (*Parent, error) { return &Parent{Path: parent, Step: 3}, nil }}
	r := nano(t, "diff", "train.batch=4", "train.steps=1", "train.seed=8", "train.eval_batches=0")
	var losses []float64
	for _, l := range []ranked{{1, 1, false}, {2, 2, false}, {2, 1, true}} {
		rows, err := l.run(t, r, t.TempDir(), func(_ int, opt *Options, _ *recipe.Recipe) { opt.Begin = begin })
		if err != nil || len(rows) != 1 {
			t.Fatalf("%v: %v", l, err)
		}
		losses = append(losses, rows[0].Loss)
	}
	drawn := single(t, r, t.TempDir())[0].Loss
	if !(math.Abs(losses[1]-losses[0]) <= 1e-5) || !(math.Abs(losses[2]-losses[0]) <= 1e-5) ||
		!(math.Abs(drawn-losses[0]) >= 1e-3) {
		t.Errorf("first losses %v, with drawn weights %g", losses, drawn)
	}
}
