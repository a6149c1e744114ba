//go:build linux || darwin

package vfs_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"antiphase/internal/vfs"
)

// The free space of the machine's own volumes is in bytes, and of the volume that was asked for.
func TestFreeSpace(t *testing.T) {
	for _, dir := range []string{t.TempDir(), "/", "/dev"} {
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil {
			continue
		}
		want := float64(st.Bavail) * float64(st.Bsize)
		got, err := vfs.OS{}.Free(dir)
		// Others write meanwhile.
		if off := float64(got) - want; err != nil || off > 0.1*want+1<<30 || off < -0.1*want-1<<30 {
			t.Errorf("%s: %d bytes are free, want about %g, %v", dir, got, want, err)
		}
	}
}

// What is not there is an error of the file system that names it, for every call.
func TestCallsOnNothing(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	_, free := vfs.OS{}.Free(none)
	_, _, mapped := vfs.OS{}.Map(none)
	_, opened := vfs.OS{}.Open(none)
	_, listed := vfs.OS{}.ReadDir(none)
	_, stat := vfs.OS{}.Stat(none)
	_, created := vfs.OS{}.Create(filepath.Join(none, "x"))
	_, appended := vfs.OS{}.Append(filepath.Join(none, "x"), 0)
	for name, err := range map[string]error{"free": free, "map": mapped, "open": opened, "list": listed, "stat": stat,
		"create": created, "append": appended,
		"sync": vfs.OS{}.SyncDir(none), "remove": vfs.OS{}.Remove(none),
		"mkdir": vfs.OS{}.Mkdir(filepath.Join(none, "x")), "rename": vfs.OS{}.Rename(none, none+"2")} {
		var path *fs.PathError
		var link *os.LinkError
		if !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &path) && !errors.As(err, &link) || path != nil &&
			!filepath.IsAbs(path.Path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (vfs.OS{}).SyncDir(t.TempDir()); err != nil {
		t.Error(err)
	}
	// It has no sync.
	if err := (vfs.OS{}).SyncDir(os.DevNull); runtime.GOOS == "linux" && !errors.Is(err, unix.EINVAL) {
		t.Errorf("a device was synced: %v", err)
	}
}
