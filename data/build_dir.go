package data

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"antiphase/internal/vfs"
)

// reusable returns the manifest of the set in dir if it was made from the same inputs and is complete. It fails if dir
// holds something that a build must not replace.
func reusable(fsys vfs.FS, dir, inputs string) (*Manifest, error) {
	names, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && len(names) == 0) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("data: build: %w", err)
	}
	m, err := ReadManifestFS(fsys, dir)
	if err != nil {
		return nil, fmt.Errorf("data: build: folder %s is not empty and holds no readable set, so it is left alone; "+
			"name a new or empty folder (%w)", dir, err)
	}
	for _, name := range names {
		listed := slices.ContainsFunc(m.Shards, func(s ShardInfo) bool { return s.Name == name })
		if !listed && name != manifestName && name != TokenizerName {
			return nil, fmt.Errorf("data: build: folder %s holds %q, which is not part of its set, so it is left "+
				"alone; move that away or name another folder", dir, name)
		}
	}
	if inputs == "" || m.Inputs != inputs {
		return nil, nil
	}
	s, err := OpenSetFS(fsys, dir, false)
	if err != nil {
		return nil, nil // damaged: a build from the same inputs restores it
	}
	return m, s.Close()
}

// finish sorts the shards, computes totals and digest, and writes the manifest.
func (b *builder) finish() error {
	m := b.m
	slices.SortFunc(m.Shards, func(x, y ShardInfo) int { return strings.Compare(x.Name, y.Name) })
	for _, s := range m.Shards {
		m.Docs += s.Docs
		m.Tokens += s.Tokens
	}
	m.Hash = m.contentHash()
	if b.opt.Tokenizer != nil {
		if err := b.writeNew(TokenizerName, b.opt.Tokenizer); err != nil {
			return err
		}
	}
	file, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("data: manifest: %w", err)
	}
	if err := b.writeNew(manifestName, append(file, '\n')); err != nil {
		return err
	}
	if err := b.opt.FS.SyncDir(b.dir); err != nil {
		return fmt.Errorf("data: build: %w", err)
	}
	return nil
}

// writeNew adds a small file to the set, durably.
func (b *builder) writeNew(name string, text []byte) error {
	write := func(w io.Writer) error { _, err := w.Write(text); return err }
	if err := vfs.WriteNew(b.opt.FS, filepath.Join(b.dir, name), write); err != nil {
		return fmt.Errorf("data: build: %w", err)
	}
	return nil
}

// replace moves the finished folder tmp to dir. An older set is moved aside first and removed last: at every moment dir
// is the old set, absent, or the new one.
func replace(fsys vfs.FS, dir, tmp string) error {
	old := tmp + ".old"
	err := fsys.Rename(dir, old)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("data: build: %w", err)
	}
	if err := fsys.Rename(tmp, dir); err != nil {
		return fmt.Errorf("data: build: %w", errors.Join(err, fsys.Rename(old, dir)))
	}
	if err := fsys.SyncDir(filepath.Dir(dir)); err != nil {
		return fmt.Errorf("data: build: %w", err)
	}
	if err := vfs.RemoveAll(fsys, old); err != nil {
		return fmt.Errorf("data: build: %w", err)
	}
	return nil
}
