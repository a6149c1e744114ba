package checkpoint

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"antiphase/internal/vfs"
)

// Rewind moves checkpoints after step aside, so that a run continued from there does not find the abandoned course.
// Nothing is deleted: each is renamed with .damaged- or .aside-, and the new paths are returned.
func (s *Store) Rewind(step int64) (moved []string, err error) {
	if s.opt.ReadOnly {
		return nil, fmt.Errorf("checkpoint: %s is open for reading only", s.dir)
	}
	steps, err := s.Steps()
	if err != nil {
		return nil, err
	}
	steps = slices.DeleteFunc(steps, func(n int64) bool { return n <= step })
	for _, n := range steps {
		as := ".aside-"
		if _, err := s.load(n); errors.Is(err, ErrDamaged) {
			as = ".damaged-"
		}
		path := s.path(n) + as + vfs.Unique()
		if err := s.fs.Rename(s.path(n), path); err != nil {
			return moved, fmt.Errorf("checkpoint: rewind to step %d: %w", step, err)
		}
		moved = append(moved, path)
	}
	if len(moved) == 0 {
		return nil, nil
	}
	if err := s.fs.SyncDir(s.dir); err != nil {
		return moved, fmt.Errorf("checkpoint: rewind to step %d: %w", step, err)
	}
	return moved, nil
}

// sweep deletes damaged checkpoints of steps before the first kept one. Those that may be intact are left to the user.
func (s *Store) sweep(first int64) error {
	names, err := s.fs.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		parts := setAside.FindStringSubmatch(name)
		if parts == nil || parts[2] != "damaged" {
			continue
		}
		if n, err := strconv.ParseInt(parts[1], 10, 64); err != nil || n >= first {
			continue
		}
		if err := vfs.RemoveAll(s.fs, filepath.Join(s.dir, name)); err != nil {
			return err
		}
	}
	return nil
}
