package main

import (
	"fmt"

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
	Manners   manners
	EOS       []int32 // those of Manners
	Kind      string  // kindRun or kindHF
	Dir       string
	Step      int
}

// load opens --model: a run folder, a checkpoint, a Hugging Face folder or org/name in its cache.
func (a *app) load(d device.Device, name string) (l *loaded, err error) {
	dir, err := locate(name)
	if err != nil {
		return nil, err
	}
	switch {
	case train.IsRun(dir):
		l, err = a.loadRun(d, dir)
	case hf.IsFolder(dir):
		l, err = loadHF(d, dir)
	default:
		err = unknownFolder(dir)
	}
	if err != nil {
		return nil, err
	}
	for _, id := range l.Manners.EOS {
		l.EOS = append(l.EOS, int32(id))
	}
	return l, nil
}

func (a *app) loadRun(d device.Device, dir string) (*loaded, error) {
	s, err := train.Open(dir, func(w string) { a.note("warning: %s", w) })
	if err != nil {
		return nil, badInput{err}
	}
	ask, err := mannersOf(s)
	if err != nil {
		return nil, err
	}
	m, err := s.Model(d)
	if err != nil {
		return nil, badInput{fmt.Errorf("%s: %w", s.Checkpoint.Dir, err)}
	}
	return &loaded{Model: m, Tokenizer: s.Tokenizer, Manners: ask, Kind: kindRun, Dir: s.Checkpoint.Dir, Step: s.State.Step}, nil
}

func loadHF(d device.Device, dir string) (*loaded, error) {
	m, f, err := hf.Open(d, dir, layer.Memory{})
	if err != nil {
		return nil, badInput{err}
	}
	defer f.Close()
	l := &loaded{Model: m, Manners: manners{f.Tokens(), f.Generation, -1}, Kind: kindHF, Dir: dir}
	l.Tokenizer, err = tokenizerOf(dir)
	return l, err
}
