package checkpoint

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/internal/vfs"
	"antiphase/internal/vfs/vfstest"
)

// TestNoFaultIsSwallowed: whichever file operation of a call other than Save fails, its caller hears of it, unless the
// call can do without.
func TestNoFaultIsSwallowed(t *testing.T) {
	three := func(fsys vfs.FS) {
		s := open(t, fsys, Options{})
		for _, step := range []int64{4, 8, 12} {
			save(t, s, step, "a")
		}
	}
	left := func(name string) func(fsys vfs.FS) { // an interrupted save's folder
		return func(fsys vfs.FS) {
			three(fsys)
			s := open(t, fsys, Options{})
			if err := fsys.Rename(s.path(8), filepath.Join(s.dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	at := func(fsys vfs.FS, opt Options) *Store {
		opt.FS = fsys
		return &Store{dir: filepath.Join(run, folderName), opt: opt, fs: fsys}
	}
	// Nothing is lost if a file that was read does not close.
	reads := func(op vfstest.Op) bool { return op.Kind == "close" }
	for name, c := range map[string]struct {
		before func(vfs.FS)
		least  int
		act    func(vfs.FS) error
		spare  func(vfstest.Op) bool
	}{
		"Open": {nil, 3, func(f vfs.FS) error { _, err := Open(run, Options{FS: f}); return err }, nil},
		"Open with a draft": {left("step-00000008.tmp-0123456789abcdef"), 8,
			func(f vfs.FS) error { _, err := Open(run, Options{FS: f}); return err }, nil},
		"Open with an old": {left("step-00000008.old-0123456789abcdef"), 4,
			func(f vfs.FS) error { _, err := Open(run, Options{FS: f}); return err }, nil},
		"Steps":      {three, 1, func(f vfs.FS) error { _, err := at(f, Options{}).Steps(); return err }, nil},
		"CheckSpace": {three, 1, func(f vfs.FS) error { return at(f, Options{}).CheckSpace(1, 1) }, nil},
		"Begin": {three, 2, func(f vfs.FS) error { _, err := at(f, Options{}).Begin(16); return err },
			func(op vfstest.Op) bool { return op.Kind == "readdir" }},
		"Tidy": {three, 8, func(f vfs.FS) error { return at(f, Options{KeepLast: 1}).Tidy(12) },
			func(op vfstest.Op) bool { return strings.HasSuffix(op.Path, "/latest") }},
		"Tidy without latest": {func(f vfs.FS) { three(f); drop(t, f, latestName) }, 8,
			func(f vfs.FS) error { return at(f, Options{KeepLast: 1}).Tidy(12) },
			func(op vfstest.Op) bool { return op.Kind == "stat" || op.Kind == "open" }},
		"Load": {three, 6, func(f vfs.FS) error { _, err := at(f, Options{}).At(8); return err }, reads},
		"Rewind": {three, 8, func(f vfs.FS) error { _, err := at(f, Options{}).Rewind(4); return err },
			func(op vfstest.Op) bool { return op.Kind != "rename" && op.Kind != "syncdir" && op.Kind != "readdir" }},
	} {
		t.Run(name, func(t *testing.T) {
			if n := vfstest.EachFault(t, c.before, c.act, c.spare); n < c.least {
				t.Errorf("%d operations, want at least %d", n, c.least)
			}
		})
	}
}

func drop(t *testing.T, fsys vfs.FS, name string) {
	t.Helper()
	if err := fsys.Remove(filepath.Join(run, folderName, name)); err != nil {
		t.Fatal(err)
	}
}

// What is said of a checkpoint that is not what its manifest says, each fault in its words and several on one line.
func TestDamageTexts(t *testing.T) {
	for _, c := range []struct {
		change func(mem *vfstest.Mem, s *Store, m Manifest)
		want   string
	}{
		{func(mem *vfstest.Mem, s *Store, m Manifest) { replace(t, mem, file(s, m, 0), []byte("x")) },
			"FIRST: 1 bytes, the manifest says BYTES"},
		{func(mem *vfstest.Mem, s *Store, m Manifest) { must(t, mem.Remove(file(s, m, 0))) },
			"FIRST: the file is missing"},
		{func(mem *vfstest.Mem, s *Store, m Manifest) {
			must(t, mem.Remove(file(s, m, 0)))
			replace(t, mem, file(s, m, 1), make([]byte, m.Files[1].Bytes))
		}, "FIRST: the file is missing; SECOND: sha256 ZEROS, the manifest says SUM"},
		{func(mem *vfstest.Mem, s *Store, _ Manifest) {
			must(t, mem.Remove(filepath.Join(s.path(8), manifestName)))
		}, "MANIFEST.json: the file is missing"},
		{func(mem *vfstest.Mem, s *Store, _ Manifest) {
			replace(t, mem, filepath.Join(s.path(8), manifestName), []byte("{"))
		}, "MANIFEST.json: not a manifest: unexpected end of JSON input"},
		{func(mem *vfstest.Mem, s *Store, _ Manifest) {
			replace(t, mem, filepath.Join(s.path(8), manifestName), []byte("{}"))
		}, "MANIFEST.json: its bytes do not match its own sum"},
		{func(mem *vfstest.Mem, s *Store, m Manifest) { m.Step = 9; put(t, mem, s, m) },
			"MANIFEST.json: it is of step 9"},
		{func(mem *vfstest.Mem, s *Store, m Manifest) { m.Files[1].Name = "../x"; put(t, mem, s, m) },
			`MANIFEST.json: file 1: name "../x" or length BYTES2 cannot be right`},
		{func(mem *vfstest.Mem, s *Store, m Manifest) { m.Files[1].Name = m.Files[0].Name; put(t, mem, s, m) },
			`MANIFEST.json: file 1: name "FIRST" or length BYTES2 cannot be right`},
		{func(mem *vfstest.Mem, s *Store, m Manifest) { m.Files[0].Bytes = -1; put(t, mem, s, m) },
			`MANIFEST.json: file 0: name "FIRST" or length -1 cannot be right`},
		{func(mem *vfstest.Mem, s *Store, m Manifest) { m.Files[0].Name = manifestName; put(t, mem, s, m) },
			`MANIFEST.json: file 0: name "MANIFEST.json" or length BYTES cannot be right`},
	} {
		mem := vfstest.NewMem()
		s := open(t, mem, Options{})
		save(t, s, 8, "a")
		m, err := parseManifest(read(t, mem, filepath.Join(s.path(8), manifestName)))
		if err != nil {
			t.Fatal(err)
		}
		zeros := sumOf(make([]byte, m.Files[1].Bytes))
		want := strings.NewReplacer("FIRST", m.Files[0].Name, "SECOND", m.Files[1].Name, "BYTES2",
			fmt.Sprint(m.Files[1].Bytes), "BYTES", fmt.Sprint(m.Files[0].Bytes), "ZEROS", zeros, "SUM",
			m.Files[1].SHA256).Replace(c.want)
		c.change(mem, s, m)
		if _, err := s.At(8); !errors.Is(err, ErrDamaged) || err.Error() != "damaged checkpoint "+s.path(8)+": "+want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// A step that was not saved is answered with those that were, in order.
func TestTextOfMissingStep(t *testing.T) {
	s := open(t, vfstest.NewMem(), Options{})
	for _, step := range []int64{3, 100000000, 20} {
		save(t, s, step, "a")
	}
	if _, err := s.At(7); !errors.Is(err, ErrNone) ||
		err.Error() != "no checkpoint of step 7 in "+s.Dir()+": it has [3 20 100000000]" {
		t.Error(err)
	}
}

// Negative numbers of checkpoints to keep are refused.
func TestTextOfNegativeKeep(t *testing.T) {
	if _, err := Open(run, Options{FS: vfstest.NewMem(), KeepLast: 3, KeepEvery: -2}); err == nil ||
		err.Error() != "checkpoint: keep last 3, keep every -2: neither may be negative" {
		t.Error(err)
	}
	if _, err := Open(run, Options{FS: vfstest.NewMem(), KeepLast: -1}); err == nil {
		t.Error("a negative number is taken")
	}
}

func file(s *Store, m Manifest, i int) string { return filepath.Join(s.path(8), m.Files[i].Name) }

// put replaces the manifest of step 8 by another that is sealed.
func put(t *testing.T, mem *vfstest.Mem, s *Store, m Manifest) {
	t.Helper()
	b, err := m.render()
	must(t, err)
	replace(t, mem, filepath.Join(s.path(8), manifestName), b)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func sumOf(b []byte) string {
	h := vfs.NewSum(new(counter))
	_, _ = h.Write(b) // neither fails
	return h.SHA256()
}

// A folder that is not a step's name is no checkpoint: too few digits, a sign, anything behind it.
func TestNamesOfSteps(t *testing.T) {
	mem := vfstest.NewMem()
	s := open(t, mem, Options{})
	for _, name := range []string{"step-5", "step-00000005x", "step--0000005", "step-+0000005", "step-000000005",
		"Step-00000005", "00000006", "step-", "latest2", "step-00000007"} {
		must(t, mem.Mkdir(filepath.Join(s.Dir(), name)))
	}
	if steps, err := s.Steps(); err != nil || !slices.Equal(steps, []int64{7}) {
		t.Errorf("%v, %v", steps, err)
	}
}

// An empty file is a file. A manifest of a later format is one whatever its fields are, a damaged replacement is kept
// under a name that says so, and a draft refuses what Save refuses.
func TestKindsOfContents(t *testing.T) {
	mem := vfstest.NewMem()
	s := open(t, mem, Options{})
	must(t, s.Save(8, []File{bytesFile("a", nil), bytesFile("b", []byte("x"))}))
	if c, err := s.At(8); err != nil || c.Manifest.Bytes() != 1 || len(c.Manifest.Files) != 2 {
		t.Errorf("with an empty file: %+v, %v", c, err)
	}
	must(t, mem.Rename(s.path(8), s.path(8)+".old-0123456789abcdef"))
	must(t, mem.Mkdir(s.path(8)))
	s = open(t, mem, Options{})
	names, _ := mem.ReadDir(s.Dir())
	if c, err := s.At(8); err != nil || c.Manifest.Bytes() != 1 ||
		!slices.ContainsFunc(names,
			func(n string) bool { return setAside.MatchString(n) && strings.Contains(n, ".damaged-") }) {
		t.Errorf("a damaged replacement: %+v, %v, %q", c, err, names)
	}
	replace(t, mem, filepath.Join(s.path(8), manifestName), []byte(`{"format":7,"step":"eight","files":{}}`))
	if _, err := s.At(8); !errors.Is(err, ErrNewer) ||
		!strings.HasSuffix(err.Error(), "MANIFEST.json: format 7, this program reads format 1") {
		t.Error(err)
	}
	if _, err := s.Begin(-1); err == nil || err.Error() != "checkpoint: save step -1: a step is not negative" {
		t.Error(err)
	}
	d, err := s.Begin(9)
	must(t, err)
	for _, name := range []string{"../x", manifestName, "Manifest.JSON", ""} {
		if _, err := d.Write([]File{bytesFile(name, nil)}); err == nil || err.Error() != fmt.Sprintf(
			"checkpoint: save step 9: file name %q is taken, or is not made of letters, digits, '.', '_' and '-'",
			name) {
			t.Error(err)
		}
	}
	if _, err := d.Write([]File{bytesFile("a", nil), bytesFile("A", nil)}); err == nil {
		t.Error("two names that some file systems do not tell apart")
	}
	for _, draft := range []string{"step-00000009.old-0123456789abcdef", "step-00000008.tmp-0123456789abcdef",
		"../step-00000009.tmp-0123456789abcdef", "latest.tmp-0123456789abcdef", ""} {
		if _, err := s.Join(9, draft); err == nil ||
			err.Error() != fmt.Sprintf("checkpoint: %q is not a draft of step 9", draft) {
			t.Error(err)
		}
	}
	for name, err := range map[string]error{"save": readOnly(mem).Save(1, nil), "tidy": readOnly(mem).Tidy(1),
		"rewind": second(readOnly(mem).Rewind(1)), "begin": second(readOnly(mem).Begin(1))} {
		if err == nil || !strings.HasSuffix(err.Error(), s.Dir()+" is open for reading only") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func readOnly(fsys vfs.FS) *Store {
	return &Store{dir: filepath.Join(run, folderName), opt: Options{ReadOnly: true}, fs: fsys}
}

func second[T any](_ T, err error) error { return err }
