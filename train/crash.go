package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"antiphase/internal/vfs"
)

// ErrNotFinite means that a loss or a gradient was NaN or infinite. Nothing of the step was kept.
var ErrNotFinite = errors.New("loss or gradient is not finite")

// crash writes what is needed to repeat the step: its batch and the state before it. The newest checkpoint has the
// weights to start from.
func (t *run) crash(loss, norm float64) error {
	step := t.state.Step + 1
	dir := filepath.Join(t.opt.Dir, fmt.Sprintf("crash-step-%d", step))
	err := fmt.Errorf("train: step %d: %w (loss %v, gradient norm %v); the batch is in %s; a lower learning rate "+
		"(optim.lr) or tighter clipping (optim.clip) often helps",
		step, ErrNotFinite, loss, norm, dir)
	if t.opt.follows() {
		return err
	}
	b, jerr := json.Marshal(map[string]any{
		"step": step, "loss": fmt.Sprint(loss), "grad_norm": fmt.Sprint(norm), "data": t.loader.Before(),
		"recipe": t.recipe, "ids": t.batch.IDs, "targets": t.batch.Targets, "starts": t.starts,
	})
	if jerr == nil {
		jerr = vfs.MkdirAll(t.opt.fs, dir)
	}
	if jerr == nil {
		jerr = vfs.WriteFile(t.opt.fs, filepath.Join(dir, "batch.json"), b)
	}
	return errors.Join(err, jerr)
}
