package checkpoint

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"antiphase/internal/vfs/vfstest"
)

// newerManifest makes the checkpoint of step one that a later format wrote: its sum is right for that format.
func newerManifest(t *testing.T, mem *vfstest.Mem, s *Store, step int64) {
	t.Helper()
	path := filepath.Join(s.path(step), manifestName)
	m, err := parseManifest(read(t, mem, path))
	if err != nil {
		t.Fatal(err)
	}
	m.Format = Format + 1
	b, err := m.render()
	if err != nil {
		t.Fatal(err)
	}
	replace(t, mem, path, b)
}

// TestUnreadableStops: a checkpoint that cannot be read may be whole, so nothing older is offered in its place.
func TestUnreadableStops(t *testing.T) {
	for _, fault := range []error{syscall.EACCES, syscall.EIO} {
		mem, s := damaged(t)
		for at := 0; ; at++ {
			hit := ""
			s.fs = &vfstest.Faulty{FS: mem, Hook: func(op vfstest.Op) error {
				if strings.Contains(op.Path, "step-00000008") && op.Kind != "close" && op.Index >= at && hit == "" {
					hit = op.String()
					return fault
				}
				return nil
			}}
			c, err := s.Latest(nil)
			if hit == "" {
				break
			}
			if c != nil || !errors.Is(err, ErrUnreadable) || !errors.Is(err, fault) ||
				!strings.Contains(err.Error(), "step-00000008") {
				t.Errorf("%v at %s: %+v, %v", fault, hit, c, err)
			}
		}
	}
}

// TestNewerStops: a checkpoint of a later format is whole as far as anyone here can tell.
func TestNewerStops(t *testing.T) {
	mem, s := damaged(t)
	newerManifest(t, mem, s, 8)
	for _, kind := range []error{ErrDamaged, ErrUnreadable, ErrNone} {
		if c, err := s.Latest(nil); c != nil || !errors.Is(err, ErrNewer) || errors.Is(err, kind) ||
			!strings.Contains(err.Error(), "step-00000008") {
			t.Errorf("found %+v, %v", c, err)
		}
	}
}

// TestRewindSetsAside: a rewind deletes nothing. What was damaged goes once enough whole checkpoints follow it; what
// was whole, or may have been, stays until somebody removes it.
func TestRewindSetsAside(t *testing.T) {
	mem, s := damaged(t)
	save(t, s, 12, "a")
	save(t, s, 16, "a")
	newerManifest(t, mem, s, 16)
	replace(t, mem, filepath.Join(s.path(12), "state.json"), nil)
	moved, err := s.Rewind(4)
	if err != nil || len(moved) != 3 {
		t.Fatalf("moved %q, %v", moved, err)
	}
	if steps, _ := s.Steps(); !slices.Equal(steps, []int64{4}) {
		t.Fatalf("left %v", steps)
	}
	names, _ := mem.ReadDir(s.Dir())
	for _, want := range []string{"step-00000008.aside-", "step-00000012.damaged-", "step-00000016.aside-"} {
		if !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, want) }) {
			t.Errorf("no %s in %q", want, names)
		}
	}
	whole := slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(n, "step-00000008.aside-") })
	if c, err := load(mem, filepath.Join(s.Dir(), names[whole])); err != nil || identity(t, mem, c, "a") != "8/a" {
		t.Errorf("set aside: %+v, %v", c, err)
	}
	s = open(t, mem, Options{KeepLast: 2})
	left := func() (n int) {
		names, _ := mem.ReadDir(s.Dir())
		for _, name := range names {
			if setAside.MatchString(name) {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		step int64
		left int
	}{{8, 3}, {12, 3}, {16, 3}, {20, 2}, {24, 2}} {
		save(t, s, c.step, "b")
		if got := left(); got != c.left {
			t.Errorf("after step %d: %d set aside, want %d", c.step, got, c.left)
		}
	}
}

// TestReplacementIsChecked: while a checkpoint replaces another of its step, the old one goes only once the new one is
// known to be whole.
func TestReplacementIsChecked(t *testing.T) {
	mem := vfstest.NewMem()
	s := open(t, mem, Options{})
	save(t, s, 8, "old")
	if err := mem.Rename(s.path(8), s.path(8)+".old-0123456789abcdef"); err != nil {
		t.Fatal(err)
	}
	save(t, &Store{dir: s.dir, fs: &vfstest.Faulty{FS: mem, Hook: func(op vfstest.Op) error {
		if op.Kind == "readdir" {
			return syscall.EIO // its clean finds nothing
		}
		return nil
	}}}, 8, "new")
	replace(t, mem, filepath.Join(s.path(8), "state.json"), nil)
	if c, err := open(t, mem, Options{}).Latest(nil); err != nil || identity(t, mem, c, "old") != "8/old" {
		t.Errorf("found %+v, %v", c, err)
	}
}

// A manifest that is no manifest of ours is newer if it says so and no sum of ours contradicts it, otherwise damaged.
func TestNewerOrDamaged(t *testing.T) {
	for text, want := range map[string]error{
		`{"format": 2, "files": 3}`: ErrNewer, `{"format": 2, "step": 8, "files": []}`: ErrNewer,
		`{"format": 2, "sum": ""}`: ErrNewer, `{"format": 3, "sum": "x"}`: ErrNewer,
		`{"format": 1, "files": 3}`: ErrDamaged, `{"format": 1, "step": 8}`: ErrDamaged,
		`{"format": 0, "step": "x"}`: ErrDamaged, `{"format": 2`: ErrDamaged, "": ErrDamaged, `{}`: ErrDamaged,
	} {
		mem, s := damaged(t)
		replace(t, mem, filepath.Join(s.path(8), manifestName), []byte(text))
		_, err := s.At(8)
		for _, kind := range []error{ErrNewer, ErrDamaged, ErrUnreadable, ErrNone} {
			if errors.Is(err, kind) != (kind == want) {
				t.Errorf("%s: %v, want %v", text, err, want)
			}
		}
	}
}

// A reader that looks while the run replaces its only checkpoint by the next one finds one of the two, and says nothing
// of the one that is gone.
func TestLatestWhileSaving(t *testing.T) {
	for at := range 8 {
		mem := vfstest.NewMem()
		owner := open(t, mem, Options{KeepLast: 1})
		save(t, owner, 8, "a")
		reader := readOnly(mem)
		ops := 0
		reader.fs = &vfstest.Faulty{FS: mem, Hook: func(vfstest.Op) error {
			if ops++; ops == at+2 { // after its list of steps
				save(t, owner, 12, "b")
			}
			return nil
		}}
		c, err := reader.Latest(func(s string) { t.Errorf("warned of %s", s) })
		if err != nil || c.Step != 8 && c.Step != 12 || at == 0 && c.Step != 12 {
			t.Errorf("saved before operation %d: %+v, %v", at+2, c, err)
		}
	}
}
