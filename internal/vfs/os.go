package vfs

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// OS is the machine's file system.
type OS struct{}

// Create implements FS.
func (OS) Create(name string) (File, error) { return file(os.Create(name)) }

// OpenFile is os.OpenFile of a regular file, or of a new one. It does not follow a symbolic link in the last part of
// the name, and opens no pipe or device: opening one may never return.
func OpenFile(name string, flag int, perm os.FileMode) (*os.File, error) {
	switch st, err := os.Lstat(name); {
	case err != nil: // opening says why, or creates the file
	case st.Mode()&os.ModeSymlink != 0:
		return nil, fmt.Errorf("%s: %w", name, ErrLink)
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s: %w", name, ErrNotRegular)
	}
	f, err := openHere(name, flag, perm)
	if errors.Is(err, errLoop) { // a link since
		return nil, fmt.Errorf("%s: %w", name, ErrLink)
	}
	return f, err
}

// Append implements FS.
func (OS) Append(name string, size int64) (File, error) {
	f, err := OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(size); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if _, err := f.Seek(size, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Map implements FS.
func (OS) Map(name string) ([]byte, func() error, error) {
	f, err := open(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close() // a mapping outlives its descriptor
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, nil, err
	case !st.Mode().IsRegular():
		return nil, nil, fmt.Errorf("%s: %w", name, ErrNotRegular)
	case st.Size() > math.MaxInt:
		return nil, nil, fmt.Errorf("%s: %d bytes do not fit this machine's address space", name, st.Size())
	case st.Size() == 0: // mmap refuses an empty range
		return nil, func() error { return nil }, nil
	}
	return mapFile(f, int(st.Size()))
}

// Open implements FS.
func (OS) Open(name string) (File, error) { return file(open(name)) }

// open rejects anything but a file before it is opened: opening a pipe may never return, and a device has no end.
func open(name string) (*os.File, error) {
	if st, err := os.Stat(name); err == nil && !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", name, ErrNotRegular)
	}
	return os.Open(name)
}

// file keeps a nil *os.File from becoming a File that is not nil.
func file(f *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Mkdir implements FS.
func (OS) Mkdir(name string) error { return os.Mkdir(name, 0o777) }

// Rename implements FS.
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// Remove implements FS.
func (OS) Remove(name string) error { return os.Remove(name) }

// ReadDir implements FS.
func (OS) ReadDir(name string) ([]string, error) {
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// Stat implements FS.
func (OS) Stat(name string) (Info, error) {
	st, err := os.Lstat(name)
	if err != nil {
		return Info{}, err
	}
	link := st.Mode()&os.ModeSymlink != 0
	if link {
		if target, err := os.Stat(name); err == nil { // a dangling link still exists
			st = target
		}
	}
	odd := !st.IsDir() && !st.Mode().IsRegular() && st.Mode()&os.ModeSymlink == 0
	return Info{Size: st.Size(), Dir: st.IsDir(), Link: link, Odd: odd, Time: st.ModTime()}, nil
}

// SyncDir implements FS.
func (OS) SyncDir(name string) error { return syncDir(name) }

// Free implements FS.
func (OS) Free(name string) (int64, error) {
	n, err := free(name)
	if err != nil {
		return 0, &os.PathError{Op: "free space", Path: name, Err: err}
	}
	return n, nil
}
