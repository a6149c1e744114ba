//go:build unix

package fault

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTruncated: the bytes of a mapped file that was cut short.
func TestTruncated(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const n = 1 << 16
	if err := f.Truncate(n); err != nil {
		t.Fatal(err)
	}
	b, err := unix.Mmap(int(f.Fd()), 0, n, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Skip(err)
	}
	defer unix.Munmap(b)
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if v := recover(); !Mapped(v) {
			t.Errorf("the fault is %v", v)
		}
	}()
	defer Guard()()
	t.Errorf("read %d", b[n-1])
}
