package hf

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAttackFiles: weight files that lie about themselves. Each ends in an error that names the file, and none in a
// crash or in memory that the file does not have.
func TestAttackFiles(t *testing.T) {
	raw := func(length uint64, header string, data int) []byte {
		b := binary.LittleEndian.AppendUint64(nil, length)
		return append(append(b, header...), make([]byte, data)...)
	}
	file := func(header string, data int) []byte { return raw(uint64(len(header)), header, data) }
	one := func(shape, offsets string) string {
		return `{"model.norm.weight":{"dtype":"F32","shape":` + shape + `,"data_offsets":` + offsets + `}}`
	}
	for name, b := range map[string][]byte{
		"empty":               {},
		"header of 2⁶³ bytes": raw(1<<63, "{}", 0),
		"header of 2⁶⁴−1":     raw(1<<64-1, "{}", 0),
		"header beyond file":  raw(1<<20, "{}", 0),
		"range beyond file":   file(one("[24]", "[0,96]"), 8),
		"huge range":          file(one("[24]", "[0,9223372036854775807]"), 96),
		"range upside down":   file(one("[24]", "[96,0]"), 96),
		"overflowing shape":   file(one("[4294967296,4294967296]", "[0,0]"), 0),
		"overlap": file(
			`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}`,
			12),
		"twice": file(
			`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`,
			8),
		"not JSON":  file("pickle", 4),
		"deep JSON": file(strings.Repeat("[", 1<<20), 0),
	} {
		dir := t.TempDir()
		write(t, dir, "config.json", encode(t, small("llama")))
		write(t, dir, weightsFile, b)
		if f, err := Load(dir); err == nil {
			f.Close()
			t.Errorf("%s: was accepted", name)
		} else if !strings.Contains(err.Error(), weightsFile) {
			t.Errorf("%s: error %v does not name the file", name, err)
		}
	}
}

// TestAttackIndex: an index with more entries than anyone has tensors, and one that is too large to be an index.
func TestAttackIndex(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "config.json", encode(t, small("llama")))
	write(t, dir, indexFile, []byte(`{"weight_map": {"a": 7}}`))
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), indexFile) {
		t.Errorf("a number for a file: error %v", err)
	}
	f, err := os.Create(filepath.Join(dir, indexFile))
	if err == nil {
		err = f.Truncate(maxIndex + 1)
	}
	if err != nil || f.Close() != nil {
		t.Skip("no room for a sparse file")
	}
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("an index beyond the limit: error %v", err)
	}
}

// TestAttackKinds: what is not a file is not opened, where a pipe would be waited for without end.
func TestAttackKinds(t *testing.T) {
	for _, name := range []string{weightsFile, "generation_config.json"} {
		dir := t.TempDir()
		write(t, dir, "config.json", encode(t, small("llama")))
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), name+" is not a file") {
			t.Errorf("a folder called %s: error %v", name, err)
		}
	}
}

// TestCached finds models in Hugging Face's cache as its own tools do, and is not led out of it.
func TestCached(t *testing.T) {
	home := t.TempDir()
	at := filepath.Join(home, "hub", "models--org--name")
	for _, d := range []string{"snapshots/c0ffee", "snapshots/beef", "refs/pr"} {
		if err := os.MkdirAll(filepath.Join(at, filepath.FromSlash(d)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(at, "refs"), "main", []byte("c0ffee\n"))
	write(t, filepath.Join(at, "refs", "pr"), "1", []byte("beef"))
	write(t, filepath.Join(at, "refs"), "out", []byte("../../../.."))
	write(t, filepath.Join(at, "refs"), "gone", []byte("dead"))
	t.Setenv("HF_HUB_CACHE", "")
	t.Setenv("HF_HOME", home)
	for name, want := range map[string]string{"org/name": "c0ffee", "org/name@main": "c0ffee", "org/name@pr/1": "beef",
		"org/name@beef": "beef"} {
		if got, err := Cached(name); err != nil || got != filepath.Join(at, "snapshots", want) {
			t.Errorf("%s: %q (%v), want snapshot %s", name, got, err, want)
		}
	}
	for _, name := range []string{"org/name@out", "org/name@gone", "org/name@none", "org/other", "org", "../name",
		"org/..", "org/name/x", "/org/name", "org/na\x00me", "org/name@../x"} {
		if got, err := Cached(name); err == nil {
			t.Errorf("%q was found at %s", name, got)
		}
	}
	t.Setenv("HF_HUB_CACHE", filepath.Join(home, "hub"))
	t.Setenv("HF_HOME", "elsewhere")
	if _, err := Cached("org/name"); err != nil {
		t.Errorf("HF_HUB_CACHE is not looked at first: %v", err)
	}
}
