package train

import (
	"fmt"
	"os"
	"path/filepath"

	"antiphase/checkpoint"
	"antiphase/device"
	"antiphase/internal/safetensors"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/recipe"
	"antiphase/tokenizer"
)

// Saved is a checkpoint opened for use rather than for training.
type Saved struct {
	Recipe     recipe.Recipe
	State      *State
	Checkpoint *checkpoint.Checkpoint
	Tokenizer  *tokenizer.Tokenizer
}

// IsRun says whether dir looks like a run folder or a checkpoint folder.
func IsRun(dir string) bool {
	for _, name := range []string{"checkpoints", "state.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// Open reads the newest whole checkpoint of a run folder, or a checkpoint folder itself.
func Open(dir string, warn func(string)) (*Saved, error) {
	var c *checkpoint.Checkpoint
	var err error
	if _, e := os.Stat(filepath.Join(dir, "state.json")); e == nil {
		c, err = checkpoint.Load(dir)
	} else {
		var store *checkpoint.Store
		if store, err = checkpoint.Open(dir, checkpoint.Options{ReadOnly: true}); err == nil {
			c, err = store.Latest(warn)
		}
	}
	if err != nil {
		return nil, err
	}
	s := &Saved{Checkpoint: c}
	if s.State, err = ReadState(c); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Dir, err)
	}
	if err := s.Recipe.Parse(s.State.Recipe); err != nil {
		return nil, fmt.Errorf("%s: state.json: recipe:%w", c.Dir, err)
	}
	s.Tokenizer, err = tokenizer.Load(c.Path("tokenizer.json"))
	return s, err
}

// Model builds the checkpoint's model on a device, for inference.
func (s *Saved) Model(d device.Device) (*model.Model, error) {
	m, err := model.New(d, s.Recipe.Model, layer.Memory{})
	if err != nil {
		return nil, err
	}
	f, err := safetensors.Open(s.Checkpoint.Path("model.safetensors"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return m, m.Load(f)
}
