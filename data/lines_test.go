package data

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Lines are the same plain and compressed; blank ones are counted and not shown.
func TestLines(t *testing.T) {
	const text = "\ufeffone\n\n  two  \r\nthree"
	var gz, zs bytes.Buffer
	g := gzip.NewWriter(&gz)
	z, err := zstd.NewWriter(&zs)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []interface {
		Write([]byte) (int, error)
		Close() error
	}{g, z} {
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	for name, b := range map[string][]byte{"a.jsonl": []byte(text), "a.jsonl.gz": gz.Bytes(),
		"a.jsonl.zst": zs.Bytes()} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		var got []string
		err := Lines(path, func(n int, line []byte) error {
			got = append(got, fmt.Sprint(n, string(line)))
			return nil
		})
		if want := "1one 3two 4three"; err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	stop := errors.New("stop")
	if err := Lines(filepath.Join(dir, "a.jsonl"), func(int, []byte) error { return stop }); !errors.Is(err, stop) ||
		!strings.Contains(err.Error(), "a.jsonl") {
		t.Errorf("%v", err)
	}
	if err := Lines(filepath.Join(dir, "b.jsonl"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
