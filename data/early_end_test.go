package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// readAll drains a file and returns how many documents it gave and the error at the end.
func readAll(t *testing.T, path string) (docs int, err error) {
	t.Helper()
	src, err := Open(path)
	if err != nil {
		return 0, err
	}
	for _, e := range src.Documents(context.Background()) {
		if e != nil {
			return docs, e
		}
		docs++
	}
	return docs, nil
}

// prose is text that compresses badly enough for every cut to fall inside it.
func prose(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "%x Paragraph %d.\n\n", uint64(i)*0x9e3779b97f4a7c15, i)
	}
	return b.Bytes()
}

// A compressed file or a parquet file that ends early is an error that names it, wherever it was cut.
func TestEarlyEndIsAnError(t *testing.T) {
	var rows []row
	var lines bytes.Buffer
	for i := range 3000 {
		fmt.Fprintf(&lines, "{\"text\":\"%x line %d\"}\n", uint64(i)*0x9e3779b97f4a7c15, i)
		rows = append(rows, row{int64(i), fmt.Sprint("row ", i)})
	}
	text := prose(8000)
	dir := t.TempDir()
	for name, whole := range map[string][]byte{
		"a.txt.gz": gz(text), "a.txt.zst": zst(text), "a.jsonl.gz": gz(lines.Bytes()),
		"a.jsonl.zst": zst(lines.Bytes()),
		"a.parquet":   parquetOf(t, rows),
	} {
		path := filepath.Join(dir, name)
		write(t, path, whole)
		if n, err := readAll(t, path); n == 0 || err != nil {
			t.Fatalf("%s whole: %d documents, %v", name, n, err)
		}
		n := len(whole)
		for _, keep := range []int{0, 1, 3, 5, 12, 19, n / 4, n / 2, 3 * n / 4, n - 9, n - 5, n - 2, n - 1} {
			write(t, path, whole[:keep])
			docs, err := readAll(t, path)
			var c *CorruptError
			if !errors.As(err, &c) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s cut to %d of %d bytes: %d documents, error %v, want a CorruptError that names it", name,
					keep, n, docs, err)
			}
			if strings.HasPrefix(name, "a.jsonl") {
				err := Lines(path, func(int, []byte) error { return nil })
				if !errors.As(err, &c) || !strings.Contains(err.Error(), path) {
					t.Errorf("Lines of %s cut to %d of %d bytes: error %v", name, keep, n, err)
				}
			}
		}
	}
}

// Malformed content is a CorruptError too, and a missing file is not.
func TestMalformedIsCorrupt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	write(t, path, []byte("{\"text\":\"ok\"}\n{\"text\": 7}\n"))
	var c *CorruptError
	if _, err := readAll(t, path); !errors.As(err, &c) || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("error %v, want a CorruptError about line 2", err)
	}
	src := open(t, path)
	remove(t, path)
	for _, err := range src.Documents(context.Background()) {
		if errors.As(err, &c) || err == nil {
			t.Errorf("a file that vanished: %v", err)
		}
	}
}
