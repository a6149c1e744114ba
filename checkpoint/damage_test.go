package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/internal/vfs/vfstest"
)

// damaged has whole checkpoints of steps 4 and 8; the file under test is in the newer one.
func damaged(t testing.TB) (*vfstest.Mem, *Store) {
	mem := vfstest.NewMem()
	s := open(t, mem, Options{})
	save(t, s, 4, "a")
	save(t, s, 8, "a")
	return mem, s
}

// walksBack holds Latest to name the file in the newer checkpoint and to give the older one.
func walksBack(t *testing.T, mem *vfstest.Mem, s *Store, file, what string, at int) {
	t.Helper()
	var warned []string
	c, err := s.Latest(func(w string) { warned = append(warned, w) })
	if err != nil || identity(t, mem, c, "a") != "4/a" {
		t.Fatalf("%s of %s at %d: found %+v, %v", what, file, at, c, err)
	}
	if len(warned) != 1 || !strings.Contains(warned[0], "step-00000008") || !strings.Contains(warned[0], file) {
		t.Fatalf("%s of %s at %d: warned %q", what, file, at, warned)
	}
}

// TestEveryFlipAndCut flips every bit and cuts at every length: each is noticed, named and walked past.
func TestEveryFlipAndCut(t *testing.T) {
	mem, s := damaged(t)
	count := 0
	for _, file := range []string{"MANIFEST.json", "model.safetensors", "state.json"} {
		path := filepath.Join(s.path(8), file)
		whole := read(t, mem, path)
		for at := range whole {
			for bit := range 8 {
				b := slices.Clone(whole)
				b[at] ^= 1 << bit
				replace(t, mem, path, b)
				walksBack(t, mem, s, file, "flip", at*8+bit)
				count++
			}
			replace(t, mem, path, whole[:at])
			walksBack(t, mem, s, file, "cut", at)
			count++
		}
		replace(t, mem, path, append(slices.Clone(whole), ' '))
		walksBack(t, mem, s, file, "growth", len(whole))
		replace(t, mem, path, whole)
		if c, err := s.Latest(nil); err != nil || c.Step != 8 {
			t.Fatalf("restored: %+v, %v", c, err)
		}
	}
	t.Logf("%d flips and cuts", count)
}

func TestMissingFiles(t *testing.T) {
	for _, file := range []string{"MANIFEST.json", "model.safetensors", "state.json"} {
		mem, s := damaged(t)
		if err := mem.Remove(filepath.Join(s.path(8), file)); err != nil {
			t.Fatal(err)
		}
		walksBack(t, mem, s, file, "removal", 0)
		if _, err := s.At(8); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s missing: At gives %v", file, err)
		}
	}
}

// TestNoneWhole: all are named in the error, and it is not taken for an empty run.
func TestNoneWhole(t *testing.T) {
	mem, s := damaged(t)
	for _, step := range []int64{4, 8} {
		replace(t, mem, filepath.Join(s.path(step), "state.json"), nil)
	}
	_, err := s.Latest(nil)
	if !errors.Is(err, ErrDamaged) || errors.Is(err, ErrNone) {
		t.Fatalf("none whole: %v", err)
	}
	for _, want := range []string{"step-00000004: state.json", "step-00000008: state.json"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

// TestWrongPlace: a checkpoint under another step's name is not that step's.
func TestWrongPlace(t *testing.T) {
	mem, s := damaged(t)
	if err := mem.Rename(s.path(8), s.path(9)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.At(9); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "it is of step 8") {
		t.Errorf("moved: %v", err)
	}
}

// TestManifestRefused: manifests with a right sum but names or lengths that no Save writes.
func TestManifestRefused(t *testing.T) {
	sum := strings.Repeat("0", 64)
	for name, m := range map[string]Manifest{
		"newer format": {Format: 2},
		"path":         {Format: 1, Files: []Entry{{"../../etc/passwd", 1, sum}}},
		"absolute":     {Format: 1, Files: []Entry{{"/etc/passwd", 1, sum}}},
		"itself":       {Format: 1, Files: []Entry{{manifestName, 1, sum}}},
		"negative":     {Format: 1, Files: []Entry{{"a", -1, sum}}},
		"twice":        {Format: 1, Files: []Entry{{"a", 1, sum}, {"a", 1, sum}}},
		"unsorted":     {Format: 1, Files: []Entry{{"b", 1, sum}, {"a", 1, sum}}},
	} {
		b, err := m.render()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseManifest(b); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	mem, s := damaged(t)
	replace(t, mem, filepath.Join(s.path(8), manifestName), make([]byte, maxManifest+1))
	if _, err := s.At(8); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("giant manifest: %v", err)
	}
}

// FuzzManifest: no bytes panic, and only the one spelling of a manifest is accepted.
func FuzzManifest(f *testing.F) {
	mem, s := damaged(f)
	f.Add(read(f, mem, filepath.Join(s.path(8), manifestName)))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseManifest(b)
		if err != nil {
			return
		}
		if again, err := m.render(); err != nil || string(again) != string(b) {
			t.Fatalf("accepted %q, renders %q, %v", b, again, err)
		}
	})
}

// TestDocumentedManifest: the example in the format's page is a manifest that is accepted as it stands.
func TestDocumentedManifest(t *testing.T) {
	page, err := os.ReadFile("../docs/format/checkpoint.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(strings.ReplaceAll(string(page), "\r\n", "\n"), "\n## MANIFEST.json\n\n```json\n")
	text, _, ok := strings.Cut(rest, "```")
	m, err := parseManifest([]byte(text))
	if !ok || err != nil {
		want, _ := m.render()
		t.Fatalf("%v; it should read\n%s", err, want)
	}
}

// TestLengthIsNamed: a file of another length is told by its length, before its megabytes are hashed.
func TestLengthIsNamed(t *testing.T) {
	mem := vfstest.NewMem()
	s := open(t, mem, Options{})
	save(t, s, 4, "a")
	path := filepath.Join(s.path(4), "state.json")
	whole := read(t, mem, path)
	replace(t, mem, path, whole[:len(whole)-1])
	want := fmt.Sprintf("state.json: %d bytes, the manifest says %d", len(whole)-1, len(whole))
	if _, err := s.At(4); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}
