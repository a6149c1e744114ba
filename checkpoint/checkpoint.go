// Package checkpoint keeps a run's state so that no crash, full disk or rotten bit makes it wrong.
//
// A checkpoint is a folder of files and a manifest with their lengths and hashes. [Store.Save] writes it under a temporary
// name, syncs it, and renames it into place; [Store.Latest] checks hashes and walks back from the newest to the first whole
// one. Whatever happens in between, a reader sees the old state or the new one. Names, bytes and order are the caller's
// business: the package knows nothing of models, optimizers or devices. docs/format/checkpoint.md describes the layout.
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
	// ErrNone says that there is no checkpoint.
	ErrNone = errors.New("no checkpoint")
	// ErrDamaged says that a checkpoint is not what its manifest says. It is of no use to anybody.
	ErrDamaged = errors.New("damaged checkpoint")
	// ErrUnreadable says that the system did not let a checkpoint be read: a permission, a failing disk. It may be whole.
	ErrUnreadable = errors.New("unreadable checkpoint")
	// ErrNewer says that a checkpoint has a later format than this program knows. It may be whole.
	ErrNewer = errors.New("checkpoint of a newer program")
)

// buffers are large, so that hashing and writing take few calls, and kept, so that a save costs no garbage.
var buffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 1<<17) }}

// Checkpoint is one whole checkpoint on disk.
type Checkpoint struct {
	Dir      string
	Step     int64
	Manifest Manifest
	fsys     vfs.FS
}

// Load reads and verifies a checkpoint folder given directly, whatever its name.
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

// systemError is an error of the file system, as opposed to one about what was read.
type systemError struct{ error }

func (e systemError) Unwrap() error { return e.error }

// formatError is a manifest's format that is not ours.
type formatError struct{ error }

// kind tells the three ways in which a checkpoint is not to be had apart.
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

// Path returns where the checkpoint's file name lies.
func (c *Checkpoint) Path(name string) string { return filepath.Join(c.Dir, name) }

// FS is the file system that it lies on.
func (c *Checkpoint) FS() vfs.FS { return c.fsys }

// Verify reads every file and compares its length and hash with the manifest. The error names each file that differs; it is
// an ErrDamaged when one is known to differ, whatever could not be read.
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
	if _, err := buf.ReadFrom(struct{ io.Reader }{f}); err != nil { // a bare Reader: no short cut around the buffer
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
