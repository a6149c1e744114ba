package hf

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"antiphase/internal/vfs"
)

// errForeign is a folder that may not be replaced.
var errForeign = errors.New("not replaced: it is not an untouched export; delete it yourself, or name another folder")

// publish creates a folder of files atomically: everything is written and synced in a temporary folder next to it, then
// renamed. On failure nothing is left and an existing folder is unchanged. Only an unmodified export is ever replaced.
func publish(fsys vfs.FS, dir string, files []file, replace bool) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	there, err := occupied(fsys, dir)
	if err != nil {
		return err
	}
	if there && !replace {
		return fmt.Errorf("already exists and is not empty: %w", fs.ErrExist)
	}
	var old Manifest
	if there {
		if old, err = ours(fsys, dir); err != nil {
			return fmt.Errorf("%w: %w (%w)", err, errForeign, fs.ErrInvalid)
		}
	}
	if err := vfs.MkdirAll(fsys, filepath.Dir(dir)); err != nil {
		return err
	}
	tmp := vfs.Hidden(dir)
	if err = stage(fsys, tmp, files); err == nil {
		err = exchange(fsys, tmp, dir, old)
	}
	if err != nil {
		return errors.Join(err, vfs.RemoveAll(fsys, tmp))
	}
	vfs.Sweep(fsys, dir)
	return nil
}

// occupied reports whether dir has content worth keeping.
func occupied(fsys vfs.FS, dir string) (bool, error) {
	info, err := fsys.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.Dir || info.Link:
		return false, fmt.Errorf("already exists and is not a folder: %w", fs.ErrInvalid)
	}
	names, err := fsys.ReadDir(dir)
	return len(names) > 0, err
}

// stage writes the files into the new folder tmp and makes them durable.
func stage(fsys vfs.FS, tmp string, files []file) error {
	if err := fsys.Mkdir(tmp); err != nil {
		return err
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	var m Manifest
	for _, f := range files {
		h, err := writeOne(fsys, tmp, f)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		m.Files = append(m.Files, h)
	}
	b, err := m.render()
	if err != nil {
		return err
	}
	if _, err := writeOne(fsys, tmp, file{ManifestFile, contents(b)}); err != nil {
		return fmt.Errorf("%s: %w", ManifestFile, err)
	}
	return fsys.SyncDir(tmp)
}

// writeOne writes a file durably and returns its hash.
func writeOne(fsys vfs.FS, dir string, f file) (Hash, error) {
	out, err := fsys.Create(filepath.Join(dir, f.name))
	if err != nil {
		return Hash{}, err
	}
	sum := vfs.NewSum(out)
	w := bufio.NewWriterSize(sum, 1<<20)
	if err = f.write(w); err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = out.Sync()
	}
	return Hash{Name: f.name, Bytes: sum.Bytes, SHA256: sum.SHA256()}, errors.Join(err, out.Close())
}

// exchange renames tmp to dir. The existing export is moved aside first and deleted last, file by file.
func exchange(fsys vfs.FS, tmp, dir string, was Manifest) error {
	old := ""
	if _, err := fsys.Stat(dir); err == nil {
		old = vfs.Hidden(dir)
		if err := fsys.Rename(dir, old); err != nil {
			return err
		}
	}
	if err := fsys.Rename(tmp, dir); err != nil {
		if old != "" {
			err = errors.Join(err, fsys.Rename(old, dir))
		}
		return err
	}
	if err := fsys.SyncDir(filepath.Dir(dir)); err != nil || old == "" {
		return err
	}
	return was.remove(fsys, old)
}
