package data

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestOpenSetNamesTheShard(t *testing.T) {
	for want, damage := range map[string]func(t *testing.T, path string, b []byte){
		"missing":    func(t *testing.T, path string, _ []byte) { remove(t, path) },
		"bytes, the": func(t *testing.T, path string, b []byte) { write(t, path, b[:len(b)-1]) },
		"sha256": func(t *testing.T, path string, b []byte) {
			b[headerSize+3] ^= 1
			write(t, path, b)
		},
		"not a token": func(t *testing.T, path string, b []byte) {
			b[0] = 'X'
			write(t, path, b)
		},
	} {
		s := buildSet(t, randomTexts(30, 30, 1), narrow, BuildOptions{ShardTokens: 100})
		path := filepath.Join(s.dir, "train-00002.bin")
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		damage(t, path, b)
		verify := want != "not a token" // this one is found without reading every byte
		_, err = OpenSet(s.dir, verify)
		if c := mustCorrupt(t, err, "train-00002.bin"); !strings.Contains(c.Fault, want) {
			t.Errorf("fault %q, want one with %q", c.Fault, want)
		}
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// A shard that is sound in itself but not the one listed is found by its counts.
func TestOpenSetComparesCounts(t *testing.T) {
	s := buildSet(t, randomTexts(20, 30, 1), narrow, BuildOptions{})
	m := *s.Manifest
	m.Shards = slices.Clone(m.Shards)
	m.Shards[0].Docs--
	m.Docs--
	m.Hash = m.contentHash()
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, manifestName), b, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = OpenSet(s.dir, false)
	mustCorrupt(t, err, "train-00000.bin")
}

func TestSplitNames(t *testing.T) {
	s := buildSet(t, randomTexts(5, 30, 1), narrow, BuildOptions{})
	if _, err := s.Split(Valid); err == nil || !strings.Contains(err.Error(), `only "train"`) {
		t.Errorf("error %v, want one that names the splits there are", err)
	}
}

func TestCorruptTokenIsNotServed(t *testing.T) {
	s := buildSet(t, randomTexts(5, 30, 1), noEOS, BuildOptions{})
	path := filepath.Join(s.dir, "train-00000.bin")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[headerSize+1] = 0xff // high byte of the first id
	write(t, path, b)
	bad, err := OpenSet(s.dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer bad.Close()
	defer func() {
		if p := recover(); p == nil || !strings.Contains(p.(string), "train-00000.bin is corrupt") {
			t.Errorf("panic %v, want one that names the shard", p)
		}
	}()
	split(t, bad, Train).Document(nil, 0)
}

func TestManifestFaults(t *testing.T) {
	s := buildSet(t, randomTexts(30, 30, 1), narrow, BuildOptions{ShardTokens: 200, HeldOut: 0.2})
	for want, change := range map[string]func(m *Manifest){
		"format 3":             func(m *Manifest) { m.Format = 3 },
		"vocabulary of 0":      func(m *Manifest) { m.Vocab = 0 },
		"end-of-text id 257":   func(m *Manifest) { m.EOS = ptr(int32(257)) },
		"not a plain":          func(m *Manifest) { m.Shards[0].Name = "../x.bin" },
		"split \"test\"":       func(m *Manifest) { m.Shards[0].Split = "test" },
		"impossible":           func(m *Manifest) { m.Shards[0].Docs = -1 },
		"64 hex":               func(m *Manifest) { m.Shards[0].SHA256 = "beef" },
		"listed twice":         func(m *Manifest) { m.Shards[1].Name = m.Shards[0].Name },
		"totals of":            func(m *Manifest) { m.Tokens++ },
		"overflow":             func(m *Manifest) { m.Shards[1].Tokens = 1<<63 - 1 },
		"edited by hand":       func(m *Manifest) { m.Tokenizer = "other" },
		"hash \"\", its conte": func(m *Manifest) { m.Hash = "" },
	} {
		m := *s.Manifest
		m.Shards = slices.Clone(m.Shards)
		change(&m)
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		_, err = parseManifest("dir/manifest.json", b)
		if c := mustCorrupt(t, err, manifestName); !strings.Contains(c.Fault, want) {
			t.Errorf("fault %q, want one with %q", c.Fault, want)
		}
	}
	for want, text := range map[string]string{
		"not a manifest":  "{",
		"unknown field":   `{"format":1,"shard":[]}`,
		"after top-level": string(must(json.Marshal(s.Manifest))) + "x",
		"manifest format": "{}",
	} {
		_, err := parseManifest(manifestName, []byte(text))
		if c := mustCorrupt(t, err, manifestName); !strings.Contains(c.Fault, want) {
			t.Errorf("fault %q, want one with %q", c.Fault, want)
		}
	}
}

func ptr[T any](x T) *T { return &x }

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// Whatever the text: no panic; an error that names the file, or a manifest whose own account is consistent.
func FuzzManifest(f *testing.F) {
	s := buildSet(f, randomTexts(10, 30, 1), narrow, BuildOptions{ShardTokens: 100, HeldOut: 0.2})
	good := must(json.MarshalIndent(s.Manifest, "", " "))
	f.Add(good)
	f.Add([]byte(strings.Replace(string(good), "train-00000.bin", "../../etc", 1)))
	f.Add([]byte(strings.Replace(string(good), `"tokens": `, `"tokens": 9`, 2)))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseManifest(manifestName, b)
		if err != nil {
			mustCorrupt(t, err, manifestName)
			return
		}
		for _, sh := range m.Shards {
			if filepath.Dir(filepath.Join("d", sh.Name)) != "d" {
				t.Fatalf("shard name %q leaves the folder", sh.Name)
			}
		}
		if _, err := parseManifest(manifestName, must(json.Marshal(m))); err != nil {
			t.Fatalf("does not survive a round trip: %v", err)
		}
	})
}
