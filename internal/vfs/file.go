package vfs

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Or is fsys, or the machine's file system if it is nil.
func Or(fsys FS) FS {
	if fsys == nil {
		return OS{}
	}
	return fsys
}

// ReadFile returns the contents of a file of at most limit bytes.
func ReadFile(fsys FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1)) // a device has no end
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%s: %w: more than %d bytes", name, ErrTooLarge, limit)
	}
	return b, nil
}

// WriteFile replaces the contents of a file by b, durably: a crash leaves the old file or the new one. A symbolic link
// to a file is replaced, not followed. A device or a pipe is not replaced: that is an ErrNotRegular.
func WriteFile(fsys FS, name string, b []byte) error {
	return Write(fsys, name, func(w io.Writer) error { _, err := w.Write(b); return err })
}

// Write is WriteFile of what write streams. Until the rename the contents are in a temporary file next to it, see
// Temporary.
func Write(fsys FS, name string, write func(io.Writer) error) error {
	switch info, err := fsys.Stat(name); {
	case err == nil && info.Odd:
		return fmt.Errorf("%s: %w", name, ErrNotRegular)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	tmp := Temporary(name)
	err := WriteNew(fsys, tmp, write)
	if err == nil {
		err = fsys.Rename(tmp, name)
	}
	if err != nil {
		_ = fsys.Remove(tmp) // otherwise the owner's sweep does it
		return named(err, tmp, name)
	}
	return fsys.SyncDir(filepath.Dir(name))
}

// named makes an error refer to name instead of its temporary, which the caller does not know.
func named(err error, tmp, name string) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok && p.Path == tmp {
		p.Path = name
	}
	if l, ok := errors.AsType[*os.LinkError](err); ok && l.Old == tmp {
		return &fs.PathError{Op: l.Op, Path: name, Err: l.Err}
	}
	return err
}

// WriteNew streams a new file and syncs its contents; SyncDir must make its name durable. A failed sync is not retried:
// the kernel may have dropped the pages.
func WriteNew(fsys FS, name string, write func(io.Writer) error) error {
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Temporary is a unique name next to name: name.tmp- and 16 hexadecimal digits.
func Temporary(name string) string { return name + ".tmp-" + Unique() }

// Hidden is such a name that listings do not show: .name.tmp- and the digits.
func Hidden(name string) string {
	return Temporary(filepath.Join(filepath.Dir(name), "."+filepath.Base(name)))
}

// idle is the time without changes after which a temporary belongs to a killed process. A live process writes to it all
// the time.
const idle = 10 * time.Minute

var temporary = regexp.MustCompile(`^\.tmp-[0-9a-f]{16}(\.old)?$`)

// Sweep deletes the temporaries of name, hidden or not, that killed processes left, as far as it can.
func Sweep(fsys FS, name string) {
	dir, base := filepath.Split(filepath.Clean(name))
	if dir == "" {
		dir = "."
	}
	names, _ := fsys.ReadDir(dir) // a folder that cannot be listed cannot be swept
	for _, n := range names {
		rest, ours := strings.CutPrefix(n, base)
		if !ours {
			rest, ours = strings.CutPrefix(n, "."+base)
		}
		if path := filepath.Join(dir, n); ours && temporary.MatchString(rest) &&
			time.Since(touched(fsys, path)) > idle {
			_ = RemoveAll(fsys, path)
		}
	}
}

// touched is when a file, or any file in a folder, was last changed; now if that is unknown.
func touched(fsys FS, name string) time.Time {
	info, err := fsys.Stat(name)
	if err != nil {
		return time.Now()
	}
	if !info.Dir || info.Link {
		return info.Time
	}
	names, err := fsys.ReadDir(name)
	if err != nil {
		return time.Now()
	}
	last := info.Time
	for _, n := range names {
		if t := touched(fsys, filepath.Join(name, n)); t.After(last) {
			last = t
		}
	}
	return last
}

// Unique is 16 random hexadecimal digits.
func Unique() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Exists reports whether something has that name.
func Exists(fsys FS, name string) bool {
	_, err := fsys.Stat(name)
	return err == nil
}

// Glob lists the paths in dir whose name matches pattern, sorted; none if there is no folder. Unlike filepath.Glob it
// takes dir literally.
func Glob(fsys FS, dir, pattern string) (out []string, err error) {
	names, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, name := range names {
		if ok, err := filepath.Match(pattern, name); err != nil {
			return nil, fmt.Errorf("pattern %q: %w", pattern, err)
		} else if ok {
			out = append(out, filepath.Join(dir, name))
		}
	}
	return out, err
}
