package train

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"antiphase/data"
	"antiphase/device/cpu"
	"antiphase/model"
	"antiphase/tokenizer"
)

// plainly replaces what differs from run to run: the folder, numbers that make names unique, and the machine's kernels.
func plainly(dir, text string) string {
	text = strings.ReplaceAll(filepath.ToSlash(text), filepath.ToSlash(dir), "DIR")
	text = regexp.MustCompile(`[0-9a-f]{64}`).ReplaceAllString(text, "SUM")
	text = regexp.MustCompile(`-[0-9a-f]{16}`).ReplaceAllString(text, "-ID")
	return regexp.MustCompile(`cpu, (\w+), \w+ \w+`).ReplaceAllString(text, "cpu, $1, KERNELS")
}

// conversation is a run in one folder, and the lines that it has said since the last look.
type conversation struct {
	t     *testing.T
	dir   string
	lines *strings.Builder
	sets  []string // changes of the recipe
}

// expect compares the lines and the error with those wanted, to the word, and forgets the lines.
func (c *conversation) expect(what string, err error, wantErr string, want ...string) {
	c.t.Helper()
	got := strings.Split(strings.TrimSuffix(plainly(c.dir, c.lines.String()), "\n"), "\n")
	if c.lines.Len() == 0 {
		got = nil
	}
	if !slices.Equal(got, want) {
		c.t.Errorf("%s: said\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if said := plainly(c.dir, fmt.Sprint(err)); said != wantErr {
		c.t.Errorf("%s: %s\nwant %s", what, said, wantErr)
	}
	c.lines.Reset()
}

// until runs until a step has ended, or to the end if there is no such step.
func (c *conversation) until(step int, opt Options, more ...string) error {
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	opt.Report = func(row Row) {
		if row.Step == step {
			cancel()
		}
	}
	_, err := Run(ctx, nano(c.t, "diff", append(slices.Clone(c.sets), more...)...), opt)
	return err
}

// Everything that a run says over its life, in order and to the word: stopped, continued with changes, without its
// token set, after damage, elsewhere, forced and finished.
func TestWhatARunSays(t *testing.T) {
	dir := t.TempDir()
	opt, lines := on(t, dir, cpu.FP32)
	c := &conversation{t, dir, lines,
		[]string{"train.steps=4", "train.save_every=1", "train.keep_last=9", "train.eval_batches=1"}}
	c.expect("stopped", c.until(2, opt), "step 2 of 4: interrupted; run the same command again to continue")
	c.expect("continued", c.until(3, opt, "train.steps=9", "name=other"),
		"step 3 of 9: interrupted; run the same command again to continue", "changed: name: was nano-diff, is other",
		"changed: train.steps: was 4, is 9", "resuming from step 2 of 9 (DIR/checkpoints/step-00000002)")
	c.sets = append(c.sets, "train.steps=9", "name=other")
	if err := os.RemoveAll(filepath.Join(dir, "data")); err != nil {
		t.Fatal(err)
	}
	c.expect("without its set", c.until(4, opt), "step 4 of 9: interrupted; run the same command again to continue",
		"the token set of this run is not in DIR/data: building it again",
		"resuming from step 3 of 9 (DIR/checkpoints/step-00000003)")
	if err := os.Remove(filepath.Join(dir, "checkpoints", "step-00000004", "state.json")); err != nil {
		t.Fatal(err)
	}
	c.expect("after damage", c.until(5, opt), "step 5 of 9: interrupted; run the same command again to continue",
		"warning: damaged checkpoint DIR/checkpoints/step-00000004: state.json: the file is missing; looking at "+
			"the one before",
		"resuming from step 3 of 9 (DIR/checkpoints/step-00000003)",
		"a checkpoint after that step is kept as DIR/checkpoints/step-00000004.damaged-ID")
	c.expect("changed", c.until(6, opt, "optim.lr=0.5", "data.held_out=0.25"),
		"train: DIR/checkpoints/step-00000005: the run folder holds a different run:\n"+
			"  data.held_out: was 0.02, is 0.25\n  optim.lr: was 0.003, is 0.5\n"+
			"use another folder, the old values, or --force")
	c.expect("fixed", c.until(6, opt, "optim.lr=0.5", "train.seed=5"),
		"train: DIR/checkpoints/step-00000005: the run folder holds a different run:\n"+
			"  train.seed: was 1, is 5 (fixed when the run began)\n  optim.lr: was 0.003, is 0.5\n"+
			"use the old values, or another folder, with --from to begin with this model's weights")
	bf16, more := on(t, dir, cpu.BF16)
	c.lines = more
	c.expect("elsewhere", c.until(6, bf16),
		"train: DIR/checkpoints/step-00000005: cannot continue with the same bits: the run was computed by cpu, "+
			"fp32, KERNELS; this is cpu, bf16, KERNELS\nuse the same device and --precision, or "+
			"--inexact to continue anyway")
	bf16.Inexact = true
	c.expect("inexact", c.until(6, bf16), "step 6 of 9: interrupted; run the same command again to continue",
		"changed: steps up to 5 were computed by cpu, fp32, KERNELS, later ones by cpu, bf16, KERNELS: "+
			"results will not be bit-identical",
		"resuming from step 5 of 9 (DIR/checkpoints/step-00000005)")
	c.lines = lines
	opt.Inexact, opt.Force = true, true
	c.expect("forced", c.until(7, opt, "train.seq_len=8"),
		"step 7 of 9: interrupted; run the same command again to continue", "changed: train.seq_len: was 16, is 8",
		"changed: steps up to 6 were computed by cpu, bf16, KERNELS, later ones by cpu, fp32, KERNELS: "+
			"results will not be bit-identical",
		"the data begins again at its first row: data: position counts rows of 16 tokens, this loader has rows of 8: "+
			"keep train.seq_len=16",
		"resuming from step 6 of 9 (DIR/checkpoints/step-00000006)")
	c.expect("finished", c.until(0, opt, "train.seq_len=8"), "<nil>",
		"resuming from step 7 of 9 (DIR/checkpoints/step-00000007)")
	c.expect("again", c.until(0, opt, "train.seq_len=8"), "<nil>",
		"resuming from step 9 of 9 (DIR/checkpoints/step-00000009)")
}

// What is said of sets that do not belong to a run: which hash is whose.
func TestForeignSetsInWords(t *testing.T) {
	opt := options(t, t.TempDir())
	mustRun(t, nano(t, "diff", "train.steps=1", "train.eval_batches=0"), opt)
	set := filepath.Join(t.TempDir(), "set")
	if err := MakeSet(t.Context(), nano(t, "diff", "data.sources=synthetic:docs=30,seed=4"), set, tokenizer.Bytes(),
		&Options{}); err != nil {
		t.Fatal(err)
	}
	own, other := hashOf(t, filepath.Join(opt.Dir, "data")), hashOf(t, set)
	_, err := OpenRows(opt.Dir, set, data.Train, nil)
	if want := fmt.Sprintf("data: %s: not the token set of this run: its hash is %.12q, the run's %.12q", set, other,
		own); err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	tok, err := MakeTokenizer(t.Context(), nano(t, "diff", "tokenizer.path=", "tokenizer.vocab=258"), &Options{})
	if err != nil {
		t.Fatal(err)
	}
	file, err := tok.MarshalJSON()
	path := filepath.Join(t.TempDir(), "t.json")
	if err = errors.Join(err, os.WriteFile(path, file, 0o644)); err != nil {
		t.Fatal(err)
	}
	_, err = Run(t.Context(), nano(t, "diff", "data.sources="+set, "tokenizer.path="+path), options(t, t.TempDir()))
	if want := fmt.Sprintf("data: %s: built with the tokenizer %.12s, %s is %.12s: name the one it was built with", set,
		tokenizer.Bytes().Hash(), path, tok.Hash()); err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	said, lines := on(t, t.TempDir(), cpu.FP32)
	mustRun(t, nano(t, "diff", "train.steps=1", "train.eval_batches=0", "data.sources="+set), said)
	m, err := data.ReadManifest(set)
	if want := fmt.Sprintf("token set %s: %d tokens; what it holds out and its weights are its own\n", set,
		m.Tokens); err != nil || lines.String() != want {
		t.Errorf("said %q, want %q, %v", lines, want, err)
	}
}

func hashOf(t *testing.T, set string) string {
	t.Helper()
	m, err := data.ReadManifest(set)
	if err != nil {
		t.Fatal(err)
	}
	return m.Hash
}

// A row has the memory of the model's activations, in GiB, and the λ of its layers as the model reads them.
func TestRowsHaveTheModelsNumbers(t *testing.T) {
	opt := options(t, t.TempDir())
	var rows []Row
	opt.Report = func(r Row) { r.Lambda = slices.Clone(r.Lambda); rows = append(rows, r) }
	opt.ProbeEvery = 1
	opt.Probe = func(_ context.Context, step int, m *model.Model, _ *tokenizer.Tokenizer) error {
		row := rows[step-1]
		if got := row.MemGB * (1 << 30); got != float64(m.ActivationBytes()) || got < 1000 {
			t.Errorf("step %d: %g bytes, want %d", step, got, m.ActivationBytes())
		}
		list, low, high := m.LambdaRange(nil)
		if !slices.Equal(row.Lambda, list) || row.LambdaMin != low || row.LambdaMax != high || len(list) == 0 {
			t.Errorf("step %d: λ %v from %g to %g, want %v from %g to %g", step, row.Lambda, row.LambdaMin,
				row.LambdaMax, list, low, high)
		}
		return nil
	}
	if mustRun(t, nano(t, "diff", "train.steps=3", "train.eval_batches=0"), opt); len(rows) != 3 {
		t.Errorf("%d rows", len(rows))
	}
}
