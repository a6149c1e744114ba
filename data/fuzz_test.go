package data

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzFiles: any bytes under any of our endings are documents or an error, never a panic, and no document is longer
// than what one may be. A compressed file that is cut is an error (the corpus has such files, and one line of many
// megabytes).
func FuzzFiles(f *testing.F) {
	text := []byte("{\"text\": \"the heron waits\"}\n{\"text\": \"in the shallow water\"}\n")
	for i, r := range readers {
		switch r.ending {
		case ".txt.gz", ".jsonl.gz":
			f.Add(byte(i), gz(text), 3)
		case ".txt.zst", ".jsonl.zst":
			f.Add(byte(i), zst(text), 3)
		default:
			f.Add(byte(i), text, 0)
		}
	}
	path := filepath.Join(f.TempDir(), "x")
	f.Fuzz(func(t *testing.T, kind byte, b []byte, cut int) {
		r := readers[int(kind)%len(readers)]
		read := func(b []byte) (docs int, err error) {
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
			err = readFile(path, &r, func(text string) bool {
				if len(text) > maxLine {
					t.Fatalf("%s: a document of %d bytes", r.ending, len(text))
				}
				docs++
				return docs < 1000
			})
			return docs, err
		}
		_, _ = read(b)
		// The same bytes as text, compressed and cut: never whole.
		switch r.ending {
		case ".txt.gz", ".jsonl.gz":
			b = gz(b)
		case ".txt.zst", ".jsonl.zst":
			b = zst(b)
		default:
			return
		}
		if cut = 1 + int(uint(cut)%uint(len(b))); cut < len(b) {
			if docs, err := read(b[:len(b)-cut]); err == nil && docs < 1000 {
				t.Fatalf("%s: %d of %d bytes are missing, and nobody says so", r.ending, cut, len(b))
			}
		}
	})
}
