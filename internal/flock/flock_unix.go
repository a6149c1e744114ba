//go:build unix

package flock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes the lock of the open file description: children do not inherit it, because Go opens files
// close-on-exec.
func tryLock(f *os.File) (bool, error) {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		}
		return false, &os.PathError{Op: "flock", Path: f.Name(), Err: err}
	}
}

// lockDir locks the folder itself, which cannot be removed and recreated while its files are in use. If the file system
// cannot lock folders (NFS), dir is nil and only the file is locked.
func lockDir(name string) (dir *os.File, taken bool, err error) {
	d, err := os.Open(name)
	if err != nil {
		return nil, false, err
	}
	taken, err = tryLock(d)
	if err == nil && taken {
		return d, true, nil
	}
	_ = d.Close() // opened for reading only
	return nil, err != nil, nil
}
