package checkpoint

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"antiphase/internal/vfs"
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
		"newer": {func(mem *vfstest.Mem, s *Store) { save(t, s, step, "new"); newerManifest(t, mem, s, step) },
			true, "", false},
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
				if name == "unreadable" && op.Kind == "open" &&
					strings.HasPrefix(op.Path, s.path(step)+string(filepath.Separator)) {
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
		{"", "", nil}, {files[0], "", ErrDamaged}, {files[1], "", ErrDamaged}, {"", files[0], ErrUnreadable},
		{"", files[1], ErrUnreadable},
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
		"a b": true, "a A": false, "A a": false, "Ab aB": false, "MANIFEST.json": false, "manifest.JSON": false,
		"a-b_c.9": true, "a b a": false, "ä": false, "a+b": false,
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

// TestKeepByDefinition: after every save of a random course the checkpoints are the last KeepLast and those that
// KeepEvery divides; later steps of another course stay, damaged ones that were set aside go with the steps before the
// first kept, and whole ones that were set aside stay.
func TestKeepByDefinition(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 9))
	for range 60 {
		last, every := g.IntN(4), g.IntN(4)
		mem := vfstest.NewMem()
		s := open(t, mem, Options{KeepLast: last, KeepEvery: every})
		have, damaged := map[int64]bool{}, map[string]int64{}
		whole := s.path(3) + ".aside-0123456789abcdef"
		if err := mem.Mkdir(whole); err != nil {
			t.Fatal(err)
		}
		for n := range 12 {
			step := int64(g.IntN(20))
			if n%3 == 2 {
				at := int64(g.IntN(20))
				name := fmt.Sprintf("%s.damaged-%016x", s.path(at), n)
				if err := mem.Mkdir(name); err != nil {
					t.Fatal(err)
				}
				damaged[name] = at
			}
			save(t, s, step, "x")
			have[step] = true
			if last > 0 {
				var upTo []int64
				for h := range have {
					if h <= step {
						upTo = append(upTo, h)
					}
				}
				slices.Sort(upTo)
				cut := max(0, len(upTo)-last)
				for _, h := range upTo[:cut] {
					if every == 0 || h%int64(every) != 0 {
						delete(have, h)
					}
				}
				for name, at := range damaged {
					if at < upTo[cut] {
						delete(damaged, name)
					}
				}
			}
			got, err := s.Steps()
			if want := slices.Sorted(maps.Keys(have)); err != nil || !slices.Equal(got, want) {
				t.Fatalf("last %d, every %d, after step %d: %d, want %d (%v)", last, every, step, got, want, err)
			}
			left, _ := vfs.Glob(mem, s.Dir(), "*.damaged-*")
			if want := slices.Sorted(maps.Keys(damaged)); !slices.Equal(left, want) || !vfs.Exists(mem, whole) {
				t.Fatalf("last %d, every %d, after step %d: set aside %q, want %q", last, every, step, left, want)
			}
			if text := string(read(t, mem, filepath.Join(s.Dir(), latestName))); text != fmt.Sprintf("step-%08d\n",
				step) {
				t.Fatalf("latest is %q after step %d", text, step)
			}
		}
	}
}

// TestStepNames: what is a checkpoint of a step, by its name, and what is not.
func TestStepNames(t *testing.T) {
	mem := vfstest.NewMem()
	s := open(t, mem, Options{})
	for _, name := range []string{"step-00000010", "step-00000009", "step-123456789", "step-99999999", "step-9",
		"step-0000000010", "step--0000001", "step-00000011.tmp", "other", "step-"} {
		if err := mem.Mkdir(filepath.Join(s.Dir(), name)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.Steps(); err != nil || !slices.Equal(got, []int64{9, 10, 99999999, 123456789}) {
		t.Errorf("%d, %v", got, err)
	}
	if _, err := s.At(8); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "step 8") ||
		!strings.Contains(err.Error(), "[9 10 99999999 123456789]") {
		t.Errorf("a step that is not there: %v", err)
	}
	if _, err := s.At(9); !errors.Is(err, ErrDamaged) || errors.Is(err, ErrNone) {
		t.Errorf("an empty folder: %v", err)
	}
	save(t, s, 12, "x")
	if err := mem.Rename(s.path(12), s.path(13)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.At(13); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "it is of step 12") {
		t.Errorf("a checkpoint under another step's name: %v", err)
	}
	for name, good := range map[string]bool{"step-00000008.tmp-0123456789abcdef": true,
		"step-00000008.old-0123456789abcdef": false, "step-00000007.tmp-0123456789abcdef": false,
		"step-00000008.tmp-0123": false, "../step-00000008.tmp-0123456789abcdef": false,
		"latest.tmp-0123456789abcdef": false, "": false} {
		if _, err := s.Join(8, name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, o := range []Options{{KeepLast: -1}, {KeepEvery: -1}} {
		if _, err := Open("x", o); err == nil {
			t.Errorf("%+v passes", o)
		}
	}
}

// TestSeal: a draft is committed only if every file that was written is there once, with its length; otherwise nothing
// is left of it, and what was there stays.
func TestSeal(t *testing.T) {
	for name, change := range map[string]func(list []Entry) []Entry{
		"":                                  func(list []Entry) []Entry { return list },
		"two processes wrote b":             func(list []Entry) []Entry { return append(list, list[1]) },
		"all processes must see one folder": func(list []Entry) []Entry { return append(list, Entry{Name: "c"}) },
		"b has 3 bytes, its writer says 4":  func(list []Entry) []Entry { list[1].Bytes++; return list },
	} {
		mem := vfstest.NewMem()
		s := open(t, mem, Options{})
		save(t, s, 8, "old")
		d, err := s.Begin(8)
		if err != nil {
			t.Fatal(err)
		}
		list, err := d.Write([]File{bytesFile("a", []byte("x")), bytesFile("b", []byte("xyz"))})
		if err != nil || len(list) != 2 || list[0].Bytes != 1 || list[1].Bytes != 3 {
			t.Fatalf("%+v, %v", list, err)
		}
		err = d.Commit(change(list))
		if name == "" {
			if c, at := s.At(8); err != nil || at != nil || len(c.Manifest.Files) != 2 || c.Manifest.Bytes() != 4 {
				t.Errorf("committed %+v, %v, %v", c, err, at)
			}
		} else if c, at := s.At(8); err == nil || !strings.Contains(err.Error(), name) || at != nil ||
			identity(t, mem, c, "old") != "8/old" {
			t.Errorf("%q: %v, %v", name, err, at)
		}
		if names, _ := mem.ReadDir(s.Dir()); len(names) != 2 { // the step and latest
			t.Errorf("%q: %q are left", name, names)
		}
	}
}

// latestByDefinition is the newest whole one of three checkpoints and the number of damaged ones after it, or 0 and why
// there is none to take: all are damaged, or a newer format or an unreadable file comes first.
func latestByDefinition(state map[int64]string) (step int64, warnings int, wrong error) {
	for step := int64(3); step >= 1; step-- {
		switch state[step] {
		case "whole":
			return step, warnings, nil
		case "newer":
			return 0, warnings, ErrNewer
		case "unreadable":
			return 0, warnings, ErrUnreadable
		}
		warnings++
	}
	return 0, warnings, ErrDamaged
}

// TestLatestOfMany: for every state of three checkpoints, which is taken, which are reported, and which error there is.
func TestLatestOfMany(t *testing.T) {
	states := []string{"whole", "damaged", "newer", "unreadable"}
	for n := range 64 {
		state := map[int64]string{1: states[n%4], 2: states[n/4%4], 3: states[n/16]}
		mem := vfstest.NewMem()
		s := open(t, mem, Options{})
		for step := int64(1); step <= 3; step++ {
			save(t, s, step, "x")
			switch state[step] {
			case "damaged":
				replace(t, mem, filepath.Join(s.path(step), "state.json"), []byte("other"))
			case "newer":
				newerManifest(t, mem, s, step)
			}
		}
		s.fs = &vfstest.Faulty{FS: mem, Hook: func(op vfstest.Op) error {
			for step, x := range state {
				if x == "unreadable" && op.Kind == "open" &&
					strings.HasPrefix(op.Path, s.path(step)+string(filepath.Separator)) {
					return syscall.EACCES
				}
			}
			return nil
		}}
		var warned []string
		c, err := s.Latest(func(w string) { warned = append(warned, w) })
		want, warnings, wrong := latestByDefinition(state)
		if want > 0 && (err != nil || c.Step != want) || want == 0 && (c != nil || !errors.Is(err, wrong)) {
			t.Errorf("%v: %v, %v; want step %d, %v", state, c, err, want, wrong)
		}
		for _, other := range []error{ErrDamaged, ErrNewer, ErrUnreadable} {
			if other != wrong && errors.Is(err, other) {
				t.Errorf("%v: %v is also an %v", state, err, other)
			}
		}
		if want > 0 && len(warned) != warnings {
			t.Errorf("%v: warned %q", state, warned)
		}
		if wrong == ErrDamaged {
			for step := 1; step <= 3; step++ {
				if !strings.Contains(err.Error(), fmt.Sprintf("step-%08d", step)) {
					t.Errorf("%v does not name step %d", err, step)
				}
			}
		}
	}
}
