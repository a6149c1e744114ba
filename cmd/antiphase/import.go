package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"antiphase/checkpoint"
	"antiphase/internal/safetensors"
	"antiphase/internal/vfs"
	"antiphase/model"
	"antiphase/recipe"
	"antiphase/train"
)

func importVerb(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "import MODEL DIR",
		Short: "Import a Hugging Face folder as a run folder",
		Long: `Import reads a Llama, a DiffLlama, a folder written by export or a model in the layout of the released modules,
checks every tensor, and writes a run folder with one checkpoint at step 0: weights in our own layout in
float32, a recipe, and the folder's tokenizer, sampling defaults, chat template, card and licence. It has no
optimiser state; "antiphase train --from" continues from its weights. The run folder is written completely or
not at all.

Folders can also be used directly: generate, chat, logits, show and export accept them.`,
		Example: `  antiphase import ./DiffLlama-375M runs/diffllama
  antiphase import org/model runs/model`,
		Args: exactly("MODEL", "DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return importModel(cmd.Context(), a, args[0], args[1], asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print what was written as JSON")
	return c
}

func importModel(ctx context.Context, a *app, from, dir string, asJSON bool) error {
	s, err := openStored(ctx, a, from)
	if err != nil {
		return err
	}
	defer s.close()
	if s.Tokenizer == nil {
		return badInput{fmt.Errorf("%s has no tokenizer.json, and a run needs one", s.Dir)}
	}
	if names, err := os.ReadDir(dir); err == nil && len(names) > 0 {
		return usage(fmt.Errorf("%s already exists and is not empty; name a new folder", dir))
	}
	files, err := s.checkpointFiles(filepath.Base(filepath.Clean(from)))
	if err != nil {
		return err
	}
	if err := newRun(dir, files); err != nil {
		return err
	}
	n := model.Table(s.Config).Count()
	a.note("wrote %s: %s parameters of %s", dir, count(float64(n)), s.Config.Arch)
	if asJSON {
		return a.json(map[string]any{"dir": dir, "arch": s.Config.Arch, "parameters": n})
	}
	return nil
}

// newRun creates a run folder with one checkpoint, completely or not at all.
func newRun(dir string, files []checkpoint.File) (err error) {
	fsys, dir := vfs.OS{}, filepath.Clean(dir)
	tmp := vfs.Hidden(dir)
	defer func() {
		if err != nil {
			err = errors.Join(err, vfs.RemoveAll(fsys, tmp))
		}
	}()
	store, err := checkpoint.Open(tmp, checkpoint.Options{})
	if err != nil {
		return err
	}
	if err := store.Save(0, files); err != nil {
		return err
	}
	if err := fsys.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // empty, as importModel checked
		return err
	}
	if err := fsys.Rename(tmp, dir); err != nil {
		return err
	}
	vfs.Sweep(fsys, dir)
	return fsys.SyncDir(filepath.Dir(dir))
}

// checkpointFiles are those of a checkpoint at step 0.
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
	along, err := s.along()
	if err != nil {
		return nil, err
	}
	var entries []safetensors.Entry
	for _, p := range model.Table(s.Config).List {
		entries = append(entries, safetensors.Entry{Name: p.Name, DType: safetensors.F32, Shape: p.Shape(),
			WriteTo: func(w io.Writer) error {
				x, err := s.Values(p.Name)
				if err != nil {
					return err
				}
				return safetensors.FromFloat32s(p.Name, safetensors.F32, p.Shape(), x).WriteTo(w)
			}})
	}
	list := []checkpoint.File{{Name: "model.safetensors",
		Write: func(w io.Writer) error { return safetensors.Write(w, entries, nil) }}}
	along["state.json"] = state
	for name, b := range along {
		list = append(list, checkpoint.File{Name: name,
			Write: func(w io.Writer) error { _, err := w.Write(b); return err }})
	}
	return list, nil
}

// along is what a checkpoint keeps besides weights: the tokenizer and, for a Hugging Face folder, its generation
// settings.
func (s *stored) along() (map[string][]byte, error) {
	if s.Manners.Generation == nil {
		b, err := s.Tokenizer.MarshalJSON()
		return map[string][]byte{"tokenizer.json": b}, err
	}
	files, err := s.carry()
	if err == nil {
		files[generationFile], err = s.Manners.Generation.JSON(s.Manners.Tokens)
	}
	return files, err
}
