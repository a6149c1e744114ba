package vfs_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"antiphase/internal/vfs"
	"antiphase/internal/vfs/vfstest"
)

// TestNoFaultIsSwallowed: whichever file operation of a helper fails, its caller hears of it, with that error.
func TestNoFaultIsSwallowed(t *testing.T) {
	old := func(fsys vfs.FS) {
		if err := vfs.MkdirAll(fsys, "/d/e"); err != nil {
			t.Fatal(err)
		}
		put(t, fsys, "/d/x", "old")
		put(t, fsys, "/d/e/y", "old")
	}
	write := func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }
	for name, c := range map[string]struct {
		least int
		act   func(vfs.FS) error
		spare func(vfstest.Op) bool
	}{
		"WriteFile": {6, func(f vfs.FS) error { return vfs.WriteFile(f, "/d/x", []byte("new")) }, nil},
		"Write":     {6, func(f vfs.FS) error { return vfs.Write(f, "/d/new", write) }, nil},
		"WriteNew":  {4, func(f vfs.FS) error { return vfs.WriteNew(f, "/d/new", write) }, nil},
		"MkdirAll":  {7, func(f vfs.FS) error { return vfs.MkdirAll(f, "/d/a/b") }, nil},
		"RemoveAll": {6, func(f vfs.FS) error { return vfs.RemoveAll(f, "/d") }, nil},
		"ReadFile":  {3, func(f vfs.FS) error { _, err := vfs.ReadFile(f, "/d/x", 99); return err }, nil},
		"Glob":      {1, func(f vfs.FS) error { _, err := vfs.Glob(f, "/d", "*"); return err }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if n := vfstest.EachFault(t, old, c.act, c.spare); n < c.least {
				t.Errorf("%d operations, want at least %d: a check or a sync is missing", n, c.least)
			}
		})
	}
	// After a fault the old contents are there and no temporary is.
	for at := range 6 {
		mem := vfstest.NewMem()
		old(mem)
		f := &vfstest.Faulty{FS: mem, Hook: func(op vfstest.Op) error {
			if op.Index == at {
				return syscall.EIO
			}
			return nil
		}}
		err := vfs.WriteFile(f, "/d/x", []byte("new"))
		text, _ := get(mem, "/d/x")
		names, _ := mem.ReadDir("/d")
		if whole := text == "old" || at == 5 && text == "new"; err == nil || !whole || len(names) != 2 {
			t.Errorf("operation %d failed: %v, %q, %q", at, err, text, names)
		}
	}
}

func TestReadFileLimit(t *testing.T) {
	mem := vfstest.NewMem()
	put(t, mem, "/x", "12345")
	for limit, want := range map[int64]bool{4: false, 5: true, 6: true} {
		b, err := vfs.ReadFile(mem, "/x", limit)
		if (err == nil) != want || want && string(b) != "12345" || !want && !errors.Is(err, vfs.ErrTooLarge) {
			t.Errorf("limit %d: %q, %v", limit, b, err)
		}
	}
	if _, err := vfs.ReadFile(mem, "/none", 4); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if vfs.Or(mem) != vfs.FS(mem) || vfs.Or(nil) != (vfs.OS{}) {
		t.Error("the file system that was given is not the one that is used")
	}
}

// The machine's own file system: appending cuts, mapping shows the bytes, links and devices are refused.
func TestOS(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	put(t, vfs.OS{}, at("x"), "0123456789")
	put(t, vfs.OS{}, at("empty"), "")
	f, err := vfs.OS{}.Append(at("x"), 4)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(f, "ab"); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"x": "0123ab", "empty": ""} {
		b, unmap, err := vfs.OS{}.Map(at(name))
		if err != nil || string(b) != want {
			t.Fatalf("%s: %q, %v", name, b, err)
		}
		if err := unmap(); err != nil {
			t.Error(err)
		}
	}
	t.Run("link", func(t *testing.T) {
		vfstest.Symlink(t, at("x"), at("link"))
		if _, err := (vfs.OS{}).Append(at("link"), 0); !errors.Is(err, vfs.ErrLink) {
			t.Errorf("appending through a link: %v", err)
		}
	})
	if _, _, err := (vfs.OS{}).Map(dir); !errors.Is(err, vfs.ErrNotRegular) {
		t.Errorf("mapping a folder: %v", err)
	}
	if _, err := (vfs.OS{}).Append(at("none/x"), 0); err == nil {
		t.Error("a file in no folder")
	}
	if n, err := (vfs.OS{}).Free(dir); err != nil || n <= 0 {
		t.Errorf("%d bytes free, %v", n, err)
	}
	if _, err := (vfs.OS{}).Free(at("none")); !errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), "free space") {
		t.Error(err)
	}
	if err := vfs.MkdirAll(vfs.OS{}, at("x/y")); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a folder inside a file: %v", err)
	}
	for err, want := range map[error]bool{syscall.ENOSPC: true, syscall.EDQUOT: true, syscall.EIO: false} {
		if vfs.IsNoSpace(&fs.PathError{Err: err}) != want {
			t.Errorf("%v: no space %v", err, !want)
		}
	}
}

// A sum covers what was really written.
func TestSum(t *testing.T) {
	var b bytes.Buffer
	s := vfs.NewSum(&b)
	for _, p := range []string{"one ", "", "two"} {
		if n, err := io.WriteString(s, p); n != len(p) || err != nil {
			t.Fatal(n, err)
		}
	}
	want := sha256.Sum256([]byte("one two"))
	if b.String() != "one two" || s.Bytes != 7 || s.SHA256() != hex.EncodeToString(want[:]) {
		t.Errorf("%q, %d, %s", b.String(), s.Bytes, s.SHA256())
	}
	s = vfs.NewSum(short{})
	if n, err := s.Write([]byte("two")); n != 2 || err == nil || s.Bytes != 2 {
		t.Errorf("%d bytes of a short write, %v", s.Bytes, err)
	}
	half := sha256.Sum256([]byte("tw"))
	if s.SHA256() != hex.EncodeToString(half[:]) {
		t.Error("the sum covers what was not written")
	}
}

type short struct{}

func (short) Write(p []byte) (int, error) { return len(p) - 1, io.ErrShortWrite }

// A folder is as young as its youngest file, at any depth, and what cannot be examined is not old.
func TestSweepSparesLiveFolders(t *testing.T) {
	dir, long := t.TempDir(), time.Now().Add(-time.Hour)
	name := filepath.Join(dir, "out.tmp-0123456789abcdef")
	inner := filepath.Join(name, "a", "b")
	if err := os.MkdirAll(inner, 0o777); err != nil {
		t.Fatal(err)
	}
	put(t, vfs.OS{}, filepath.Join(inner, "live"), "x")
	for _, p := range []string{inner, filepath.Dir(inner), name} {
		if err := os.Chtimes(p, long, long); err != nil {
			t.Fatal(err)
		}
	}
	vfs.Sweep(vfs.OS{}, filepath.Join(dir, "out"))
	if !vfs.Exists(vfs.OS{}, filepath.Join(inner, "live")) {
		t.Error("a folder that is being written is gone")
	}
	for _, kind := range []string{"stat", "readdir"} {
		_ = os.Chtimes(filepath.Join(inner, "live"), long, long)
		vfs.Sweep(&vfstest.Faulty{FS: vfs.OS{}, Hook: func(op vfstest.Op) error {
			if op.Kind == kind && op.Path == inner {
				return syscall.EIO
			}
			return nil
		}}, filepath.Join(dir, "out"))
		if !vfs.Exists(vfs.OS{}, name) {
			t.Errorf("what %s could not show is gone", kind)
		}
	}
	other := t.TempDir() // what a link leads to is somebody else's, and its files do not keep the link alive
	put(t, vfs.OS{}, filepath.Join(other, "live"), "x")
	vfstest.Symlink(t, other, filepath.Join(inner, "link"))
	for _, p := range []string{other, inner} {
		if err := os.Chtimes(p, long, long); err != nil {
			t.Fatal(err)
		}
	}
	vfs.Sweep(vfs.OS{}, filepath.Join(dir, "out"))
	if vfs.Exists(vfs.OS{}, name) || !vfs.Exists(vfs.OS{}, filepath.Join(other, "live")) {
		t.Error("an old folder stays, or what a link in it leads to does not")
	}
}
