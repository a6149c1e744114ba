// Package checkpoint stores a run's state so that no crash, full disk or flipped bit corrupts it.
//
// A checkpoint is a folder of files and a manifest with their lengths and hashes. [Store.Save] writes it under a
// temporary name, syncs it, and renames it into place; [Store.Latest] checks hashes and searches back from the newest
// to the first complete one. At any time a reader sees either the old state or the new one. The caller chooses names,
// bytes and order of the files: the package knows nothing of models, optimizers or devices. docs/format/checkpoint.md
// describes the layout.
package checkpoint

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sync"

	"antiphase/internal/vfs"
)

var (
	// ErrNone means that there is no checkpoint.
	ErrNone = errors.New("no checkpoint")
	// ErrDamaged means that a checkpoint does not match its manifest and is useless.
	ErrDamaged = errors.New("damaged checkpoint")
	// ErrUnreadable means that the system could not read a checkpoint: a permission, a failing disk. It may be intact.
	ErrUnreadable = errors.New("unreadable checkpoint")
	// ErrNewer means that a checkpoint has a later format than this version supports. It may be intact.
	ErrNewer = errors.New("checkpoint of a newer program")
)

// buffers are large, so that hashing and writing take few calls, and pooled, so that a save creates no garbage.
var buffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 1<<17) }}

// Checkpoint is one complete checkpoint on disk.
type Checkpoint struct {
	Dir      string
	Step     int64
	Manifest Manifest
	fsys     vfs.FS
}

// Load reads and verifies a checkpoint folder given by path, regardless of its name.
func Load(dir string) (*Checkpoint, error) { return load(vfs.OS{}, dir) }

func load(fsys vfs.FS, dir string) (*Checkpoint, error) {
	switch _, err := fsys.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("checkpoint: %w", err)
	case err != nil:
		return nil, fmt.Errorf("%w %s: %w", ErrUnreadable, dir, err)
	}
	m, err := readManifest(fsys, filepath.Join(dir, manifestName))
	if err != nil {
		return nil, fmt.Errorf("%w %s: %s: %w", kind(err), dir, manifestName, err)
	}
	c := &Checkpoint{Dir: dir, Step: m.Step, Manifest: m, fsys: fsys}
	if err := c.Verify(); err != nil {
		return nil, err
	}
	return c, nil
}

// systemError is an error of the file system, as opposed to one about the contents.
type systemError struct{ error }

func (e systemError) Unwrap() error { return e.error }

// formatError reports a manifest with a different format.
type formatError struct{ error }

// kind distinguishes the three ways in which a checkpoint cannot be loaded.
func kind(err error) error {
	var s systemError
	var f formatError
	switch {
	case errors.As(err, &s):
		return ErrUnreadable
	case errors.As(err, &f):
		return ErrNewer
	}
	return ErrDamaged
}

// Path returns the path of one of the checkpoint's files.
func (c *Checkpoint) Path(name string) string { return filepath.Join(c.Dir, name) }

// FS is the checkpoint's file system.
func (c *Checkpoint) FS() vfs.FS { return c.fsys }

// Verify reads every file and compares its length and hash with the manifest. The error names each file that differs.
// It is an ErrDamaged if one is known to differ, even if others could not be read.
func (c *Checkpoint) Verify() error {
	var bad error
	worst := ErrUnreadable
	for _, e := range c.Manifest.Files {
		if err := c.verify(e); err != nil {
			bad = join(bad, fmt.Errorf("%s: %w", e.Name, err))
			if kind(err) == ErrDamaged {
				worst = ErrDamaged
			}
		}
	}
	if bad != nil {
		return fmt.Errorf("%w %s: %w", worst, c.Dir, bad)
	}
	return nil
}

// join is errors.Join on one line.
func join(a, b error) error {
	if a == nil {
		return b
	}
	return fmt.Errorf("%w; %w", a, b)
}

func (c *Checkpoint) verify(e Entry) error {
	info, err := c.fsys.Stat(c.Path(e.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("the file is missing")
	}
	if err != nil {
		return systemError{err}
	}
	if info.Size != e.Bytes {
		return fmt.Errorf("%d bytes, the manifest says %d", info.Size, e.Bytes)
	}
	f, err := c.fsys.Open(c.Path(e.Name))
	if err != nil {
		return systemError{err}
	}
	defer f.Close()
	h := sha256.New()
	buf := buffers.Get().(*bufio.Writer)
	defer buffers.Put(buf)
	buf.Reset(h)
	// A bare Reader, so that ReadFrom does not bypass the buffer.
	if _, err := buf.ReadFrom(struct{ io.Reader }{f}); err != nil {
		return systemError{err}
	}
	if err := buf.Flush(); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != e.SHA256 {
		return fmt.Errorf("sha256 %s, the manifest says %s", got, e.SHA256)
	}
	return nil
}
