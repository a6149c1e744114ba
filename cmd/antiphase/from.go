package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"sync"

	"antiphase/internal/vfs"
	"antiphase/model"
	"antiphase/recipe"
	"antiphase/train"
)

// goOn is the recipe for continuing from the model of --from: its shape, context and tokenizer, and a learning rate and
// sequence length that suit trained weights.
func (f *trainFlags) goOn(ctx context.Context, a *app) (recipe.Recipe, error) {
	if r, ok := f.begun(); ok {
		return r, nil
	}
	s, err := openStored(ctx, a, f.from)
	if err != nil {
		return recipe.Recipe{}, err
	}
	defer s.close()
	if s.Kind == kindPacked { // in int8, and without files of its own for the tokenizer and the hash
		return recipe.Recipe{}, usage(fmt.Errorf(
			"--from: %s is a packed model; make a run of it first: %s import %s FOLDER", f.from, called(), f.from))
	}
	if f.arch != "" && f.arch != s.Config.Arch {
		return recipe.Recipe{}, usage(fmt.Errorf("--arch: is %s, the model of --from is a %s", f.arch, s.Config.Arch))
	}
	if s.Tokenizer == nil {
		return recipe.Recipe{}, badInput{fmt.Errorf("%s has no tokenizer.json, and training needs one", s.Dir)}
	}
	r, err := recipe.Named(f.size, s.Config.Arch)
	if err != nil {
		return r, usage(err)
	}
	r.Name, r.Model, r.Train.From = fromName(f.from), s.Config, f.from
	r.Tokenizer = recipe.Tokenizer{Path: filepath.Join(s.Dir, "tokenizer.json")}
	r.Optim.LR, r.Train.SeqLen = goingOn(s)
	const most = 4096 // tokens per micro-batch, unless a single sequence has more
	m := &r.Train.MicroBatch
	for *m = r.Train.Batch; *m > 1 && (*m*r.Train.SeqLen > most || r.Train.Batch%*m != 0); *m-- {
	}
	return r, nil
}

// fromName is the default name of a continued run.
func fromName(from string) string { return filepath.Base(filepath.Clean(from)) + "-on" }

// begun is the recipe of a run folder that already began with --from: the same command continues it, whatever has
// happened to the parent since.
func (f *trainFlags) begun() (r recipe.Recipe, ok bool) {
	dir := f.dir
	if dir == "" {
		dir = filepath.Join("runs", fromName(f.from))
	}
	if found, _ := vfs.Glob(vfs.OS{}, filepath.Join(dir, "checkpoints"), "step-*"); len(found) == 0 {
		return r, false
	}
	if err := r.Read(filepath.Join(dir, "recipe.json")); err != nil || r.Train.From != f.from || f.arch != "" &&
		f.arch != r.Model.Arch {
		return r, false
	}
	return r, true
}

// goingOn returns a peak learning rate and a sequence length. One of our runs continues with its final rate, reached or
// planned. For other models the rate falls with size, like published fine-tuning rates: 2e-5 at a billion parameters.
func goingOn(s *stored) (lr float64, seq int) {
	n := float64(model.Table(s.Config).Count())
	lr, seq = min(1e-4, 2e-5*math.Sqrt(1e9/n)), min(s.Config.Context, 2048)
	if s.Saved != nil && s.Saved.State.Step > 0 {
		o, t := s.Saved.Recipe.Optim, s.Saved.Recipe.Train
		lr, seq = o.LR*max(o.FinalLR, 0.1), min(t.SeqLen, s.Config.Context)
	}
	return lr, seq
}

// sayFrom prints the settings of a continued run, and warns about settings for training from scratch.
func sayFrom(ctx context.Context, a *app, r recipe.Recipe) error {
	s, err := openStored(ctx, a, r.Train.From)
	if err != nil {
		return err
	}
	defer s.close()
	a.note("continuing from %s: context %d, sequences of %d, learning rate %.2g with %d of %d steps of warm-up, "+
		"data %s", s.Dir, r.Model.Context, r.Train.SeqLen, r.Optim.LR, r.Optim.Warmup, r.Train.Steps,
		sourceNames(r.Data.Sources))
	lr, seq := goingOn(s)
	if r.Optim.LR > 3*lr {
		a.note("warning: optim.lr=%.2g is a rate for training from scratch; about %.2g keeps what the model knows",
			r.Optim.LR, lr)
	}
	if 2*r.Train.SeqLen <= seq {
		a.note("warning: train.seq_len=%d is far below what the model was made for, %d", r.Train.SeqLen, seq)
	}
	if r.Train.Steps > 0 && 2*r.Optim.Warmup > r.Train.Steps {
		a.note("warning: optim.warmup=%d is most of the %d steps", r.Optim.Warmup, r.Train.Steps)
	}
	return nil
}

// parentOf returns the parameters of the parent model, and what to record about it. It is opened on first use: a
// resumed run no longer needs it.
func parentOf(ctx context.Context, a *app, r recipe.Recipe) *train.Begin {
	if r.Train.From == "" {
		return nil
	}
	open := sync.OnceValues(func() (*stored, error) { return openStored(ctx, a, r.Train.From) })
	return &train.Begin{
		Weights: func(name string) ([]float32, error) {
			s, err := open()
			if err != nil {
				return nil, err
			}
			return s.Values(name)
		},
		Parent: func() (*train.Parent, error) {
			s, err := open()
			if err != nil {
				return nil, err
			}
			p := &train.Parent{Path: s.Dir}
			if s.Saved != nil {
				p.Step = s.Saved.State.Step
			}
			p.SHA256, err = hashWeights(s.Dir)
			return p, err
		},
	}
}

// hashWeights is the SHA-256 over the weight files of a folder, in order of names.
func hashWeights(dir string) (string, error) {
	found, err := vfs.Glob(vfs.OS{}, dir, "model*.safetensors")
	if err == nil && len(found) == 0 {
		err = errors.New("no weights to hash")
	}
	h := sha256.New()
	for _, path := range found {
		f, ferr := vfs.OS{}.Open(path)
		if ferr != nil {
			return "", ferr
		}
		_, cerr := io.Copy(h, f)
		if err = errors.Join(err, cerr, f.Close()); err != nil {
			break
		}
	}
	return hex.EncodeToString(h.Sum(nil)), err
}
