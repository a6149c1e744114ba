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
	EOS       []int32
	Kind      string // kindRun or kindHF
	Dir       string
	Step      int

	Generation *hf.Generation // sampling defaults; nil for a run
}

// load opens --model: a run folder, a checkpoint, a Hugging Face folder or org/name in its cache.
func (a *app) load(d device.Device, name string) (*loaded, error) {
	dir, err := locate(name)
	if err != nil {
		return nil, err
	}
	switch {
	case train.IsRun(dir):
		return a.loadRun(d, dir)
	case hf.IsFolder(dir):
		return loadHF(d, dir)
	}
	return nil, unknownFolder(dir)
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
	l := &loaded{Model: m, Kind: kindHF, Dir: dir, Generation: f.Generation}
	for _, id := range f.EOS {
		l.EOS = append(l.EOS, int32(id))
	}
	l.Tokenizer, err = tokenizerOf(dir)
	return l, err
}
