package train

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/data"
	"antiphase/device/cpu"
	"antiphase/internal/vfs"
	"antiphase/model"
	"antiphase/recipe"
	"antiphase/tokenizer"
)

// effects has a value for every key of a recipe that decides what is learnt, and "" for those that must not: a new key
// needs an entry.
var effects = map[string]string{
	// For the tokenizer see retrain_test.go.
	"name": "", "tokenizer.path": "", "tokenizer.vocab": "", "tokenizer.docs": "", "tokenizer.pattern": "",
	"train.from": "", "train.log_every": "", "train.eval_every": "", "train.eval_batches": "", "train.save_every": "",
	"train.keep_last": "", "train.strict_save": "", "train.recompute": "", "train.micro_batch": "",
	// Not of this architecture, or only for long contexts.
	"model.lambda_form": "", "model.pairing": "", "model.rope_scaling": "",

	"model.arch": "diff2", "model.vocab": "300", "model.context": "", "model.layers": "1", "model.dim": "16",
	"model.heads":    "4",
	"model.kv_heads": "1", "model.head_dim": "4", "model.ffn": "64", "model.tie_embeddings": "false",
	"model.attention_bias": "true",

	"model.rope_theta": "50", "model.rope_interleaved": "false", "model.norm_eps": "0.1", "model.head_norm": "plain",
	"model.head_norm_eps": "0.1", "model.lambda_init": "constant", "model.lambda_const": "0.3",
	"model.lambda_std":    "0.3",
	"model.init_residual": "false",
	"data.sources":        "synthetic:docs=20,len=128,seed=2", "data.held_out": "0.4", "data.held_out_by": "documents",
	"data.max_tokens": "900",
	"data.isolate":    "true", "data.order": "stream",
	"train.seed": "2", "train.steps": "4", "train.batch": "4", "train.seq_len": "32",
	"optim.lr": "0.01", "optim.beta1": "0.5", "optim.beta2": "0.5", "optim.eps": "0.1", "optim.weight_decay": "0.5",
	"optim.decay_embeddings": "true", "optim.clip": "0.01", "optim.schedule": "constant", "optim.warmup": "2",
	"optim.final_lr":     "0.9",
	"optim.bf16_weights": "true",
}

// Every setting reaches the training: with another value other weights are learnt, and where it decides only what is
// written or when, the same ones.
func TestEverySettingHasItsEffect(t *testing.T) {
	d := cpu.New(cpu.Options{Threads: 1, Precision: cpu.FP32})
	defer d.Close()
	set := filepath.Join(t.TempDir(), "data")
	learn := func(sets ...string) []byte {
		sets = append([]string{"train.steps=3", "optim.warmup=1", "train.eval_batches=0", "train.save_every=0",
			"data.sources=synthetic:docs=20,len=128", "train.seq_len=48"}, sets...)
		dir := t.TempDir()
		r := nano(t, "diff", sets...)
		mustRun(t, r, Options{Dir: dir, Data: set, Device: d})
		return files(t, filepath.Join(dir, "checkpoints", fmt.Sprintf("step-%08d", r.Train.Steps)))["model.safetensors"]
	}
	want := learn()
	for _, f := range new(recipe.Recipe).Fields() {
		value, ok := effects[f.Path]
		if !ok {
			t.Errorf("%s has no entry", f.Path)
		}
		if value == "" {
			continue
		}
		sets := []string{f.Path + "=" + value}
		if f.Path == "model.lambda_const" {
			sets = append(sets, "model.lambda_init=constant")
		}
		if bytes.Equal(learn(sets...), want) {
			t.Errorf("%s makes no difference", sets)
		}
	}
	if got := learn("model.lambda_const=0.3", "model.lambda_init=constant"); bytes.Equal(got,
		learn("model.lambda_init=constant")) {
		t.Error("model.lambda_const makes no difference to a constant")
	}
	same := learn("name=other", "train.log_every=1", "train.eval_every=1", "train.eval_batches=2", "train.save_every=1",
		"train.keep_last=5", "train.strict_save=true")
	if !bytes.Equal(same, want) {
		t.Error("what is written decides what is learnt")
	}
}

// What Run returns is what the last row says; interrupted, too, and by a call that finds nothing to do.
func TestResultIsTheLastRow(t *testing.T) {
	opt := options(t, t.TempDir())
	var last Row
	opt.Report = func(row Row) { last = row }
	r := nano(t, "diff", "train.steps=5", "data.held_out=0.2")
	for range 2 {
		res := mustRun(t, r, opt)
		if want := (Result{Steps: 5, Loss: last.Loss, Valid: last.Valid, Resumed: res.Resumed}); res != want ||
			res.Loss == last.LossEMA {
			t.Errorf("%+v, the last row says %+v", res, want)
		}
	}
	short := options(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	short.Report = func(row Row) {
		if last = row; row.Step == 2 {
			cancel()
		}
	}
	res, err := Run(ctx, r, short)
	if !errors.Is(err, ErrInterrupted) || !strings.Contains(err.Error(), "step 2 of 5") ||
		res != (Result{Steps: 2, Loss: last.Loss}) {
		t.Errorf("%+v, %v", res, err)
	}
}

// A probe that is due at the step of an interruption is not cut short, and its time is the next row's evaluation.
func TestProbeIsNotCutShort(t *testing.T) {
	opt := options(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	opt.ProbeEvery = 2
	probed := 0
	opt.Report = func(row Row) {
		if row.Step == 2 {
			cancel()
		}
	}
	opt.Probe = func(within context.Context, step int, _ *model.Model, _ *tokenizer.Tokenizer) error {
		if probed++; step != 2 || within.Err() != nil {
			t.Errorf("step %d: %v", step, within.Err())
		}
		return within.Err()
	}
	if _, err := Run(ctx, nano(t, "diff", "train.steps=9"), opt); !errors.Is(err, ErrInterrupted) || probed != 1 {
		t.Errorf("probed %d times, %v", probed, err)
	}
}

// A crash says the loss and the gradient's norm of its step, in the error and in its file.
func TestCrashSaysLossAndNorm(t *testing.T) {
	opt := options(t, t.TempDir())
	opt.Device = boundless{opt.Device.(*cpu.Device)}
	_, err := Run(t.Context(), nano(t, "diff", "train.steps=3"), opt)
	b, failed := os.ReadFile(filepath.Join(opt.Dir, "crash-step-1", "batch.json"))
	if failed != nil {
		t.Fatal(failed, err)
	}
	var left struct {
		Loss string
		Norm string `json:"grad_norm"`
	}
	loss := single(t, nano(t, "diff", "train.steps=1"), t.TempDir())[0].Loss
	if err := json.Unmarshal(b, &left); err != nil || left.Norm != "+Inf" {
		t.Errorf("%+v, %v", left, err)
	}
	var got float64
	if _, err := fmt.Sscan(left.Loss, &got); err != nil || !(math.Abs(got-loss) <= 1e-2) {
		t.Errorf("the loss was %s, want %g", left.Loss, loss)
	}
	if want := "step 1: loss or gradient is not finite (loss " + left.Loss +
		", gradient norm +Inf)"; !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// A folder without a checkpoint has rows too: with the tokenizer that its recipe names, with its own, and without any.
func TestRowsBeforeTheFirstCheckpoint(t *testing.T) {
	set := filepath.Join(t.TempDir(), "set")
	if err := MakeSet(t.Context(), nano(t, "diff"), set, tokenizer.Bytes(), &Options{}); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.json")
	own, err := MakeTokenizer(t.Context(), nano(t, "diff", "tokenizer.path=", "tokenizer.vocab=258"), &Options{})
	if err != nil {
		t.Fatal(err)
	}
	file, err := own.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		path, at string // what the recipe names; where a tokenizer lies
		want     *tokenizer.Tokenizer
	}{{"bytes", "", tokenizer.Bytes()}, {other, other, own}, {"", "tokenizer.json", own}, {"", "", nil},
		{other + "x", "", nil}} {
		dir := t.TempDir()
		r := nano(t, "diff", "tokenizer.vocab=258", "tokenizer.path="+x.path)
		if err := vfs.WriteFile(vfs.OS{}, filepath.Join(dir, "recipe.json"), r.JSON()); err != nil {
			t.Fatal(err)
		}
		if at := x.at; at != "" {
			if !filepath.IsAbs(at) {
				at = filepath.Join(dir, at)
			}
			if err := vfs.WriteFile(vfs.OS{}, at, file); err != nil {
				t.Fatal(err)
			}
		}
		rows, err := OpenRows(dir, set, data.Train, nil)
		if err != nil {
			t.Errorf("%+v: %v", x, err)
			continue
		}
		if got := rows.Tokenizer; (got == nil) != (x.want == nil) || got != nil && got.Hash() != x.want.Hash() {
			t.Errorf("%q, found at %q: another tokenizer", x.path, x.at)
		}
		rows.Close()
	}
}
