package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"antiphase/experiment"
	"antiphase/internal/safetensors"
	"antiphase/train"
)

// An existing file is replaced only if it is an output of the same kind, so that a mistyped path destroys nothing.

// replaceable allows writing to path if nothing exists there, or something that same accepts. It is checked before the
// work begins.
func replaceable(path, not string, same func(path string) bool) error {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return hasFolder(path)
	case err != nil:
		return err
	case st.IsDir():
		return usage(fmt.Errorf("%s is a folder; name a file", path))
	case !st.Mode().IsRegular() || st.Size() == 0: // a device or a pipe keeps nothing
		return nil
	case !same(path):
		return usage(fmt.Errorf("%s already exists and %s; name another file, or delete it first", path, not))
	}
	return nil
}

// hasFolder rejects a new file in a folder that does not exist.
func hasFolder(path string) error {
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return usage(fmt.Errorf("%s: there is no folder %s; make it first", path, dir))
	}
	return nil
}

// replaceablePage allows an HTML page of ours.
func replaceablePage(path string) error {
	return replaceable(path, "is not a page of ours", func(path string) bool {
		f, err := os.Open(path)
		if err != nil {
			return false
		}
		defer f.Close()
		b, err := io.ReadAll(io.LimitReader(f, 64<<20))
		return err == nil && bytes.HasPrefix(b, []byte("<!doctype html>")) && bytes.Contains(b, []byte("ntiphase"))
	})
}

// replaceableLogits allows a file that writeLogits wrote.
func replaceableLogits(path string) error {
	return replaceable(path, "holds no logits", func(path string) bool {
		f, err := safetensors.Open(path)
		if err != nil {
			return false
		}
		defer f.Close()
		return slices.Equal(slices.Sorted(slices.Values(f.Names())), []string{"input_ids", "logits"})
	})
}

// clearSpeedrun deletes only what a speedrun made: a folder without its experiment, or with other content under its
// names, is left alone.
func clearSpeedrun(dir string) error {
	names := append(experiment.Files(), "report.json", "runs", "speedrun-seeds.jsonl")
	spec, err := experiment.ReadSpec(dir)
	planned := err == nil && strings.HasPrefix(spec.Name, planPrefix)
	for _, name := range names {
		path := filepath.Join(dir, name)
		st, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if !planned {
			return usage(fmt.Errorf(
				"--fresh: %s holds %s, and no experiment.json that a speedrun writes; name another --dir", dir, name))
		}
		if name == "runs" && !onlyRuns(path) || !st.IsDir() && !st.Mode().IsRegular() {
			return usage(fmt.Errorf("--fresh: %s is not what a speedrun writes; move it away, or name another --dir",
				path))
		}
	}
	// The spec last, so that an interrupted call can be repeated.
	for _, name := range append(names, "experiment.json") {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// onlyRuns reports whether a folder holds only run folders.
func onlyRuns(dir string) bool {
	list, err := os.ReadDir(dir)
	return err == nil && !slices.ContainsFunc(list,
		func(e os.DirEntry) bool { return !begunRun(filepath.Join(dir, e.Name())) })
}

// begunRun reports whether dir is a run folder, even one that was stopped before its first checkpoint.
func begunRun(dir string) bool {
	for _, name := range []string{"recipe.json", "LOCK"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return train.IsRun(dir)
}
