package hf

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"antiphase/internal/vfs"
)

// publish makes a folder of files appear at once: everything is written and synced beside it, then renamed. What fails
// leaves nothing behind, and a folder that was there stays as it was.
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
		return fmt.Errorf("is there already and not empty: %w", fs.ErrExist)
	}
	if err := vfs.MkdirAll(fsys, filepath.Dir(dir)); err != nil {
		return err
	}
	tmp := aside(dir)
	if err = stage(fsys, tmp, files); err == nil {
		err = exchange(fsys, tmp, dir)
	}
	if err != nil {
		return errors.Join(err, vfs.RemoveAll(fsys, tmp))
	}
	return nil
}

// aside is a hidden name beside dir that nobody else has.
func aside(dir string) string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+".tmp-"+hex.EncodeToString(b[:]))
}

// occupied says that something worth keeping is at dir.
func occupied(fsys vfs.FS, dir string) (bool, error) {
	info, err := fsys.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.Dir || info.Link:
		return false, fmt.Errorf("is there already and is not a folder: %w", fs.ErrInvalid)
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
	for _, f := range files {
		if err := writeOne(fsys, filepath.Join(tmp, f.name), f); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return fsys.SyncDir(tmp)
}

func writeOne(fsys vfs.FS, path string, f file) error {
	out, err := fsys.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(out, 1<<20)
	if err = f.write(w); err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// exchange gives tmp the name dir. What is there makes way first and is deleted last.
func exchange(fsys vfs.FS, tmp, dir string) error {
	old := ""
	if _, err := fsys.Stat(dir); err == nil {
		old = aside(dir)
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
	return vfs.RemoveAll(fsys, old)
}
