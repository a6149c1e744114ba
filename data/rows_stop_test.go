package data

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// In every format rows come in order with their numbers, the first error of the caller ends the reading and comes back
// with the file's name, and a file that is missing is said to be.
func TestRowsStop(t *testing.T) {
	const n = 150
	dir := t.TempDir()
	var table []row
	var lines []string
	for i := range n {
		table = append(table, row{int64(i), fmt.Sprint(i)})
		lines = append(lines, fmt.Sprintf(`{"text":"%d"}`, i))
	}
	broken := errors.New("broken")
	for name, b := range map[string][]byte{
		"a.parquet": parquetOf(t, table), "a.jsonl": []byte(strings.Join(lines, "\n")),
		"a.json": []byte("[" + strings.Join(lines, ",") + "]"),
	} {
		path := filepath.Join(dir, name)
		write(t, path, b)
		for _, stop := range []int{1, 2, 64, 65, 100, n, n + 1} {
			seen := 0
			err := Rows(path, func(at int, row map[string]any) error {
				if seen++; at != seen || row["text"] != fmt.Sprint(at-1) {
					t.Fatalf("%s: row %d is number %d, %v", name, seen, at, row)
				}
				if at == stop {
					return broken
				}
				return nil
			})
			if seen != min(stop, n) || (err == nil) != (stop > n) || err != nil && !errors.Is(err, broken) ||
				err != nil && !strings.Contains(err.Error(), path) {
				t.Errorf("%s, stopped at %d: %d rows, %v", name, stop, seen, err)
			}
		}
		gone := filepath.Join(dir, "gone-"+name)
		if err := Rows(gone, func(int, map[string]any) error { return nil }); !errors.Is(err, fs.ErrNotExist) ||
			!strings.Contains(err.Error(), gone) {
			t.Errorf("%s: %v", gone, err)
		}
	}
}
