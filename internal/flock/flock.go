// Package flock keeps two processes from working on one folder.
//
// [Acquire] takes the operating system's exclusive lock on the folder, if the system can lock folders, and on its LOCK
// file, into which it writes the owner. The system releases both when the process ends in any way, so there are no
// stale locks. Removing the file frees nothing while the folder is locked. Nothing here waits: if the lock is held,
// Acquire fails.
package flock

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"antiphase/internal/vfs"
)

// Name is the lock file's name in the folder.
const Name = "LOCK"

// ErrHeld means that another process, or another part of this one, holds the lock.
var ErrHeld = errors.New("folder is in use")

// Owner identifies the holder of a lock.
type Owner struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"` // when the lock was taken
}

// HeldError is an ErrHeld with the owner. Owner is zero while the holder has not yet written its name.
type HeldError struct {
	Dir   string
	Owner Owner
}

// Error implements error.
func (e *HeldError) Error() string {
	if e.Owner.PID == 0 {
		return fmt.Sprintf("%s: %v by another process", e.Dir, ErrHeld)
	}
	return fmt.Sprintf("%s: %v by process %d on %s since %s", e.Dir, ErrHeld, e.Owner.PID, e.Owner.Host,
		e.Owner.Since.Format(time.RFC3339))
}

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// Lock is a held lock.
type Lock struct {
	f   *os.File // LOCK
	dir *os.File // the folder; nil if folders cannot be locked
}

// Acquire locks the folder dir, which must exist, or returns a *HeldError at once. A LOCK that is not a regular
// file, or a symbolic link to one, is rejected.
func Acquire(dir string) (*Lock, error) {
	f, err := vfs.OpenFile(filepath.Join(dir, Name), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	l := &Lock{f: f}
	taken, err := l.take(dir)
	if err == nil && taken {
		err = writeOwner(f)
	} else if err == nil {
		err = &HeldError{Dir: dir, Owner: readOwner(f)}
	}
	if err != nil {
		l.close()
		return nil, fmt.Errorf("lock: %w", err)
	}
	return l, nil
}

// take locks the folder, then the file.
func (l *Lock) take(dir string) (taken bool, err error) {
	if l.dir, taken, err = lockDir(dir); err != nil || !taken {
		return taken, err
	}
	return tryLock(l.f)
}

// close closes the files, and so releases the locks.
func (l *Lock) close() error {
	err := l.f.Close()
	if l.dir != nil {
		err = errors.Join(err, l.dir.Close())
	}
	return err
}

// Release releases the lock and empties the file. A second call does nothing.
func (l *Lock) Release() error {
	if l.f == nil {
		return nil
	}
	err := errors.Join(l.f.Truncate(0), l.close())
	l.f = nil
	if err != nil {
		return fmt.Errorf("unlock: %w", err)
	}
	return nil
}

func writeOwner(f *os.File) error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	b, err := json.Marshal(Owner{PID: os.Getpid(), Host: host, Since: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(append(b, '\n'), 0)
	return err
}

// readOwner reads as much as there is: the holder may be writing at this moment.
func readOwner(f *os.File) Owner {
	var o Owner
	b, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil || json.Unmarshal(b, &o) != nil {
		return Owner{}
	}
	return o
}
