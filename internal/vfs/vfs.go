// Package vfs is the interface between code that must survive a crash and the file system.
//
// Code under test takes an [FS]; [OS] is the real one. The test doubles are in vfstest: an in-memory file system that
// forgets what was not synced, and a wrapper that fails or observes any operation. The interface has only what a
// careful writer needs, so that every step a crash can fall between is one call.
package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"
)

// ErrLink means that a name that must be a file is a symbolic link.
var ErrLink = errors.New("is a symbolic link, and would be written through")

// ErrNotRegular means that a name is a folder, a device or a pipe instead of a file.
var ErrNotRegular = errors.New("is not a regular file")

// ErrTooLarge means that a file is larger than any of its kind.
var ErrTooLarge = errors.New("too large")

// FS is a file system. Paths are those of package os; errors satisfy errors.Is with fs.ErrNotExist and fs.ErrExist.
type FS interface {
	// Create makes a file or empties the one there, for writing.
	Create(name string) (File, error)
	// Append opens a file for writing and truncates it to size bytes, or creates it if there is none and size is 0. It
	// does not follow a symbolic link in the last part of the name.
	Append(name string, size int64) (File, error)
	// Open opens a file for reading.
	Open(name string) (File, error)
	// Map returns the bytes of a regular file, mapped if the system can, until unmap is called. They must not be
	// written to.
	Map(name string) (b []byte, unmap func() error, err error)
	// Mkdir makes one folder; its parent must exist and it must not.
	Mkdir(name string) error
	// Rename moves a file or folder within its own folder, atomically with respect to crashes. It replaces a file
	// there, and fails if there is a non-empty folder.
	Rename(from, to string) error
	// Remove deletes a file or an empty folder.
	Remove(name string) error
	// ReadDir returns the sorted names in a folder.
	ReadDir(name string) ([]string, error)
	// Stat describes a file or folder, or the target of a symbolic link.
	Stat(name string) (Info, error)
	// SyncDir makes a folder's names durable: creations, renames and removals in it. File.Sync does that for contents.
	SyncDir(name string) error
	// Free returns the bytes that may still be written to the volume holding name.
	Free(name string) (int64, error)
}

// File is an open file.
type File interface {
	io.Reader
	io.Writer
	io.WriterAt // of a file from Create or Append
	io.Closer
	// Sync makes the contents durable. After an error the contents are lost: write them again to a new file.
	Sync() error
}

// Info is the result of Stat.
type Info struct {
	Size int64
	Dir  bool
	Link bool      // name is a symbolic link
	Odd  bool      // it is neither a regular file nor a folder: a device, a pipe or a socket
	Time time.Time // of the last change
}

// MkdirAll makes a folder and its missing parents, and makes each new name durable.
func MkdirAll(fsys FS, name string) error {
	switch info, err := fsys.Stat(name); {
	case err == nil && info.Dir:
		return nil
	case err == nil:
		return fmt.Errorf("%s is a file where a folder belongs (%w)", name, syscall.ENOTDIR)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	parent := filepath.Dir(name)
	if parent == name {
		return fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	if err := MkdirAll(fsys, parent); err != nil {
		return err
	}
	if err := fsys.Mkdir(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return fsys.SyncDir(parent)
}

// RemoveAll deletes a file or a folder with everything in it; if nothing exists that is not an error. A symbolic link
// is deleted, never followed.
func RemoveAll(fsys FS, name string) error {
	info, err := fsys.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Dir && !info.Link {
		names, err := fsys.ReadDir(name)
		if err != nil {
			return err
		}
		for _, n := range names {
			if err := RemoveAll(fsys, filepath.Join(name, n)); err != nil {
				return err
			}
		}
	}
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
