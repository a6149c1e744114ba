package train

import (
	"fmt"

	"antiphase/model"
	"antiphase/recipe"
)

// checkpointBytes is the size of a checkpoint of the recipe: weights and two moments in float32, plus some for the
// other files.
func (t *run) checkpointBytes() int64 {
	const others = 64 << 10
	return 12*int64(model.Table(t.recipe.Model).Count()) + others
}

// room refuses a run without disk space for the checkpoints that will exist at the same time, less those that exist.
// These are train.keep_last and the one being written: only one save is in flight, next to training or not, and it
// deletes what is no longer kept before the next begins. A run that writes fewer needs no more than it writes.
func (t *run) room(c *saved) error {
	if c != nil && c.state.Step >= t.recipe.Train.Steps {
		return nil // nothing will be written
	}
	step := 0
	if c != nil {
		step = c.state.Step
	}
	have, err := t.store.Steps()
	if err != nil {
		return err
	}
	keep := t.recipe.Train.KeepLast
	n := max(min(keep+1, len(have)+savesAfter(step, t.recipe.Train, t.opt))-len(have), 1)
	if err := t.store.CheckSpace(n, t.checkpointBytes()); err != nil {
		return fmt.Errorf("train: %w; train.keep_last=%d: keep fewer, or free some room", err, keep)
	}
	return nil
}

// savesAfter is the number of checkpoints that a run writes after a step: every train.save_every steps, and the last.
// Where saves can be requested or are due by age there may be any number of others; two are counted.
func savesAfter(step int, r recipe.Train, opt *Options) int {
	n := 1
	if r.SaveEvery > 0 {
		n = (r.Steps-1)/r.SaveEvery - step/r.SaveEvery + 1
	}
	if opt.Save != nil || opt.SaveAfter > 0 {
		n += 2
	}
	return n
}
