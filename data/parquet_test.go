package data

import (
	"path/filepath"
	"strings"
	"testing"
)

// A null is no document: it is not counted as an empty one. A text that is too long is refused.
func TestParquetValues(t *testing.T) {
	type optional struct {
		Text *string `parquet:"text,optional"`
	}
	path := filepath.Join(t.TempDir(), "a.parquet")
	one, none, two := "one", "", "two"
	write(t, path, parquetOf(t, []optional{{&one}, {nil}, {&none}, {nil}, {&two}}))
	if s := buildSet(t, open(t, path), narrow, BuildOptions{}).Manifest.Sources[0]; s.Skipped != (Skipped{Empty: 1}) ||
		s.Docs != 2 {
		t.Errorf("%+v, want 2 documents and 1 empty one", s)
	}
	write(t, path, parquetOf(t, []row{{1, strings.Repeat("a", maxLine+1)}}))
	if _, err := Open(path); err == nil ||
		!strings.Contains(err.Error(), "a text of 16777217 bytes is longer than 16 MiB, ") {
		t.Error(err)
	}
}

// A file that was cut anywhere is refused by its name; one without the end of Parquet's frame says that it ends early.
func TestCutParquet(t *testing.T) {
	whole := parquetOf(t, []row{{1, "one"}, {2, "two"}})
	path := filepath.Join(t.TempDir(), "a.parquet")
	for n := range whole {
		write(t, path, whole[:n])
		_, err := Open(path)
		if err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "negative offset") ||
			n < 12 && !strings.Contains(err.Error(), "ends early") {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}
