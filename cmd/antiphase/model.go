package main

import (
	"context"
	"fmt"
	"strings"

	"antiphase/checkpoint"
	"antiphase/device"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/pair"
	"antiphase/tokenizer"
)

// Kinds of folder that hold a model.
const (
	kindRun    = "run"
	kindHF     = "Hugging Face"
	kindPacked = "packed"
)

// loaded is a model with everything needed to use it.
type loaded struct {
	Model     *model.Model
	Tokenizer *tokenizer.Tokenizer // nil if the folder has none
	Manners   manners
	EOS       []int32 // from Manners
	Kind      string  // kindRun, kindHF or kindPacked
	Hash      string  // of a packed model's content
	Dir       string
	Step      int
	Tokens    int64                // number of training tokens, if known
	Manifest  *checkpoint.Manifest // of a run
}

// modelWords says what --model accepts; the last ones are embedded.
var modelWords = "run folder, checkpoint, packed file, Hugging Face folder, org/name in Hugging Face's cache, " +
	embeddedPrefix + strings.Join(pair.Names(), " or "+embeddedPrefix)

// load opens --model on a device (modelWords). If ranks split models it is this rank's part, and the others are told
// what is done with it.
func (a *app) load(d device.Device, name string) (*loaded, error) {
	if a.parts == nil {
		return loadPart(a, d, name, nil)
	}
	l, err := loadPart(a, d, name, a.parts.split)
	if err == nil {
		a.parts.lead(l.Model)
	}
	return l, err
}

// loadPart is load for one of the ranks that split a model; a nil split is the whole model.
func loadPart(a *app, d device.Device, name string, split *layer.Split) (*loaded, error) {
	s, err := openStored(context.Background(), a, name)
	if err != nil {
		return nil, err
	}
	defer s.close()
	l := &loaded{Tokenizer: s.Tokenizer, Manners: s.Manners, Kind: s.Kind, Hash: s.Hash, Dir: s.Dir}
	if s.Saved != nil {
		l.Step, l.Tokens, l.Manifest = s.Saved.State.Step, s.Saved.State.Tokens, &s.Saved.Checkpoint.Manifest
	}
	for _, id := range l.Manners.EOS {
		l.EOS = append(l.EOS, int32(id))
	}
	if l.Model, err = model.New(d, s.Config, layer.Memory{Split: split}); err != nil {
		return nil, badInput{fmt.Errorf("%s: %w", s.Dir, err)}
	}
	for _, p := range l.Model.Params.List {
		x, err := s.Values(p.Name)
		if rows, cols := p.Whole(); err == nil && len(x) != rows*cols {
			err = fmt.Errorf("%d values for %q do not fit the model's table", len(x), p.Name)
		}
		if err != nil {
			l.Model.Free()
			return nil, badInput{fmt.Errorf("%s: %w", s.Dir, err)}
		}
		l.Model.Params.Set(d, p, p.Take(x))
	}
	return l, nil
}
