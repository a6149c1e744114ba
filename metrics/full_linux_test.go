package metrics

import (
	"io/fs"
	"os"
	"testing"

	"antiphase/internal/vfs"
)

// TestFullDisk: a row that does not fit is an error that says so, and does not count as written.
func TestFullDisk(t *testing.T) {
	w, err := Open(full{}, "metrics.jsonl", 0, func(*Row) {}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r := example(1)
	if err := w.Write(&r); !vfs.IsNoSpace(err) || w.Size() != 0 {
		t.Errorf("%d bytes count, %v", w.Size(), err)
	}
}

// full is a file system on which nothing is, and nothing more fits.
type full struct{ vfs.OS }

func (full) Open(string) (vfs.File, error) { return nil, fs.ErrNotExist }

func (full) Append(string, int64) (vfs.File, error) { return os.OpenFile("/dev/full", os.O_RDWR, 0) }
