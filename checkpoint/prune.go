package checkpoint

import (
	"slices"

	"antiphase/internal/vfs"
)

// prune deletes the checkpoints that the options do not keep. Steps after the one just saved are not touched: they
// belong to another course of the run and are handled by Rewind.
func (s *Store) prune(saved int64) error {
	if s.opt.KeepLast == 0 {
		return nil
	}
	steps, err := s.Steps()
	if err != nil {
		return err
	}
	steps = slices.DeleteFunc(steps, func(n int64) bool { return n > saved })
	n := max(0, len(steps)-s.opt.KeepLast)
	if err := s.sweep(steps[n]); err != nil {
		return err
	}
	old, every := steps[:n], int64(s.opt.KeepEvery)
	return s.drop(slices.DeleteFunc(old, func(n int64) bool { return every > 0 && n%every == 0 }))
}

// drop deletes checkpoints. Each is first renamed, durably, so that a crash in between leaves no damaged checkpoint but
// a leftover that Open removes.
func (s *Store) drop(steps []int64) error {
	if len(steps) == 0 {
		return nil
	}
	var doomed []string
	for _, step := range steps {
		path := s.path(step) + ".tmp-" + vfs.Unique()
		if err := s.fs.Rename(s.path(step), path); err != nil {
			return err
		}
		doomed = append(doomed, path)
	}
	if err := s.fs.SyncDir(s.dir); err != nil {
		return err
	}
	for _, path := range doomed {
		if err := vfs.RemoveAll(s.fs, path); err != nil {
			return err
		}
	}
	return nil
}
