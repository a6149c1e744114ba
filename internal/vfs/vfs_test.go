package vfs_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"antiphase/internal/vfs"
	"antiphase/internal/vfs/vfstest"
)

func put(t *testing.T, fsys vfs.FS, path, text string) {
	t.Helper()
	f, err := fsys.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(f, text); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func get(fsys vfs.FS, path string) (string, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	return string(b), err
}

// TestSame runs one script on the real file system and on the one in memory: crash tests mean nothing if they differ.
func TestSame(t *testing.T) {
	for name, c := range map[string]struct {
		fsys vfs.FS
		root string
	}{
		"os":     {vfs.OS{}, t.TempDir()},
		"mem":    {vfstest.NewMem(), "/"},
		"faulty": {&vfstest.Faulty{FS: vfstest.NewMem(), Hook: func(vfstest.Op) error { return nil }}, "/"},
	} {
		t.Run(name, func(t *testing.T) { script(t, c.fsys, func(p string) string { return filepath.Join(c.root, p) }) })
	}
}

func script(t *testing.T, fsys vfs.FS, at func(string) string) {
	if err := vfs.MkdirAll(fsys, at("a/b/c")); err != nil {
		t.Fatal(err)
	}
	put(t, fsys, at("a/x"), "old text")
	put(t, fsys, at("a/x"), "new")
	put(t, fsys, at("a/y"), "why")
	put(t, fsys, at("a/b/c/z"), "zed")
	refusals(t, fsys, at)
	changes(t, fsys, at)
}

// expect returns a check of an error's kind.
func expect(t *testing.T) func(what string, err, want error) {
	return func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
}

func refusals(t *testing.T, fsys vfs.FS, at func(string) string) {
	wants := expect(t)
	wants("mkdir again", fsys.Mkdir(at("a")), fs.ErrExist)
	wants("mkdir without parent", fsys.Mkdir(at("q/r")), fs.ErrNotExist)
	wants("mkdirall again", vfs.MkdirAll(fsys, at("a/b")), nil)
	if err := vfs.MkdirAll(fsys, at("a/x")); err == nil {
		t.Error("a file passed for a folder")
	}
	_, err := fsys.Open(at("none"))
	wants("open", err, fs.ErrNotExist)
	_, err = fsys.Create(at("q/none"))
	wants("create", err, fs.ErrNotExist)
	_, err = fsys.Stat(at("none"))
	wants("stat", err, fs.ErrNotExist)
	_, err = fsys.ReadDir(at("none"))
	wants("readdir", err, fs.ErrNotExist)
	wants("rename", fsys.Rename(at("none"), at("other")), fs.ErrNotExist)
	wants("remove", fsys.Remove(at("none")), fs.ErrNotExist)
	if fsys.Remove(at("a")) == nil {
		t.Error("a full folder was removed")
	}
}

func changes(t *testing.T, fsys vfs.FS, at func(string) string) {
	wants := expect(t)
	wants("rename over a file", fsys.Rename(at("a/y"), at("a/x")), nil)
	if s, err := get(fsys, at("a/x")); s != "why" || err != nil {
		t.Errorf("read %q, %v", s, err)
	}
	if info, err := fsys.Stat(at("a/x")); err != nil || info.Size != 3 || info.Dir {
		t.Errorf("stat %+v, %v", info, err)
	}
	if names, err := fsys.ReadDir(at("a")); err != nil || !slices.Equal(names, []string{"b", "x"}) {
		t.Errorf("names %q, %v", names, err)
	}
	wants("mkdir", fsys.Mkdir(at("full")), nil)
	put(t, fsys, at("full/x"), "")
	if fsys.Rename(at("a"), at("full")) == nil {
		t.Error("a folder was renamed over a full one")
	}
	wants("rename folder", fsys.Rename(at("a"), at("d")), nil)
	if s, err := get(fsys, at("d/b/c/z")); s != "zed" || err != nil {
		t.Errorf("read %q, %v", s, err)
	}
	wants("syncdir", fsys.SyncDir(at("d")), nil)
	if n, err := fsys.Free(at("d")); n <= 0 || err != nil {
		t.Errorf("free %d, %v", n, err)
	}
	wants("removeall", vfs.RemoveAll(fsys, at("d")), nil)
	wants("removeall of nothing", vfs.RemoveAll(fsys, at("d")), nil)
	if names, err := fsys.ReadDir(at(".")); err != nil || !slices.Equal(names, []string{"full"}) {
		t.Errorf("left %q, %v", names, err)
	}
}

func TestLinks(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	if err := os.MkdirAll(filepath.Join(real, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	vfstest.Symlink(t, real, link)
	if err := vfs.MkdirAll(vfs.OS{}, filepath.Join(link, "new", "er")); err != nil {
		t.Errorf("a folder behind a link: %v", err)
	}
	if err := vfs.RemoveAll(vfs.OS{}, link); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(real, "sub")); err != nil {
		t.Errorf("RemoveAll followed a link: %v", err)
	}
}

// TestRoot: where not even the root is there, as with a drive that is not, making a folder in it ends with that. What
// somebody else removes first is removed.
func TestRoot(t *testing.T) {
	none := &vfstest.Faulty{FS: vfstest.NewMem(), Hook: func(vfstest.Op) error { return fs.ErrNotExist }}
	for _, name := range []string{"/", "/a/b", ".", "a/b"} {
		if err := vfs.MkdirAll(none, name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	mem := vfstest.NewMem()
	put(t, mem, "/x", "text")
	for fault, want := range map[error]error{fs.ErrNotExist: nil, fs.ErrPermission: fs.ErrPermission} {
		err := vfs.RemoveAll(&vfstest.Faulty{FS: mem, Hook: func(op vfstest.Op) error {
			if op.Kind == "remove" {
				return fault
			}
			return nil
		}}, "/x")
		if !errors.Is(err, want) {
			t.Errorf("%v: %v", fault, err)
		}
	}
}

// TestWriteSparesDevices: a device or a pipe, or what a link to one stands for, is not replaced by a file.
func TestWriteSparesDevices(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	vfstest.Symlink(t, os.DevNull, link)
	if err := vfs.WriteFile(vfs.OS{}, link, []byte("x")); !errors.Is(err, vfs.ErrNotRegular) ||
		!strings.Contains(err.Error(), link) {
		t.Errorf("error %v, want one that says what %s is", err, link)
	}
	if st, err := os.Lstat(link); err != nil || st.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link to a device is now %v (%v)", st, err)
	}
}

// TestSweep: of what lies beside a file only its own old temporaries go.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "model")
	old := time.Now().Add(-time.Hour)
	for _, c := range []struct {
		path string
		gone bool
		when time.Time
	}{
		{vfs.Temporary(name), true, old}, {vfs.Hidden(name), true, old}, {vfs.Temporary(name) + ".old", true, old},
		{vfs.Temporary(name), false, time.Now()}, {vfs.Temporary(name), false, time.Now().Add(-9 * time.Minute)},
		{vfs.Temporary(name), true, time.Now().Add(-11 * time.Minute)}, {vfs.Temporary(name + "s"), false, old},
		{name + ".tmp-mine", false, old}, {name, false, old},
	} {
		put(t, vfs.OS{}, c.path, "x")
		if err := os.Chtimes(c.path, c.when, c.when); err != nil {
			t.Fatal(err)
		}
		vfs.Sweep(vfs.OS{}, name)
		if vfs.Exists(vfs.OS{}, c.path) == c.gone {
			t.Errorf("%s of %v: gone %v, want %v", filepath.Base(c.path), c.when, !c.gone, c.gone)
		}
	}
	other := filepath.Join(dir, ".tmp-0123456789abcdef") // nobody's
	put(t, vfs.OS{}, other, "x")
	if err := os.Chtimes(other, old, old); err != nil {
		t.Fatal(err)
	}
	for _, ages := range [][]time.Duration{{0}, {0, time.Hour}, {time.Hour, 0}, {time.Hour, 0, time.Hour},
		{time.Hour, time.Hour}, {}} {
		folder := vfs.Hidden(name) // as old as the newest file in it
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		for i, age := range ages {
			part := filepath.Join(folder, fmt.Sprint("part", i))
			put(t, vfs.OS{}, part, "x")
			if when := time.Now().Add(-age); os.Chtimes(part, when, when) != nil {
				t.Fatal("the time cannot be set")
			}
		}
		if err := os.Chtimes(folder, old, old); err != nil {
			t.Fatal(err)
		}
		vfs.Sweep(vfs.OS{}, name)
		if live := slices.Contains(ages, 0); vfs.Exists(vfs.OS{}, folder) != live || !vfs.Exists(vfs.OS{}, other) {
			t.Errorf("a folder with files of ages %v: there %v, want %v; another's %v", ages, !live, live,
				vfs.Exists(vfs.OS{}, other))
		}
	}
}

// Names of temporaries are drawn: two writers of one file, or of two runs, never share one.
func TestUnique(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		s := vfs.Unique()
		if len(s) != 16 || strings.Trim(s, "0123456789abcdef") != "" || seen[s] {
			t.Fatalf("%q after %d others", s, len(seen))
		}
		seen[s] = true
	}
}

// TestSweepByRelativeName: a name without a folder is one of the working folder; a name that begins with a dot has
// temporaries of its own, and is not taken for the one without.
func TestSweepByRelativeName(t *testing.T) {
	t.Chdir(t.TempDir())
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{"model", "./model", "sub/../model", ".model"} {
		own, other := filepath.Clean(name), map[bool]string{true: "model", false: "models"}[name == ".model"]
		paths := []string{vfs.Temporary(own), vfs.Hidden(own), vfs.Temporary(other)}
		for _, path := range paths {
			put(t, vfs.OS{}, path, "x")
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
		vfs.Sweep(vfs.OS{}, name)
		if left, err := vfs.Glob(vfs.OS{}, ".", "*"); err != nil || !slices.Equal(left, paths[2:]) {
			t.Errorf("%s: %q are left, %v", name, left, err)
		}
		_ = os.Remove(paths[2])
	}
	hidden := vfs.Hidden(filepath.Join("a", "b"))
	dir, base := filepath.Split(hidden)
	if filepath.Clean(dir) != "a" || !strings.HasPrefix(base, ".b.tmp-") || len(base) != len(".b.tmp-")+16 {
		t.Errorf("%s", hidden)
	}
}

// TestWriteFile: the old contents or the new ones, whatever fails, and no temporary where it can be deleted.
func TestWriteFile(t *testing.T) {
	for at, more := 0, true; more; at++ {
		mem := vfstest.NewMem()
		put(t, mem, "x", "old")
		more = false
		err := vfs.WriteFile(&vfstest.Faulty{FS: mem, Hook: func(op vfstest.Op) error {
			if op.Index == at {
				more = true
				return errors.New("fault")
			}
			return nil
		}}, "x", []byte("new"))
		got, _ := get(mem, "x")
		if more == (err == nil) || got != "new" && (got != "old" || err == nil) {
			t.Errorf("operation %d fails: %q, %v", at, got, err)
		}
		if names, _ := mem.ReadDir("."); len(names) != 1 {
			t.Errorf("operation %d fails: left %q", at, names)
		}
	}
}

// TestWriteNamesTheFile: an error speaks of the file that was asked for, not of its temporary.
func TestWriteNamesTheFile(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "folder")
	if err := os.MkdirAll(filepath.Join(folder, "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filepath.Join(dir, "none", "x"), folder} { // fails to create, to rename
		err := vfs.WriteFile(vfs.OS{}, name, []byte("new"))
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), ".tmp-") {
			t.Errorf("%s: %v", name, err)
		}
	}
	other := filepath.Join(dir, "other") // what the writer itself fails at keeps its name
	for _, want := range []error{&fs.PathError{Op: "read", Path: other, Err: fs.ErrPermission},
		&os.LinkError{Op: "link", Old: other, New: "x", Err: fs.ErrPermission}} {
		text := want.Error() // of a pointer, which could be changed
		err := vfs.Write(vfs.OS{}, filepath.Join(dir, "x"), func(io.Writer) error { return want })
		if !errors.Is(err, fs.ErrPermission) || err.Error() != text {
			t.Errorf("%v, want %s", err, text)
		}
	}
}

// TestGlob takes a folder's name as it is: brackets and stars in it are not a pattern.
func TestGlob(t *testing.T) {
	for _, name := range []string{"plain", "a[1]", "b*c", "[x"} {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Skip("no such name here:", err)
		}
		put(t, vfs.OS{}, filepath.Join(dir, "rows-1.jsonl"), "")
		put(t, vfs.OS{}, filepath.Join(dir, "other"), "")
		if got, err := vfs.Glob(vfs.OS{}, dir, "rows-*.jsonl"); err != nil ||
			!slices.Equal(got, []string{filepath.Join(dir, "rows-1.jsonl")}) {
			t.Errorf("in %s: %q, %v", name, got, err)
		}
	}
	if got, err := vfs.Glob(vfs.OS{}, filepath.Join(t.TempDir(), "none"), "*"); err != nil || len(got) != 0 {
		t.Errorf("no folder: %q, %v", got, err)
	}
	if _, err := vfs.Glob(vfs.OS{}, ".", "["); err == nil {
		t.Error("a pattern that is none passed")
	}
}
