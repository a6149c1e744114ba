package hf

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/internal/vfs/vfstest"
	"antiphase/model"
)

// A power loss at any operation leaves at the folder's name nothing, the old export or the new one, each with the bytes
// of its manifest; once an export has returned, the new one.
func TestExportCrash(t *testing.T) {
	dir := filepath.Join(string(filepath.Separator), "models", "x")
	text := func(s string) func(io.Writer) error { return contents([]byte(strings.Repeat(s, 3000))) }
	mem := vfstest.NewMem()
	if err := publish(mem, dir, []file{{"a", text("old")}}, false); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	seen := map[string]bool{}
	look := func(when string, m *vfstest.Mem) string {
		names, err := m.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return "nothing"
		}
		if _, err := ours(m, dir); err != nil {
			t.Errorf("%s: %v %v", when, names, err)
		}
		return strings.Join(names, " ")
	}
	faulty := &vfstest.Faulty{FS: mem, Hook: func(op vfstest.Op) error {
		seen[look(op.String()+", synced", mem.Crash(nil))] = true
		for range 3 {
			seen[look(op.String(), mem.Crash(rng))] = true
		}
		return nil
	}}
	if err := publish(faulty, dir, []file{{"a", text("new")}, {"b", text("more")}}, true); err != nil {
		t.Fatal(err)
	}
	if got := look("at the end", mem.Crash(nil)); got != "a antiphase.json b" {
		t.Errorf("at the end the folder holds %s", got)
	}
	if !seen["a antiphase.json"] || !seen["a antiphase.json b"] {
		t.Errorf("met only %v", seen)
	}
	if names, _ := mem.ReadDir(filepath.Dir(dir)); !slices.Equal(names, []string{"x"}) {
		t.Errorf("beside the folder: %v", names)
	}
}

// A manifest lists every other file by name with its size and hash, and says which of them no longer fit.
func TestManifestByHand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x")
	m := trained(t, nano(t, "diff2", nothing))
	if err := (&Export{Config: m.Config, Values: valuesOf(m),
		Files: map[string][]byte{"zz": []byte("last"), "README.md": nil}}).Write(dir, false); err != nil {
		t.Fatal(err)
	}
	manifest, err := ReadManifest(dir)
	if err != nil || manifest.Kind != "antiphase export" || manifest.Format != 1 {
		t.Fatalf("%+v, %v", manifest, err)
	}
	entries, _ := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		if e.Name() != ManifestFile {
			names = append(names, e.Name())
		}
	}
	for i, f := range manifest.Files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name))
		sum := sha256.Sum256(b)
		if want := (Hash{names[i], int64(len(b)), hex.EncodeToString(sum[:])}); err != nil || f != want {
			t.Errorf("%+v, want %+v", f, want)
		}
	}
	if len(manifest.Files) != len(names) || len(names) < 6 {
		t.Errorf("%d files are listed of %v", len(manifest.Files), names)
	}
	// Of the same size but other bytes, longer, missing, and a folder of that name.
	write(t, dir, "zz", []byte("lasT"))
	write(t, dir, "README.md", []byte("x"))
	for _, name := range []string{"config.json", weightsFile} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, weightsFile), 0o777); err != nil {
		t.Fatal(err)
	}
	if changed, err := manifest.Changed(dir); err != nil ||
		!slices.Equal(changed, []string{"README.md", "config.json", weightsFile, "zz"}) {
		t.Errorf("changed %v, %v", changed, err)
	}
}

func TestManifestRefuses(t *testing.T) {
	files := func(name string) string {
		return fmt.Sprintf(
			`{"kind":"antiphase export","format":1,"files":[{"name":"a","bytes":1,"sha256":""},{"name":%q}]}`, name)
	}
	for text, want := range map[string]string{
		`{"kind":"antiphase export","format":2,"files":[]}`: `is "antiphase export" of format 2, not "antiphase export" of format 1`,
		`{"kind":"other","format":1,"files":[]}`:            `is "other" of format 1`,
		`{"kind":"antiphase export","format":1,"more":1}`:   "more", `[]`: "cannot unmarshal", `{`: "EOF",
		files(""): "plain file name", files("."): "plain file name", files(".."): "plain file name",
		files("a/b"): "plain file name", files(`a\b`): "plain file name", files("c:x"): "plain file name",
		files("a\x00"): "", files("/etc"): "plain file name", files(ManifestFile): "plain file name",
	} {
		if _, err := parseManifest([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if m, err := parseManifest([]byte(files("b.c"))); err != nil || len(m.Files) != 2 || m.Files[0].Bytes != 1 {
		t.Errorf("%+v, %v", m, err)
	}
	dir := t.TempDir()
	if _, err := ReadManifest(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no manifest: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, ManifestFile), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadManifest(dir); err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Errorf("a folder: %v", err)
	}
}

// Tensors fill a file up to its limit exactly; one byte less makes another file, and a tensor above the limit has its
// own.
func TestShardSizes(t *testing.T) {
	m := trained(t, nano(t, "transformer", func(c *model.Config) { c.Layers = 1 }))
	total := int64(0)
	for _, p := range m.Params.List {
		total += 4 * int64(p.Rows*p.Cols)
	}
	for limit, want := range map[int64]int{0: 1, -1: 1, total: 1, total + 1: 1, total - 1: 2, 1: 12} {
		dir := filepath.Join(t.TempDir(), "x")
		if err := (&Export{Config: m.Config, Values: valuesOf(m), ShardBytes: limit}).Write(dir, false); err != nil {
			t.Fatal(err)
		}
		found, _ := filepath.Glob(filepath.Join(dir, "*.safetensors"))
		_, err := os.Stat(filepath.Join(dir, indexFile))
		if len(found) != want || (err == nil) != (want > 1) {
			t.Errorf("at most %d of %d bytes: %d files, index %v; want %d", limit, total, len(found), err == nil, want)
		}
		f, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		if sum := f.DTypes(); len(sum) != 1 || sum["F32"] != total {
			t.Errorf("bytes by type %v, want %d", sum, total)
		}
		f.Close()
	}
}
