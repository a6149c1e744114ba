package metrics

import (
	"os"
	"testing"

	"antiphase/internal/vfs"
)

// TestFullDisk: a row that does not fit is an error that says so, and does not count as written.
func TestFullDisk(t *testing.T) {
	f, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	w := &Writer{f: f}
	defer w.Close()
	r := example(1)
	if err := w.Write(&r); !vfs.IsNoSpace(err) || w.Size() != 0 {
		t.Errorf("%d bytes count, %v", w.Size(), err)
	}
}
