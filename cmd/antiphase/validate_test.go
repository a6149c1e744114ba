package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"antiphase/hf"
)

// Of an exported folder's files, changed weights are damage, in one file or any of several; other files may be edited.
func TestChangedFiles(t *testing.T) {
	names := []string{"config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
		"model.safetensors", "model.safetensors.index.json", "tokenizer.json"}
	dir := t.TempDir()
	m := hf.Manifest{Kind: "antiphase export", Format: 1}
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		put(name, name)
		m.Files = append(m.Files, hf.Hash{Name: name, Bytes: int64(len(name)),
			SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(name)))})
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	put(hf.ManifestFile, string(b))
	if f := checkHashes(dir); !f.OK || f.Detail != "6 files are as exported" {
		t.Errorf("untouched: %+v", f)
	}
	for _, name := range names {
		put(name, strings.ToUpper(name))
		if f := checkHashes(dir); f.OK == strings.HasSuffix(name, ".safetensors") ||
			!strings.HasSuffix(f.Detail, "export: "+name) {
			t.Errorf("%s changed: %+v", name, f)
		}
		put(name, name)
	}
}
