package data

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// reusable returns the manifest of the set in dir if it was made from the same inputs and is whole. It fails where
// dir holds something that a build must not replace.
func reusable(dir, inputs string) (*Manifest, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && len(entries) == 0) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("data: build: %w", err)
	}
	m, err := ReadManifest(dir)
	if err != nil {
		return nil, fmt.Errorf("data: build: folder %s is not empty and holds no readable set, so it is left alone; name a new or empty folder (%w)", dir, err)
	}
	for _, e := range entries {
		listed := slices.ContainsFunc(m.Shards, func(s ShardInfo) bool { return s.Name == e.Name() })
		if !listed && e.Name() != manifestName && e.Name() != TokenizerName {
			return nil, fmt.Errorf("data: build: folder %s holds %q, which is no part of its set, so it is left alone; move that away or name another folder", dir, e.Name())
		}
	}
	if inputs == "" || m.Inputs != inputs {
		return nil, nil
	}
	s, err := OpenSet(dir, false)
	if err != nil {
		return nil, nil // damaged: the same inputs make it whole again
	}
	return m, s.Close()
}

// finish orders the shards, computes totals and digest, and stores the manifest.
func (b *builder) finish() error {
	m := b.m
	slices.SortFunc(m.Shards, func(x, y ShardInfo) int { return strings.Compare(x.Name, y.Name) })
	for _, s := range m.Shards {
		m.Docs += s.Docs
		m.Tokens += s.Tokens
	}
	m.Hash = m.contentHash()
	if b.opt.Tokenizer != nil {
		if err := os.WriteFile(filepath.Join(b.dir, TokenizerName), b.opt.Tokenizer, 0o644); err != nil {
			return fmt.Errorf("data: build: %w", err)
		}
	}
	if err := m.write(b.dir); err != nil {
		return err
	}
	return syncDir(b.dir)
}

// replace puts the finished folder tmp in dir's place. An older set is moved aside first and removed last: at every
// moment dir is the old set, nothing, or the new one.
func replace(dir, tmp string) error {
	old := tmp + ".old"
	err := os.Rename(dir, old)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("data: build: %w", err)
	}
	if err := os.Rename(tmp, dir); err != nil {
		return fmt.Errorf("data: build: %w", errors.Join(err, os.Rename(old, dir)))
	}
	if err := syncDir(filepath.Dir(dir)); err != nil {
		return fmt.Errorf("data: build: %w", err)
	}
	if err := os.RemoveAll(old); err != nil {
		return fmt.Errorf("data: build: %w", err)
	}
	return nil
}
