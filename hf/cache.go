package hf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"antiphase/internal/vfs"
)

// hubName is ORG/NAME or ORG/NAME@REVISION, as the Hub allows them.
var hubName = regexp.MustCompile(
	`^([A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*)(@([A-Za-z0-9][A-Za-z0-9._/-]*))?$`)

// IsHubName reports whether a name could be that of a model on the Hub.
func IsHubName(name string) bool { return hubName.MatchString(name) && !strings.Contains(name, "..") }

// Cached finds a model of the Hub in the local cache of Hugging Face's tools. The default revision is refs/main.
// Nothing is downloaded.
func Cached(name string) (dir string, err error) {
	m := hubName.FindStringSubmatch(name)
	if m == nil || !IsHubName(name) {
		return "", fmt.Errorf("%q is not a name like org/model", name)
	}
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	at := filepath.Join(cache, "models--"+strings.ReplaceAll(m[1], "/", "--"))
	if _, err := os.Stat(at); err != nil {
		return "", fmt.Errorf("model %s is not in the cache %s; \"hf download %s\" fetches it: %w", m[1], cache, m[1],
			fs.ErrNotExist)
	}
	revision := m[3]
	if revision == "" {
		revision = "main"
	}
	commit, err := commitOf(at, revision)
	if err != nil {
		return "", fmt.Errorf("model %s in the cache %s: %w", m[1], cache, err)
	}
	return filepath.Join(at, "snapshots", commit), nil
}

// cacheDir is where Hugging Face's tools store models: HF_HUB_CACHE, else hub below HF_HOME, else below the user's
// cache.
func cacheDir() (string, error) {
	if dir := os.Getenv("HF_HUB_CACHE"); dir != "" {
		return dir, nil
	}
	if home := os.Getenv("HF_HOME"); home != "" {
		return filepath.Join(home, "hub"), nil
	}
	if cache := os.Getenv("XDG_CACHE_HOME"); cache != "" {
		return filepath.Join(cache, "huggingface", "hub"), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".cache", "huggingface", "hub"), err
}

// commitOf is the snapshot of a revision: a branch or tag by its file in refs, or the commit itself.
func commitOf(at, revision string) (string, error) {
	b, err := vfs.ReadFile(vfs.OS{}, filepath.Join(at, "refs", filepath.FromSlash(revision)), 1<<10)
	commit := strings.TrimSpace(string(b))
	if errors.Is(err, fs.ErrNotExist) {
		commit, err = revision, nil
	}
	if err != nil {
		return "", err
	}
	if !filepath.IsLocal(commit) || strings.ContainsAny(commit, "/\\\x00") {
		return "", fmt.Errorf("revision %q points to %q, which is not a snapshot's name", revision, commit)
	}
	if st, err := os.Stat(filepath.Join(at, "snapshots", commit)); err != nil || !st.IsDir() {
		return "", fmt.Errorf("there is no snapshot of revision %q: %w", revision, fs.ErrNotExist)
	}
	return commit, nil
}
