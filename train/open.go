package train

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"antiphase/checkpoint"
	"antiphase/device"
	"antiphase/internal/safetensors"
	"antiphase/internal/vfs"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/recipe"
	"antiphase/tokenizer"
)

// Saved is a checkpoint opened for inference.
type Saved struct {
	Recipe     recipe.Recipe
	State      *State
	Checkpoint *checkpoint.Checkpoint
	Tokenizer  *tokenizer.Tokenizer
	Weights    *safetensors.File // kept open, because the run's owner may delete the checkpoint while it is read
}

// Close closes the weights' file.
func (s *Saved) Close() error { return s.Weights.Close() }

// IsRun reports whether dir looks like a run folder or a checkpoint folder.
func IsRun(dir string) bool {
	for _, name := range []string{"checkpoints", "state.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// Open reads the newest complete checkpoint of a run folder, or a checkpoint folder itself. While the run trains, its
// owner deletes checkpoints: if one disappears before it is fully open, Open tries a newer one.
func Open(dir string, warn func(string)) (*Saved, error) { return openFS(vfs.OS{}, dir, warn) }

func openFS(fsys vfs.FS, dir string, warn func(string)) (*Saved, error) {
	var err error
	for range 20 {
		var c *checkpoint.Checkpoint
		if c, err = find(fsys, dir, warn); err != nil {
			return nil, err
		}
		var s *Saved
		if s, err = openCheckpoint(c); err == nil {
			return s, nil
		}
		if _, gone := fsys.Stat(c.Dir); !errors.Is(gone, fs.ErrNotExist) {
			break
		}
	}
	return nil, err
}

func find(fsys vfs.FS, dir string, warn func(string)) (*checkpoint.Checkpoint, error) {
	if vfs.Exists(fsys, filepath.Join(dir, "state.json")) {
		return checkpoint.Load(dir)
	}
	store, err := checkpoint.Open(dir, checkpoint.Options{FS: fsys, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	return store.Latest(warn)
}

func openCheckpoint(c *checkpoint.Checkpoint) (s *Saved, err error) {
	s = &Saved{Checkpoint: c}
	if s.State, err = ReadState(c); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Dir, err)
	}
	if err := s.Recipe.Parse(s.State.Recipe); err != nil {
		return nil, fmt.Errorf("%s: state.json: recipe:%w", c.Dir, err)
	}
	if s.Tokenizer, err = loadTokenizer(c.FS(), c.Path("tokenizer.json")); err != nil {
		return nil, err
	}
	s.Weights, err = openTensors(c, modelName)
	return s, err
}

// Model builds the checkpoint's model on a device, for inference.
func (s *Saved) Model(d device.Device) (*model.Model, error) {
	m, err := model.New(d, s.Recipe.Model, layer.Memory{})
	if err != nil {
		return nil, err
	}
	if err := m.Load(s.Weights); err != nil {
		m.Free()
		return nil, err
	}
	return m, nil
}
