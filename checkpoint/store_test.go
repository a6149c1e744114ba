package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/internal/vfs"
	"antiphase/internal/vfs/vfstest"
)

const run = "run"

// state is a checkpoint's files; tag makes two states of one step differ.
func state(step int64, tag string) []File {
	return []File{
		bytesFile("state.json", fmt.Appendf(nil, `{"step":%d,"tag":%q}`, step, tag)),
		{"model.safetensors", func(w io.Writer) error {
			for i := range 3 {
				if _, err := fmt.Fprintf(w, "weights %s %d %d;", tag, step, i); err != nil {
					return err
				}
			}
			return nil
		}},
	}
}

func open(t testing.TB, fsys vfs.FS, opt Options) *Store {
	t.Helper()
	opt.FS = fsys
	s, err := Open(run, opt)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func save(t testing.TB, s *Store, step int64, tag string) {
	t.Helper()
	if err := s.Save(step, state(step, tag)); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, fsys vfs.FS, path string) []byte {
	t.Helper()
	f, err := fsys.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func replace(t testing.TB, fsys vfs.FS, path string, b []byte) {
	t.Helper()
	f, err := fsys.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// identity reports which state a checkpoint is, "4/old", after comparing every byte with that state.
func identity(t testing.TB, fsys vfs.FS, c *Checkpoint, tags ...string) string {
	t.Helper()
	for _, tag := range tags {
		same := true
		for _, f := range state(c.Step, tag) {
			var want strings.Builder
			if err := f.Write(&want); err != nil {
				t.Fatal(err)
			}
			same = same && string(read(t, fsys, c.Path(f.Name))) == want.String()
		}
		if same {
			return fmt.Sprintf("%d/%s", c.Step, tag)
		}
	}
	return fmt.Sprintf("%d/unknown", c.Step)
}

func TestSaveAndFind(t *testing.T) {
	mem := vfstest.NewMem()
	s := open(t, mem, Options{})
	if _, err := s.Latest(nil); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), s.Dir()) {
		t.Fatalf("empty run: %v", err)
	}
	for _, step := range []int64{0, 12, 3, 123456789} {
		save(t, s, step, "a")
	}
	if steps, err := s.Steps(); err != nil || !slices.Equal(steps, []int64{0, 3, 12, 123456789}) {
		t.Fatalf("steps %v, %v", steps, err)
	}
	c, err := s.Latest(nil)
	if err != nil || identity(t, mem, c, "a") != "123456789/a" {
		t.Fatalf("latest %+v, %v", c, err)
	}
	if c.Dir != filepath.Join(run, "checkpoints", "step-123456789") ||
		c.Manifest.Bytes() != c.Manifest.Files[0].Bytes+c.Manifest.Files[1].Bytes {
		t.Errorf("folder %s, manifest %+v", c.Dir, c.Manifest)
	}
	if got := string(read(t, mem, filepath.Join(s.Dir(), "latest"))); got != "step-123456789\n" {
		t.Errorf("latest says %q", got)
	}
	if c, err = s.At(12); err != nil || c.Step != 12 {
		t.Errorf("at 12: %+v, %v", c, err)
	}
	if _, err = s.At(13); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "[0 3 12 123456789]") {
		t.Errorf("at 13: %v", err)
	}
	if _, err := s.Rewind(3); err != nil {
		t.Fatal(err)
	}
	if c, err := s.Latest(nil); err != nil || c.Step != 3 {
		t.Errorf("rewound: %+v, %v", c, err)
	}
}

func TestSaveRefuses(t *testing.T) {
	mem := vfstest.NewMem()
	s := open(t, mem, Options{})
	empty := func(name string) File { return bytesFile(name, nil) }
	broken := errors.New("device lost")
	for name, files := range map[string][]File{
		"path":      {empty("../x")},
		"absolute":  {empty("/x")},
		"backslash": {empty(`a\b`)},
		"hidden":    {empty(".x")},
		"no name":   {empty("")},
		"NUL":       {empty("a\x00")},
		"manifest":  {empty("MANIFEST.json")},
		"twice":     {empty("a"), empty("A")},
		"own error": {empty("a"), {"b", func(io.Writer) error { return broken }}},
	} {
		if err := s.Save(1, files); err == nil {
			t.Errorf("%s: saved", name)
		} else if name == "own error" &&
			(!errors.Is(err, broken) || !strings.Contains(err.Error(), "step 1: write b: device lost")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.Save(-1, nil); err == nil {
		t.Error("negative step: saved")
	}
	if names, _ := mem.ReadDir(s.Dir()); len(names) != 0 {
		t.Errorf("left behind %q", names)
	}
	if _, err := Open(run, Options{FS: mem, KeepLast: -1}); err == nil {
		t.Error("negative KeepLast: accepted")
	}
}

func TestKeep(t *testing.T) {
	for _, c := range []struct {
		last, every int
		want        []int64
	}{
		{0, 0, []int64{1, 2, 3, 4, 5, 6, 7}},
		{1, 0, []int64{7}},
		{2, 0, []int64{6, 7}},
		{2, 3, []int64{3, 6, 7}},
		{1, 2, []int64{2, 4, 6, 7}},
		{9, 2, []int64{1, 2, 3, 4, 5, 6, 7}},
	} {
		s := open(t, vfstest.NewMem(), Options{KeepLast: c.last, KeepEvery: c.every})
		for step := range int64(7) {
			save(t, s, step+1, "a")
		}
		if got, _ := s.Steps(); !slices.Equal(got, c.want) {
			t.Errorf("keep last %d, every %d: %v, want %v", c.last, c.every, got, c.want)
		}
	}
}

// TestKeepSparesTheFuture: a save at an earlier step counts and deletes only what came before it.
func TestKeepSparesTheFuture(t *testing.T) {
	mem := vfstest.NewMem()
	all := open(t, mem, Options{})
	for _, step := range []int64{2, 4, 20, 30} {
		save(t, all, step, "a")
	}
	save(t, open(t, mem, Options{KeepLast: 1}), 6, "b")
	if got, _ := all.Steps(); !slices.Equal(got, []int64{6, 20, 30}) {
		t.Errorf("left %v", got)
	}
}

func TestReadOnly(t *testing.T) {
	mem := vfstest.NewMem()
	viewer := open(t, mem, Options{ReadOnly: true})
	if _, err := viewer.Latest(nil); !errors.Is(err, ErrNone) {
		t.Errorf("no folder: %v", err)
	}
	if _, err := mem.Stat(run); err == nil {
		t.Error("a reader made the run folder")
	}
	save(t, open(t, mem, Options{}), 1, "a")
	busy := filepath.Join(run, "checkpoints", "step-00000002.tmp-0123456789abcdef")
	if err := mem.Mkdir(busy); err != nil {
		t.Fatal(err)
	}
	viewer = open(t, mem, Options{ReadOnly: true})
	if c, err := viewer.Latest(nil); err != nil || c.Step != 1 {
		t.Errorf("latest %+v, %v", c, err)
	}
	if _, err := viewer.Rewind(0); err == nil || viewer.Save(2, nil) == nil {
		t.Error("a reader wrote")
	}
	if _, err := mem.Stat(busy); err != nil {
		t.Error("a reader deleted a save in progress")
	}
	open(t, mem, Options{})
	if _, err := mem.Stat(busy); err == nil {
		t.Error("the owner left the unfinished folder")
	}
}

// TestOpenSparesOthers: what does not look exactly like a leftover is not ours to delete.
func TestOpenSparesOthers(t *testing.T) {
	mem := vfstest.NewMem()
	dir := open(t, mem, Options{}).Dir()
	names := []string{"best", "notes.tmp-0123456789abcdef", "step-00000001.tmp-",
		"step-1.tmp-0123456789abcdef", "step-x"}
	for _, name := range names {
		if err := mem.Mkdir(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, mem, Options{})
	if got, _ := mem.ReadDir(dir); !slices.Equal(got, names) {
		t.Errorf("left %q of %q", got, names)
	}
	if steps, err := s.Steps(); len(steps) != 0 || err != nil {
		t.Errorf("steps %v, %v", steps, err)
	}
}

// TestSameBytes: one state saved twice, in another order, on the real file system gives byte-equal folders.
func TestSameBytes(t *testing.T) {
	var dirs []string
	for i := range 2 {
		s, err := Open(t.TempDir(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		files := state(7, "a")
		if i == 1 {
			slices.Reverse(files)
		}
		if err := s.Save(7, files); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, filepath.Join(s.Dir(), "step-00000007"))
	}
	for _, name := range []string{"MANIFEST.json", "model.safetensors", "state.json"} {
		a, b := read(t, vfs.OS{}, filepath.Join(dirs[0], name)), read(t, vfs.OS{}, filepath.Join(dirs[1], name))
		if len(a) == 0 || string(a) != string(b) {
			t.Errorf("%s differs:\n%s\n%s", name, a, b)
		}
	}
	moved := filepath.Join(t.TempDir(), "best")
	if err := os.Rename(dirs[0], moved); err != nil {
		t.Fatal(err)
	}
	if c, err := Load(moved); err != nil || c.Step != 7 {
		t.Errorf("moved checkpoint: %+v, %v", c, err)
	}
	if _, err := Load(dirs[0]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing folder: %v", err)
	}
	if _, err := Load(t.TempDir()); !errors.Is(err, ErrDamaged) {
		t.Errorf("empty folder: %v", err)
	}
}

// TestTidy ends what a Save that was killed after its rename had still to do.
func TestTidy(t *testing.T) {
	mem := vfstest.NewMem()
	s := open(t, mem, Options{})
	save(t, s, 2, "a")
	save(t, s, 4, "a")
	if err := s.writeLatest(2); err != nil {
		t.Fatal(err)
	}
	s = open(t, mem, Options{KeepLast: 1})
	if err := s.Tidy(4); err != nil {
		t.Fatal(err)
	}
	steps, err := s.Steps()
	if text := string(read(t, mem, filepath.Join(s.Dir(), latestName))); err != nil ||
		!slices.Equal(steps, []int64{4}) || text != "step-00000004\n" {
		t.Errorf("steps %d, latest %q (%v)", steps, text, err)
	}
	if viewer := open(t, mem, Options{ReadOnly: true}); viewer.Tidy(4) == nil {
		t.Error("a reader tidied up")
	}
}
