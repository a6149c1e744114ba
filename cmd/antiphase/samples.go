package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"antiphase/infer"
	"antiphase/model"
	"antiphase/tokenizer"
	"antiphase/train"
)

// sampleFlags make a run write generated samples periodically.
type sampleFlags struct {
	every  int
	prompt string
	length int
}

func (f *sampleFlags) add(fl *pflag.FlagSet) {
	fl.IntVar(&f.every, "sample-every", 0, "append a generated sample to samples.jsonl every N steps; 0 disables")
	fl.StringVar(&f.prompt, "sample-prompt", "", "prompt of samples; empty starts a new document")
	fl.IntVar(&f.length, "sample-tokens", 64, "length of a sample in tokens")
}

func (f *sampleFlags) check() error {
	if f.every < 0 {
		return usage(fmt.Errorf("--sample-every: is %d, must not be negative", f.every))
	}
	if f.length < 1 {
		return usage(fmt.Errorf("--sample-tokens: is %d, must be positive", f.length))
	}
	return nil
}

// fits rejects an interval that is longer than the run, which would sample its last step only.
func (f *sampleFlags) fits(steps int) error {
	if f.every > steps {
		return usage(fmt.Errorf("--sample-every: is %d, but the run has %d steps", f.every, steps))
	}
	return nil
}

// runSample is one line of samples.jsonl.
type runSample struct {
	Step   int    `json:"step"`
	Prompt string `json:"prompt"`
	Text   string `json:"text"`
}

// probe makes a run write samples into its folder. A sample that fails is reported but not fatal. The seed is the step,
// so that a resumed run writes the same samples.
func (f *sampleFlags) probe(a *app, dir string, opt *train.Options) {
	if f.every == 0 || opt.Ranks != nil && opt.Ranks.Rank() != 0 {
		return
	}
	opt.ProbeEvery = f.every
	opt.Probe = func(ctx context.Context, step int, m *model.Model, tok *tokenizer.Tokenizer) error {
		text, err := f.say(ctx, step, m, tok)
		if err == nil {
			err = appendLine(filepath.Join(dir, "samples.jsonl"), runSample{step, f.prompt, text})
		}
		if err != nil {
			a.note("warning: no sample at step %d: %v", step, err)
		}
		return nil
	}
}

func (f *sampleFlags) say(ctx context.Context, step int, m *model.Model, tok *tokenizer.Tokenizer) (string, error) {
	e, err := infer.New(m, tok, infer.Options{Slots: 1, CacheTokens: m.Config.Context})
	if err != nil {
		return "", err
	}
	defer e.Close()
	var ids []int32
	if first := ownManners(tok).First; first >= 0 {
		ids = append(ids, first)
	}
	q := infer.Request{IDs: tok.Append(ids, f.prompt)}
	q.Sampling = infer.Sampling{Temperature: 0.8, Seed: uint64(step), MaxTokens: f.length}
	var text strings.Builder
	err = e.Generate(ctx, []infer.Request{q}, func(_ int, ev infer.Event) bool {
		text.WriteString(ev.Text)
		return true
	})
	return text.String(), err
}

// appendLine adds a value as one line of JSON.
func appendLine(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	return errors.Join(err, f.Close())
}
