package cu

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// cacheIn points the user's cache folder at dir, on every system.
func cacheIn(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} {
		t.Setenv(name, dir)
	}
}

func TestCubinCache(t *testing.T) {
	cacheIn(t, t.TempDir())
	key := cubinKey(Source{Text: "kernel"}, "sm_90a", 13000)
	if _, ok := readCubin(key); ok {
		t.Fatal("an empty cache has a cubin")
	}
	want := []byte("machine code")
	writeCubin(key, want)
	if got, ok := readCubin(key); !ok || !bytes.Equal(got, want) {
		t.Fatalf("read %q, %v, want %q", got, ok, want)
	}
	writeCubin(key, want) // a second process at once
	files, err := os.ReadDir(filepath.Dir(cubinPath(key)))
	if err != nil || len(files) != 1 {
		t.Errorf("the cache holds %v, want one file (%v)", files, err)
	}
}

func TestDamagedCubinIsBuiltAgain(t *testing.T) {
	cacheIn(t, t.TempDir())
	key := cubinKey(Source{Text: "kernel"}, "sm_90a", 13000)
	writeCubin(key, []byte("machine code"))
	whole, err := os.ReadFile(cubinPath(key))
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-1] ^= 1
	for name, content := range map[string][]byte{"flipped": flipped, "short": whole[:len(whole)-1], "empty": nil,
		"only a hash": whole[:32]} {
		if err := os.WriteFile(cubinPath(key), content, 0o644); err != nil {
			t.Fatal(err)
		}
		if got, ok := readCubin(key); ok {
			t.Errorf("%s: taken as %q", name, got)
		}
	}
}

// A cache that cannot be written only costs time.
func TestCubinCacheThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	cacheIn(t, file) // a file where the folder should be
	writeCubin("key", []byte("machine code"))
	if _, ok := readCubin("key"); ok {
		t.Error("a cubin came out of a cache that cannot be")
	}
}

func TestCubinKeyTellsCompilationsApart(t *testing.T) {
	seen := map[string]string{}
	for name, key := range map[string]string{
		"plain":    cubinKey(Source{Text: "a"}, "sm_90a", 13000),
		"text":     cubinKey(Source{Text: "b"}, "sm_90a", 13000),
		"option":   cubinKey(Source{Text: "a", Options: []string{"-DD=64"}}, "sm_90a", 13000),
		"two":      cubinKey(Source{Text: "a", Options: []string{"-DD=6", "4"}}, "sm_90a", 13000),
		"arch":     cubinKey(Source{Text: "a"}, "sm_80", 13000),
		"compiler": cubinKey(Source{Text: "a"}, "sm_90a", 13010),
	} {
		if other, ok := seen[key]; ok {
			t.Errorf("%s and %s have one key", name, other)
		}
		seen[key] = name
	}
}

func TestArch(t *testing.T) {
	for _, c := range []struct {
		major, minor int
		want         string
	}{{8, 0, "sm_80"}, {8, 9, "sm_89"}, {9, 0, "sm_90a"}, {12, 0, "sm_120a"}} {
		if got := (Info{Major: c.major, Minor: c.minor}).Arch(); got != c.want {
			t.Errorf("%d.%d is %s, want %s", c.major, c.minor, got, c.want)
		}
	}
}

func TestUnavailableIsOneLine(t *testing.T) {
	d, err := Open(1<<20, nil)
	if err == nil {
		t.Fatalf("GPU 1048576 is %v", d.Info())
	}
	if !strings.HasPrefix(err.Error(), ErrUnavailable.Error()) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%q, want one line that begins %q", err, ErrUnavailable)
	}
	t.Log(err)
}
