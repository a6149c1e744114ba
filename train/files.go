package train

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"antiphase/internal/vfs"
)

// writeFile replaces a small file whole, durably, and through no symbolic link.
func writeFile(path string, b []byte) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, filepath.Base(path)+".tmp-")
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err == nil {
		err = vfs.OS{}.SyncDir(dir)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // else the next sweep does it
		return fmt.Errorf("train: %w", err)
	}
	return nil
}

// stale are the temporaries of a run folder that an earlier process left when it was killed. Its owner alone makes them.
var stale = []string{"data.tmp-*", "recipe.json.tmp-*", "tokenizer.json.tmp-*", "tokenizer.json.origin.tmp-*"}

// sweep deletes them, as far as it can; whoever calls it holds the folder's lock.
func sweep(dir string) {
	for _, pattern := range stale {
		found, _ := filepath.Glob(filepath.Join(dir, pattern)) // the patterns are well formed
		for _, path := range found {
			_ = vfs.RemoveAll(vfs.OS{}, path)
		}
	}
}
