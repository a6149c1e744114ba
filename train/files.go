package train

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"antiphase/internal/vfs"
	"antiphase/tokenizer"
)

// stale are temporary files of a run folder that a killed process left. Only the folder's owner creates them.
var stale = []string{"data.tmp-", "recipe.json.tmp-", "tokenizer.json.tmp-", "tokenizer.json.origin.tmp-"}

// sweep deletes them as far as it can; the caller holds the folder's lock.
func sweep(fsys vfs.FS, dir string) {
	names, _ := fsys.ReadDir(dir) // a folder that cannot be listed cannot be swept
	for _, name := range names {
		if slices.ContainsFunc(stale, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			_ = vfs.RemoveAll(fsys, filepath.Join(dir, name))
		}
	}
}

// loadTokenizer reads a file, or returns the byte tokenizer.
func loadTokenizer(fsys vfs.FS, path string) (*tokenizer.Tokenizer, error) {
	if path == "bytes" {
		return tokenizer.Bytes(), nil
	}
	b, err := vfs.ReadFile(fsys, path, tokenizer.MaxFile)
	if err != nil {
		return nil, fmt.Errorf("load tokenizer: %w", err)
	}
	t, err := tokenizer.Parse(b)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	return t, nil
}
