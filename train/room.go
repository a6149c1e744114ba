package train

import (
	"fmt"

	"antiphase/model"
)

// checkpointBytes is the size of a checkpoint of the recipe: weights and two moments in float32, plus some for the
// other files.
func (t *run) checkpointBytes() int64 {
	const others = 64 << 10
	return 12*int64(model.Table(t.recipe.Model).Count()) + others
}

// room refuses a run without disk space for its checkpoints: train.keep_last of them and the one being written, less
// those that exist.
func (t *run) room(c *saved) error {
	if c != nil && c.state.Step >= t.recipe.Train.Steps {
		return nil // nothing will be written
	}
	have, err := t.store.Steps()
	if err != nil {
		return err
	}
	n := max(t.recipe.Train.KeepLast+1-len(have), 1)
	if err := t.store.CheckSpace(n, t.checkpointBytes()); err != nil {
		return fmt.Errorf("train: %w; train.keep_last=%d: keep fewer, or free some room", err, t.recipe.Train.KeepLast)
	}
	return nil
}
