package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"antiphase/internal/quota"
	"antiphase/internal/vfs/vfstest"
)

// A full disk is told with its numbers in their places, and without those that are not known.
func TestSpaceErrorSays(t *testing.T) {
	e := &SpaceError{Path: "dir", Need: 500, Free: 40, Err: errors.New("write a: full")}
	if got, want := e.Error(),
		"no space left in dir: a checkpoint needs 500 bytes, 40 are free: write a: full"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if e.Free = 0; !strings.Contains(e.Error(), ", 0 are free") {
		t.Errorf("%q", e)
	}
	if e.Free = -1; e.Error() != "no space left in dir: a checkpoint needs 500 bytes: write a: full" ||
		!errors.Is(e, ErrNoSpace) || !errors.Is(e, e.Err) {
		t.Errorf("%q", e)
	}
	mem := vfstest.NewMem()
	s := open(t, mem, Options{})
	mem.Cap = 100
	if got, want := fmt.Sprint(s.CheckSpace(3, 50)), fmt.Sprintf("checkpoint: no space left in %s: 3 checkpoints of "+
		"50 bytes are to be written, 100 bytes are free, room for 2 of them", s.Dir()); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if err := s.CheckSpace(1, 0); err != nil {
		t.Errorf("a checkpoint of nothing: %v", err)
	}
}

// Every way of saving reports a full disk as such, with the bytes that it was about to write; where the free space
// cannot be told it is unknown.
func TestDraftsOnAFullDisk(t *testing.T) {
	for kind, want := range map[string]int64{"mkdir": 0, "create": 4, "manifest": 4} {
		for _, blind := range []bool{false, true} {
			mem := vfstest.NewMem()
			mem.Cap = 1000
			s := open(t, mem, Options{})
			s.fs = &vfstest.Faulty{FS: mem, Hook: func(op vfstest.Op) error {
				switch {
				case blind && op.Kind == "free":
					return syscall.EIO
				case op.Kind == "mkdir" && kind == "mkdir", kind == "manifest" && op.Kind == "create" &&
					filepath.Base(op.Path) == manifestName, kind == "create" && op.Kind == "create" &&
					filepath.Base(op.Path) == "b":
					return syscall.ENOSPC
				}
				return nil
			}}
			d, err := s.Begin(7)
			if err == nil {
				var list []Entry
				if list, err = d.Write([]File{bytesFile("a", []byte("x")), bytesFile("b", []byte("xyz"))}); err == nil {
					err = d.Commit(list)
				} else {
					d.Drop()
				}
			}
			var full *SpaceError
			if !errors.As(err, &full) || full.Need != want || (full.Free == -1) != blind || full.Path != s.Dir() ||
				!strings.Contains(err.Error(), "checkpoint: save step 7: ") {
				t.Errorf("%s, blind %v: %v, want %d bytes", kind, blind, err, want)
			}
			if names, _ := mem.ReadDir(s.Dir()); len(names) != 0 {
				t.Errorf("%s: %q are left", kind, names)
			}
		}
	}
}

// What cannot be loaded comes with what to do about it.
func TestLatestAdvises(t *testing.T) {
	mem, s := damaged(t)
	newerManifest(t, mem, s, 8)
	if _, err := s.Latest(nil); err == nil ||
		!strings.HasSuffix(err.Error(), "; use that program, or move the folder away to use the checkpoint before") ||
		!strings.Contains(err.Error(), "format 2, this program reads format 1") {
		t.Errorf("newer: %v", err)
	}
	s.fs = &vfstest.Faulty{FS: mem, Hook: func(op vfstest.Op) error {
		if op.Kind == "open" {
			return syscall.EACCES
		}
		return nil
	}}
	if _, err := s.Latest(nil); err == nil ||
		!strings.HasSuffix(err.Error(), "; make it readable, or move the folder away to use the checkpoint before") {
		t.Errorf("unreadable: %v", err)
	}
}

// Saving, loading and what they refuse leave no file open.
func TestFilesAreClosed(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{KeepLast: 2})
	if err != nil {
		t.Fatal(err)
	}
	step := int64(0)
	quota.Files(t, "Save", func() { step++; save(t, s, step, "a") })
	quota.Files(t, "Latest", func() {
		if c, err := s.Latest(nil); err != nil || c.Step != step {
			t.Error(c, err)
		}
	})
	broken := errors.New("broken")
	quota.Files(t, "a save that fails", func() {
		if err := s.Save(99, []File{bytesFile("a", nil),
			{"b", func(io.Writer) error { return broken }}}); !errors.Is(err, broken) {
			t.Error(err)
		}
	})
	path := filepath.Join(s.path(step), "state.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	quota.Files(t, "a damaged checkpoint", func() {
		if _, err := s.At(step); !errors.Is(err, ErrDamaged) {
			t.Error(err)
		}
	})
}
