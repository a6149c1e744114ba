package hf

import (
	"os"
	"path/filepath"
	"testing"

	"antiphase/device/ref"
	"antiphase/internal/quota"
	"antiphase/layer"
)

// No folder leaves a file open: read, opened as a model, damaged, or written.
func TestFilesAreClosed(t *testing.T) {
	m := trained(t, nano(t, "diff", nothing))
	dir := filepath.Join(t.TempDir(), "x")
	e := &Export{Config: m.Config, Values: valuesOf(m), ShardBytes: 4000}
	quota.Files(t, "an export", func() {
		if err := e.Write(dir, true); err != nil {
			t.Fatal(err)
		}
	})
	quota.Files(t, "a folder", func() {
		f, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	})
	quota.Files(t, "a model", func() {
		if _, _, err := Open(ref.New(), dir, layer.Memory{}); err != nil {
			t.Fatal(err)
		}
	})
	quota.Files(t, "a file", func() {
		if _, err := ReadFile(dir, "config.json", 1<<20); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadFile(dir, "config.json", 3); err == nil {
			t.Error("a file above its limit is read")
		}
	})
	other := filepath.Join(t.TempDir(), "y") // whose tensors are those of another configuration
	if err := (&Export{Config: m.Config, Values: valuesOf(m), Class: Antiphase}).Write(other, true); err != nil {
		t.Fatal(err)
	}
	write(t, other, "config.json", encode(t, small("llama")))
	quota.Files(t, "a folder that does not fit", func() {
		if _, err := Load(other); err == nil {
			t.Error("no error")
		}
	})
	found, _ := filepath.Glob(filepath.Join(dir, "model-*.safetensors"))
	if err := os.Truncate(found[len(found)-1], 100); err != nil {
		t.Fatal(err)
	}
	quota.Files(t, "a damaged folder", func() {
		if _, err := Load(dir); err == nil {
			t.Error("no error")
		}
	})
}
