package flock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// tryLock locks one byte far past the owner's text: locks are mandatory here, and the text must remain readable.
func tryLock(f *os.File) (bool, error) {
	far := windows.Overlapped{OffsetHigh: 1 << 30}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, &far)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION), errors.Is(err, windows.ERROR_IO_PENDING):
		return false, nil
	}
	return false, &os.PathError{Op: "LockFileEx", Path: f.Name(), Err: err}
}

// lockDir does nothing: an open file cannot be removed here.
func lockDir(string) (*os.File, bool, error) { return nil, true, nil }
