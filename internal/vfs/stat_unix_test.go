//go:build unix

package vfs_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"antiphase/internal/vfs"
)

// Stat tells files, folders, links and what is neither apart. A link is what it leads to, and a link besides; one that
// leads nowhere is there.
func TestStatOfEveryKind(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("file"), []byte("12345"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(at("folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(at("pipe"), 0o644); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"file", "folder", "pipe", "nowhere"} {
		if err := os.Symlink(at(name), at("to "+name)); err != nil {
			t.Skip(err)
		}
	}
	for name, want := range map[string]vfs.Info{
		"file": {Size: 5}, "folder": {Dir: true}, "pipe": {Odd: true},
		"to file": {Size: 5, Link: true}, "to folder": {Dir: true, Link: true}, "to pipe": {Odd: true, Link: true},
		"to nowhere": {Link: true},
	} {
		got, err := vfs.OS{}.Stat(at(name))
		if err != nil || got.Dir != want.Dir || got.Link != want.Link || got.Odd != want.Odd || want.Size > 0 &&
			got.Size != want.Size || got.Time.IsZero() {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
	}
	for _, name := range []string{"folder", "pipe", "to folder", "to pipe"} { // opening a pipe would wait for a writer
		if _, err := (vfs.OS{}).Open(at(name)); !errors.Is(err, vfs.ErrNotRegular) {
			t.Errorf("%s is opened: %v", name, err)
		}
		want := vfs.ErrNotRegular
		if strings.HasPrefix(name, "to ") {
			want = vfs.ErrLink
		}
		if f, err := vfs.OpenFile(at(name), os.O_RDWR|os.O_CREATE, 0o644); !errors.Is(err, want) { // does not wait
			t.Errorf("%s is opened for writing: %v, %v", name, f, err)
		} else if _, err := (vfs.OS{}).Append(at(name), 0); !errors.Is(err, want) {
			t.Errorf("%s is appended to: %v", name, err)
		}
	}
	if _, err := (vfs.OS{}).Stat(at("nowhere")); !os.IsNotExist(err) {
		t.Errorf("nothing: %v", err)
	}
}
