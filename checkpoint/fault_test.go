package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"

	"antiphase/internal/vfs/vfstest"
)

// stateBytes is the length of the new state's files.
func stateBytes(t testing.TB) int64 {
	var n counter
	for _, f := range state(8, "new") {
		if err := f.Write(&n); err != nil {
			t.Fatal(err)
		}
	}
	return int64(n)
}

// TestFaultAnywhere fails each operation of a Save, once or from then on: the error is surfaced, the old state is as it
// was unless the error reports that the new one is safe, and with the fault gone the next Save succeeds.
func TestFaultAnywhere(t *testing.T) {
	faults := map[string]struct {
		err   error
		short bool
	}{
		"EIO":         {syscall.EIO, false},
		"ENOSPC":      {syscall.ENOSPC, false},
		"short write": {errors.New("short"), true},
	}
	for _, sc := range scenarios {
		for name, fault := range faults {
			for _, lasting := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/%v", sc.name, name, lasting), func(t *testing.T) {
					for at := 0; failAt(t, sc, fault.err, fault.short, lasting, at); at++ {
					}
				})
			}
		}
	}
}

// failAt fails operation number at of a Save and reports whether there was one.
func failAt(t *testing.T, sc scenario, fault error, short, lasting bool, at int) bool {
	t.Helper()
	mem := vfstest.NewMem()
	sc.before(t, mem)
	open(t, mem, Options{})
	mem = mem.Clone()
	var hit *vfstest.Op
	fsys := &vfstest.Faulty{FS: mem, Short: short, Hook: func(op vfstest.Op) error {
		fits := !short || op.Kind == "write"
		if fits && op.Index >= at && (lasting || hit == nil) {
			hit = &op
			return fault
		}
		return nil
	}}
	s := &Store{dir: open(t, mem, Options{}).Dir(), opt: sc.opt, fs: fsys}
	err := s.Save(8, state(8, "new"))
	if hit == nil {
		if err != nil {
			t.Fatal(err)
		}
		return false
	}
	if err == nil && hit.Index > 0 { // the first operation looks for leftovers, and a Save can do without
		t.Fatalf("fault at %v: no error", hit)
	}
	checkFault(t, sc, mem, err, fault, lasting, hit)
	return true
}

func checkFault(t *testing.T, sc scenario, mem *vfstest.Mem, err, fault error, lasting bool, hit *vfstest.Op) {
	t.Helper()
	committed := err == nil || errors.Is(err, ErrCommitted)
	if fault == syscall.ENOSPC && !committed {
		var full *SpaceError
		if !errors.Is(err, ErrNoSpace) || !errors.As(err, &full) || full.Need != stateBytes(t) ||
			!strings.Contains(err.Error(), full.Path) {
			t.Fatalf("fault at %v: %v, want an ErrNoSpace with the path and %d bytes", hit, err, stateBytes(t))
		}
	}
	if names, _ := mem.ReadDir(run + "/" + folderName); !lasting && !committed &&
		slices.ContainsFunc(names, leftover.MatchString) {
		t.Fatalf("fault at %v: left %q", hit, names)
	}
	for _, left := range after(mem, hit.Index, 4) {
		s := found(t, sc, left, committed, fmt.Sprintf("after %v failed", hit))
		save(t, s, 9, "new")
		if c, err := s.Latest(nil); err != nil || identity(t, left, c, "new") != "9/new" {
			t.Fatalf("fault at %v: the next save gives %+v, %v", hit, c, err)
		}
	}
	if !lasting && !committed && sc.count > 0 {
		if c, err := open(t, mem, Options{}).Latest(nil); err != nil || identity(t, mem, c, "old", "new") != sc.old {
			t.Fatalf("fault at %v: the failed checkpoint is found: %+v, %v", hit, c, err)
		}
	}
}

// TestFullDisk gives the volume every size from too small for anything to just enough.
func TestFullDisk(t *testing.T) {
	base := vfstest.NewMem()
	save(t, open(t, base, Options{}), 4, "old")
	base.Cap = 1 << 30
	free, err := base.Free(run)
	if err != nil {
		t.Fatal(err)
	}
	used := base.Cap - free
	fits := false
	for room := int64(0); !fits; room++ {
		mem := base.Clone()
		mem.Cap = used + room
		s := open(t, mem, Options{KeepLast: 1})
		err := s.Save(8, state(8, "new"))
		want := "4/old"
		switch {
		case err == nil:
			fits = true
			want = newState
		case errors.Is(err, ErrCommitted): // only `latest` did not fit
			want = newState
		default:
			var full *SpaceError
			if !errors.As(err, &full) || full.Free != room || full.Need != stateBytes(t) {
				t.Fatalf("room for %d: %v", room, err)
			}
		}
		if c, err := s.Latest(nil); err != nil || identity(t, mem, c, "old", "new") != want {
			t.Fatalf("room for %d: found %+v, %v, want %s", room, c, err, want)
		}
	}
}

func TestCheckSpace(t *testing.T) {
	mem := vfstest.NewMem()
	s := open(t, mem, Options{})
	mem.Cap = 100
	if err := s.CheckSpace(2, 50); err != nil {
		t.Error(err)
	}
	if err := s.CheckSpace(3, 50); !errors.Is(err, ErrNoSpace) ||
		!strings.Contains(err.Error(), "100 bytes are free, room for 2") {
		t.Errorf("three of 50 in 100: %v", err)
	}
	real, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := real.CheckSpace(1, 1); err != nil {
		t.Error(err)
	}
	if err := real.CheckSpace(1, 1<<62); !errors.Is(err, ErrNoSpace) {
		t.Errorf("4 EiB fit: %v", err)
	}
}

// TestNeedOfBrokenWriter: a full disk stays the error when counting fails.
func TestNeedOfBrokenWriter(t *testing.T) {
	mem := vfstest.NewMem()
	s := open(t, mem, Options{})
	mem.Cap = 1
	calls := 0
	err := s.Save(1, []File{{"a", func(w io.Writer) error {
		if calls++; calls > 1 {
			return errors.New("only once")
		}
		_, err := w.Write(make([]byte, 4<<20))
		return err
	}}})
	if !errors.Is(err, ErrNoSpace) || calls != 2 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

// TestOpenFaults: a checkpoint half way through its replacement survives an Open that fails at any operation.
func TestOpenFaults(t *testing.T) {
	base := vfstest.NewMem()
	s := open(t, base, Options{})
	save(t, s, 8, "old")
	if err := base.Rename(s.path(8), s.path(8)+".old-0123456789abcdef"); err != nil {
		t.Fatal(err)
	}
	for at := 0; ; at++ {
		mem := base.Clone()
		hit := ""
		_, err := Open(run, Options{FS: &vfstest.Faulty{FS: mem, Hook: func(op vfstest.Op) error {
			if op.Index != at {
				return nil
			}
			hit = op.String()
			return syscall.EIO
		}}})
		if hit == "" {
			break
		}
		if err == nil {
			t.Errorf("fault at %s: no error", hit)
		}
		if c, err := open(t, mem, Options{}).Latest(nil); err != nil || identity(t, mem, c, "old") != "8/old" {
			t.Errorf("fault at %s: found %+v, %v", hit, c, err)
		}
	}
}

// TestSaveClearsLeftovers: what a failed Save could not delete, the next one does, without a restart.
func TestSaveClearsLeftovers(t *testing.T) {
	mem := vfstest.NewMem()
	broken := true
	fsys := &vfstest.Faulty{FS: mem, Hook: func(op vfstest.Op) error {
		if broken && (op.Kind == "sync" || op.Kind == "remove") {
			return syscall.EIO
		}
		return nil
	}}
	s := open(t, fsys, Options{})
	left := func() bool {
		names, err := mem.ReadDir(s.Dir())
		return err != nil || slices.ContainsFunc(names, leftover.MatchString)
	}
	if err := s.Save(1, state(1, "a")); !errors.Is(err, syscall.EIO) || !left() {
		t.Fatalf("broken disk: %v", err)
	}
	broken = false
	save(t, s, 2, "a")
	if left() {
		t.Error("the next save left the failed one's folder")
	}
}
