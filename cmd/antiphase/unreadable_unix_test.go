//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/internal/vfs/vfstest"
)

// A folder in which files cannot be looked up is said to be unreadable, not to be no model. Permissions do not bind the
// superuser, so links to themselves stand for whatever else the system refuses.
func TestUnreadableFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := errors.Join(os.Mkdir("locked", 0o000), os.Mkdir("empty", 0o755), put(".", "file")); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"empty": "empty is neither a run folder", "file": "file is neither a run folder"}
	if _, err := os.Stat("locked/config.json"); errors.Is(err, os.ErrPermission) {
		want["locked"] = "locked cannot be read: "
	}
	for _, name := range []string{"checkpoints", "state.json", "config.json"} {
		dir := "loop-" + name
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		vfstest.Symlink(t, name, filepath.Join(dir, name))
		want[dir] = dir + " cannot be read: "
	}
	for dir, says := range want {
		for _, args := range [][]string{{"show", dir}, {"export", dir, "out"}, {"generate", "-m", dir, "x"}} {
			if code, _, errs := ran(t, args...); code != exitBadInput || !strings.Contains(errs, says) {
				t.Errorf("%q: exit %d, %s", args, code, errs)
			}
		}
	}
}
