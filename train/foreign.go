package train

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"antiphase/internal/flock"
	"antiphase/internal/vfs"
	"antiphase/metrics"
	"antiphase/recipe"
)

// ErrForeign means that a run would replace a file that no run wrote.
var ErrForeign = errors.New("was not written by a run and would be replaced")

// foreign refuses to begin a run over files of the user that have a run's names. A folder with a LOCK or a checkpoint
// is a run's. So is a recipe.json that reads back to the same bytes, and metrics.jsonl beside it, which is written
// later.
func foreign(r recipe.Recipe, opt *Options) error {
	if _, err := os.Lstat(filepath.Join(opt.Dir, flock.Name)); err == nil {
		return nil
	}
	if hasCheckpoint(opt) {
		return nil
	}
	there := func(name string) bool { _, err := opt.fs.Stat(filepath.Join(opt.Dir, name)); return err == nil }
	began := ownRecipe(opt.fs, filepath.Join(opt.Dir, "recipe.json"))
	var name string
	switch {
	case there("recipe.json") && !began:
		name = "recipe.json"
	case there(metrics.FileName) && !began:
		name = metrics.FileName
	case r.Tokenizer.Path == "" && opt.Tokenizer == "" && there("tokenizer.json") && !there("tokenizer.json.origin"):
		name = "tokenizer.json"
	default:
		return nil
	}
	return fmt.Errorf("train: %s %w; move it away, or name another run folder",
		filepath.Join(opt.Dir, name), ErrForeign)
}

// hasCheckpoint reports whether the run folder holds a checkpoint, whole or not.
func hasCheckpoint(opt *Options) bool {
	found, _ := vfs.Glob(opt.fs, filepath.Join(opt.Dir, "checkpoints"), "step-*")
	return len(found) > 0
}

// ownRecipe reports whether a file is a complete recipe as runs write it.
func ownRecipe(fsys vfs.FS, path string) bool {
	b, err := vfs.ReadFile(fsys, path, maxState)
	if err != nil {
		return false
	}
	var r recipe.Recipe
	return r.Parse(b) == nil && string(r.JSON()) == string(b)
}
