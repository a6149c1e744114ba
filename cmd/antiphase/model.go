package main

import (
	"fmt"
	"os"
	"path/filepath"

	"antiphase/device"
	"antiphase/hf"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/tokenizer"
	"antiphase/train"
)

// Kinds of folder that hold a model.
const (
	kindRun = "run"
	kindHF  = "Hugging Face"
)

// loaded is a model with all that using it needs.
type loaded struct {
	Model     *model.Model
	Tokenizer *tokenizer.Tokenizer // nil when the folder has none
	EOS       []int32
	Kind      string // kindRun or kindHF
	Dir       string
	Step      int
}

// load opens --model: a run folder, a checkpoint or a Hugging Face folder.
func (a *app) load(d device.Device, dir string) (*loaded, error) {
	if dir == "" {
		return nil, usage(fmt.Errorf("--model: missing; name a run folder, a checkpoint or a Hugging Face folder"))
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, badInput{fmt.Errorf("--model: %w", err)}
	}
	switch {
	case train.IsRun(dir):
		return a.loadRun(d, dir)
	case hf.IsFolder(dir):
		return loadHF(d, dir)
	}
	return nil, badInput{fmt.Errorf("--model: %s is neither a run folder (checkpoints/), a checkpoint (state.json) nor a Hugging Face folder (config.json)", dir)}
}

func (a *app) loadRun(d device.Device, dir string) (*loaded, error) {
	s, err := train.Open(dir, func(w string) { a.note("warning: %s", w) })
	if err != nil {
		return nil, badInput{err}
	}
	m, err := s.Model(d)
	if err != nil {
		return nil, badInput{fmt.Errorf("%s: %w", s.Checkpoint.Dir, err)}
	}
	l := &loaded{Model: m, Tokenizer: s.Tokenizer, Kind: kindRun, Dir: s.Checkpoint.Dir, Step: s.State.Step}
	if id, ok := s.Tokenizer.EOS(); ok {
		l.EOS = []int32{id}
	}
	return l, nil
}

func loadHF(d device.Device, dir string) (*loaded, error) {
	m, f, err := hf.Open(d, dir, layer.Memory{})
	if err != nil {
		return nil, badInput{err}
	}
	defer f.Close()
	l := &loaded{Model: m, Kind: kindHF, Dir: dir}
	for _, id := range f.EOS {
		l.EOS = append(l.EOS, int32(id))
	}
	path := filepath.Join(dir, "tokenizer.json")
	if _, err := os.Stat(path); err == nil {
		if l.Tokenizer, err = tokenizer.Load(path); err != nil {
			return nil, badInput{err}
		}
	}
	return l, nil
}
