package hf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/internal/vfs/vfstest"
	"antiphase/model"
)

// TestExportReplaces keeps what is there unless told otherwise.
func TestExportReplaces(t *testing.T) {
	m := trained(t, nano(t, "diff2", nothing))
	e := &Export{Config: m.Config, Values: valuesOf(m)}
	dir := t.TempDir() // empty: nothing to lose
	if err := e.Write(dir, false); err != nil {
		t.Fatal(err)
	}
	if err := e.Write(dir, false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error %v, want one that says the folder exists", err)
	}
	e.DType = "bfloat16"
	if err := e.Write(dir, true); err != nil {
		t.Fatal(err)
	}
	if m, err := ReadManifest(dir); err != nil || len(m.Files) < 3 {
		t.Errorf("manifest %v, error %v", m, err)
	} else if changed, err := m.Changed(dir); err != nil || changed != nil {
		t.Errorf("changed %v, error %v", changed, err)
	}
	path := filepath.Join(dir, "config.json")
	if err := e.Write(path, true); err == nil || !strings.Contains(err.Error(), "not a folder") {
		t.Errorf("a file in the way: error %v", err)
	}
}

// TestExportKeepsForeign: a forced export replaces an untouched export and nothing else.
func TestExportKeepsForeign(t *testing.T) {
	m := trained(t, nano(t, "diff2", func(c *model.Config) { c.Layers = 1 }))
	e := &Export{Config: m.Config, Values: valuesOf(m), Files: map[string][]byte{"README.md": []byte("x")}}
	for _, x := range []struct {
		name string
		text string
		make func(dir string)
	}{
		{"a thesis", "was not written by export", func(dir string) {
			os.RemoveAll(dir)
			os.Mkdir(dir, 0o777)
			write(t, dir, "thesis.tex", []byte("x"))
		}},
		{"notes in an export", `"notes.txt", which export did not write`,
			func(dir string) { write(t, dir, "notes.txt", []byte("x")) }},
		{"a folder in an export", `"data", which export did not write`,
			func(dir string) { os.Mkdir(filepath.Join(dir, "data"), 0o777) }},
		{"an edited card", `"README.md", which was changed`,
			func(dir string) { write(t, dir, "README.md", []byte("y")) }},
		{"a link for a file", `"README.md", which was changed`, func(dir string) {
			os.Rename(filepath.Join(dir, "README.md"), filepath.Join(filepath.Dir(dir), "y")) // the link is made below
		}},
		{"a link for the manifest", "antiphase.json is not a file", func(dir string) {
			os.Rename(filepath.Join(dir, ManifestFile), filepath.Join(filepath.Dir(dir), "y"))
		}},
		{"a link for the folder", "already exists and is not a folder",
			func(dir string) { os.Rename(dir, filepath.Join(filepath.Dir(dir), "y")) }},
		{"another's manifest", ManifestFile, func(dir string) { write(t, dir, ManifestFile, []byte("{}")) }},
		{"a manifest with paths", "not a plain file name", func(dir string) {
			write(t, dir, ManifestFile,
				[]byte(`{"kind": "antiphase export", "format": 1, "files": [{"name": "../x"}]}`))
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			if err := e.Write(dir, false); err != nil {
				t.Fatal(err)
			}
			x.make(dir)
			switch x.name {
			case "a link for a file":
				vfstest.Symlink(t, "../y", filepath.Join(dir, "README.md"))
			case "a link for the manifest":
				vfstest.Symlink(t, "../y", filepath.Join(dir, ManifestFile))
			case "a link for the folder":
				vfstest.Symlink(t, "y", dir)
			}
			before := listing(t, filepath.Dir(dir))
			err := e.Write(dir, true)
			if err == nil || !strings.Contains(err.Error(), x.text) || !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("error %v, want one with %q", err, x.text)
			}
			if after := listing(t, filepath.Dir(dir)); after != before {
				t.Errorf("was\n%s\nis\n%s", before, after)
			}
		})
	}
}

// listing is every name and its contents below a folder.
func listing(t *testing.T, dir string) (s string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		b, _ := os.ReadFile(path)
		s += fmt.Sprintf("%s %v %x\n", path, d.Type(), b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestExportFaults fails every operation on the file system in turn: the folder is the old one or the new one, whole,
// and nothing lies beside it.
func TestExportFaults(t *testing.T) {
	m := trained(t, nano(t, "diff2", func(c *model.Config) { c.Layers = 1 }))
	e := &Export{Config: m.Config, Values: valuesOf(m), Files: map[string][]byte{"README.md": []byte("x")}}
	dir := filepath.Join(string(filepath.Separator), "models", "x")
	for at, more := 0, true; more; at++ {
		mem := vfstest.NewMem()
		if err := publish(mem, dir, []file{{"old", contents(nil)}}, false); err != nil {
			t.Fatal(err)
		}
		more = false
		var failed vfstest.Op
		e.FS = &vfstest.Faulty{FS: mem, Hook: func(op vfstest.Op) error {
			if op.Index == at {
				failed, more = op, true
				return errors.New("fault")
			}
			return nil
		}}
		err := e.Write(dir, true)
		names, _ := mem.ReadDir(dir)
		beside, _ := mem.ReadDir(filepath.Dir(dir))
		whole := slices.Contains(names, "config.json") && slices.Contains(names, weightsFile) &&
			slices.Contains(names, "README.md")
		switch {
		case err == nil && (more && (failed.Kind != "readdir" || failed.Path == dir) || !whole):
			// What lies beside it may stay unread.
			t.Errorf("%v: no error, and %v", failed, names)
		case !whole && !slices.Equal(names, []string{ManifestFile, "old"}):
			t.Errorf("%v: the folder holds %v", failed, names)
		case len(beside) != 1 && failed.Kind != "remove" && !whole:
			t.Errorf("%v: left %v", failed, beside)
		}
	}
}
