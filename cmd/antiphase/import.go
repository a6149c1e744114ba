package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"antiphase/checkpoint"
	"antiphase/internal/safetensors"
	"antiphase/model"
	"antiphase/recipe"
	"antiphase/train"
)

func importVerb(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "import MODEL DIR",
		Short: "Make a run folder of a Hugging Face folder",
		Long: `Import reads a Llama, a DiffLlama, a folder that export wrote or a model of the released modules' layout,
checks every tensor, and writes a run folder with one checkpoint, of step 0: weights in our own
layout in float32, the tokenizer and a recipe. It holds no optimiser's state.

Folders can be used as they are, too: generate, chat, logits, show and export take them as --model.`,
		Example: `  antiphase import ./DiffLlama-375M runs/diffllama
  antiphase import org/model runs/model`,
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error { return a.importModel(args[0], args[1], asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print what was written as JSON")
	return c
}

func (a *app) importModel(from, dir string, asJSON bool) error {
	s, err := a.stored(from)
	if err != nil {
		return err
	}
	defer s.close()
	if s.Tokenizer == nil {
		return badInput{fmt.Errorf("%s has no tokenizer.json, and a run needs one", s.Dir)}
	}
	if names, err := os.ReadDir(dir); err == nil && len(names) > 0 {
		return usage(fmt.Errorf("%s is there already and not empty; name a new folder", dir))
	}
	files, err := s.checkpointFiles(filepath.Base(filepath.Clean(from)))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	store, err := checkpoint.Open(dir, checkpoint.Options{})
	if err != nil {
		return err
	}
	if err := store.Save(0, files); err != nil {
		return err
	}
	n := model.Table(s.Config).Count()
	a.note("wrote %s: %s parameters of %s", dir, count(float64(n)), s.Config.Arch)
	if asJSON {
		return a.json(map[string]any{"dir": dir, "arch": s.Config.Arch, "parameters": n})
	}
	return nil
}

// checkpointFiles are those of a checkpoint that nothing has been trained on yet.
func (s *stored) checkpointFiles(name string) ([]checkpoint.File, error) {
	r, err := recipe.Small(s.Config.Arch)
	if err != nil {
		return nil, err
	}
	r.Name, r.Model = name, s.Config
	r.Tokenizer = recipe.Tokenizer{Vocab: s.Tokenizer.Vocab(), Pattern: r.Tokenizer.Pattern}
	r.Train.SeqLen = min(r.Train.SeqLen, s.Config.Context)
	state, err := json.MarshalIndent(train.State{Format: 1, Recipe: r.JSON()}, "", "  ")
	if err != nil {
		return nil, err
	}
	tok, err := s.Tokenizer.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var entries []safetensors.Entry
	for _, p := range model.Table(s.Config).List {
		entries = append(entries, safetensors.Entry{Name: p.Name, DType: safetensors.F32, Shape: p.Shape(), WriteTo: func(w io.Writer) error {
			x, err := s.Values(p.Name)
			if err != nil {
				return err
			}
			return safetensors.FromFloat32s(p.Name, safetensors.F32, p.Shape(), x).WriteTo(w)
		}})
	}
	bytes := func(b []byte) func(io.Writer) error {
		return func(w io.Writer) error { _, err := w.Write(b); return err }
	}
	return []checkpoint.File{
		{Name: "model.safetensors", Write: func(w io.Writer) error { return safetensors.Write(w, entries, nil) }},
		{Name: "state.json", Write: bytes(state)},
		{Name: "tokenizer.json", Write: bytes(tok)},
	}, nil
}
