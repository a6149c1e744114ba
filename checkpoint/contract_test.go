package checkpoint

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"antiphase/internal/vfs/vfstest"
)

// TestSettle: what becomes of a replaced checkpoint for every state of its successor. It is deleted only beside an
// intact one.
func TestSettle(t *testing.T) {
	const step, old = 8, ".old-0123456789abcdef"
	for name, x := range map[string]struct {
		make    func(mem *vfstest.Mem, s *Store) // of the successor
		oldLeft bool                             // under its own temporary name
		found   string                           // what the step holds afterwards; empty: not readable here
		fails   bool
	}{
		"intact": {func(_ *vfstest.Mem, s *Store) { save(t, s, step, "new") }, false, "8/new", false},
		"none":   {func(*vfstest.Mem, *Store) {}, false, "8/old", false},
		"damaged": {func(mem *vfstest.Mem, s *Store) {
			save(t, s, step, "new")
			replace(t, mem, filepath.Join(s.path(step), "state.json"), nil)
		}, false, "8/old", false},
		"newer":      {func(mem *vfstest.Mem, s *Store) { save(t, s, step, "new"); newerManifest(t, mem, s, step) }, true, "", false},
		"unreadable": {func(_ *vfstest.Mem, s *Store) { save(t, s, step, "new") }, true, "8/new", true},
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfstest.NewMem()
			s := open(t, mem, Options{})
			save(t, s, step, "old")
			if err := mem.Rename(s.path(step), s.path(step)+".moved"); err != nil {
				t.Fatal(err)
			}
			x.make(mem, s)
			if err := mem.Rename(s.path(step)+".moved", s.path(step)+old); err != nil {
				t.Fatal(err)
			}
			f := &vfstest.Faulty{FS: mem, Hook: func(op vfstest.Op) error {
				if name == "unreadable" && op.Kind == "open" && strings.HasPrefix(op.Path, s.path(step)+string(filepath.Separator)) {
					return syscall.EIO
				}
				return nil
			}}
			_, err := Open(run, Options{FS: f})
			if (err != nil) != x.fails {
				t.Errorf("opening: %v", err)
			}
			if _, err := mem.Stat(s.path(step) + old); (err == nil) != x.oldLeft {
				t.Errorf("the replaced one is there: %v", err == nil)
			}
			c, err := load(mem, s.path(step))
			switch {
			case x.found == "" && !errors.Is(err, ErrNewer):
				t.Errorf("the successor: %v", err)
			case x.found != "" && (err != nil || identity(t, mem, c, strings.TrimPrefix(x.found, "8/")) != x.found):
				t.Errorf("the step holds %v, %v; want %s", c, err, x.found)
			}
		})
	}
}

// TestVerifyIsTheWorst: a checkpoint with a damaged file is damaged, whichever of its files comes first and whatever is
// wrong with the other; one that only cannot be read may be whole.
func TestVerifyIsTheWorst(t *testing.T) {
	files := []string{"state.json", "model.safetensors"}
	for _, x := range []struct {
		damaged, unreadable string
		want                error
	}{
		{"", "", nil}, {files[0], "", ErrDamaged}, {files[1], "", ErrDamaged}, {"", files[0], ErrUnreadable}, {"", files[1], ErrUnreadable},
		{files[0], files[1], ErrDamaged}, {files[1], files[0], ErrDamaged},
	} {
		mem := vfstest.NewMem()
		s := open(t, mem, Options{})
		save(t, s, 8, "x")
		if x.damaged != "" {
			replace(t, mem, filepath.Join(s.path(8), x.damaged), []byte("other"))
		}
		f := &vfstest.Faulty{FS: mem, Hook: func(op vfstest.Op) error {
			if x.unreadable != "" && op.Kind == "open" && filepath.Base(op.Path) == x.unreadable {
				return syscall.EIO
			}
			return nil
		}}
		_, err := load(f, s.path(8))
		for _, kind := range []error{ErrDamaged, ErrUnreadable, ErrNewer} {
			if errors.Is(err, kind) != (kind == x.want) {
				t.Errorf("%+v: %v", x, err)
			}
		}
		for _, name := range []string{x.damaged, x.unreadable} {
			if err != nil && !strings.Contains(err.Error(), name) {
				t.Errorf("%+v: %v does not name %s", x, err, name)
			}
		}
	}
}

// Names that differ in case only are one name, in either order, the manifest's too; the edges of what a name may be.
func TestNames(t *testing.T) {
	for names, good := range map[string]bool{
		"a b": true, "a A": false, "A a": false, "Ab aB": false, "MANIFEST.json": false, "manifest.JSON": false, "a-b_c.9": true, "a b a": false, "ä": false, "a+b": false,
	} {
		var files []File
		for _, n := range strings.Fields(names) {
			files = append(files, bytesFile(n, nil))
		}
		if err := checkNames(files); (err == nil) != good {
			t.Errorf("%q: %v", names, err)
		}
	}
}
