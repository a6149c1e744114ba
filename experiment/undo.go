package experiment

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"antiphase/data"
	"antiphase/eval"
	"antiphase/internal/flock"
	"antiphase/internal/vfs"
	"antiphase/train"
)

// undone is begin, but an experiment that is refused there leaves the folder as it was, so that the corrected command
// is not taken for another experiment: what is new is deleted, and a folder that had a token set keeps its spec. An
// interrupted call can continue, and of a wrong task, which can still be changed, the tokens are kept.
func undone(ctx context.Context, l *lab) error {
	path := filepath.Join(l.Dir, specName)
	had := data.IsSet(l.set)
	var made []string
	for _, name := range []string{l.set, filepath.Join(l.Dir, tokenizerName), path} {
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			made = append(made, name)
		}
	}
	spec, read := vfs.ReadFile(vfs.OS{}, path, maxSpec)
	err := l.begin(ctx)
	var input *eval.InputError
	switch {
	case err == nil || ctx.Err() != nil || !data.IsSet(l.set): // a folder without a set takes any experiment
		return err
	case had && read == nil:
		return errors.Join(err, vfs.WriteFile(vfs.OS{}, path, spec))
	case errors.As(err, &input):
		return err
	}
	for _, name := range made {
		err = errors.Join(err, vfs.RemoveAll(vfs.OS{}, name))
	}
	return err
}

// interrupted is the error of work that the end of the context interrupted.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(err, train.ErrInterrupted) {
		return fmt.Errorf("%w (%w)", train.ErrInterrupted, err)
	}
	return err
}

// missing are the folders of a path that do not exist, the innermost first.
func missing(dir string) (out []string) {
	for dir = filepath.Clean(dir); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			return out
		}
		out = append(out, dir)
	}
}

// unmake deletes folders that were missing, as far as they hold nothing but the lock of the first.
func unmake(made []string) {
	if len(made) == 0 {
		return
	}
	if list, err := os.ReadDir(made[0]); err == nil && len(list) == 1 && list[0].Name() == flock.Name {
		_ = os.Remove(filepath.Join(made[0], flock.Name))
	}
	for _, dir := range made {
		_ = os.Remove(dir) // fails if anything is in it
	}
}
