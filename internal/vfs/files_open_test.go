package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"antiphase/internal/quota"
)

// The operations on whole files leave none open, whether they succeed or not; a mapping ends when it is told to.
func TestFilesAreClosed(t *testing.T) {
	dir := t.TempDir()
	path, folder := filepath.Join(dir, "x"), filepath.Join(dir, "folder")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	lost := errors.New("lost")
	quota.Files(t, "WriteFile", func() {
		if err := WriteFile(OS{}, path, []byte("text")); err != nil {
			t.Fatal(err)
		}
	})
	quota.Files(t, "WriteNew", func() {
		if err := WriteNew(OS{}, filepath.Join(dir, "new"), func(io.Writer) error { return lost }); !errors.Is(err,
			lost) {
			t.Error(err)
		}
		_ = os.Remove(filepath.Join(dir, "new"))
	})
	quota.Files(t, "ReadFile", func() {
		if b, err := ReadFile(OS{}, path, 9); err != nil || string(b) != "text" {
			t.Error(b, err)
		}
		if _, err := ReadFile(OS{}, path, 3); err == nil {
			t.Error("more than the limit is read")
		}
	})
	quota.Files(t, "Map", func() {
		b, unmap, err := OS{}.Map(path)
		if err != nil || string(b) != "text" {
			t.Fatal(b, err)
		}
		if err := unmap(); err != nil {
			t.Error(err)
		}
		if _, _, err := (OS{}).Map(folder); !errors.Is(err, ErrNotRegular) {
			t.Error(err)
		}
	})
	quota.Files(t, "SyncDir", func() {
		if err := (OS{}).SyncDir(dir); err != nil {
			t.Error(err)
		}
	})
	quota.Files(t, "Append", func() {
		f, err := OS{}.Append(path, 2)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if _, err := (OS{}).Append(folder, 0); err == nil {
			t.Error("a folder is appended to")
		}
	})
}

// racing is a file system on which another process creates each folder first.
type racing struct{ OS }

func (racing) Mkdir(name string) error {
	if err := os.Mkdir(name, 0o755); err != nil {
		return err
	}
	return &fs.PathError{Op: "mkdir", Path: name, Err: fs.ErrExist}
}

// A folder that another process creates at the same time is as good as one's own.
func TestMkdirAllAtOnce(t *testing.T) {
	deep := filepath.Join(t.TempDir(), "a", "b", "c")
	if err := MkdirAll(racing{}, deep); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(deep); err != nil || !st.IsDir() {
		t.Error(err)
	}
}
