package hostmem

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAvailable: there is some memory, and no more than the machine has.
func TestAvailable(t *testing.T) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		t.Skip(err)
	}
	total := int64(info.Totalram) * int64(info.Unit)
	if n := Available(); n < 1<<20 || n > total {
		t.Errorf("%d bytes are available, the machine has %d", n, total)
	}
}

// TestGroup takes the tightest group on the way up.
func TestGroup(t *testing.T) {
	root := t.TempDir()
	put := func(name, text string) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	put("a/memory.max", "1000\n")
	put("a/memory.current", "300\n")
	put("a/b/memory.max", "max\n")
	put("a/b/memory.current", "100\n")
	if n := climb(root, "/a/b", "memory.max", "memory.current"); n != 700 {
		t.Errorf("%d bytes are left, want 700", n)
	}
	put("a/b/memory.max", "50")
	if n := climb(root, "/a/b", "memory.max", "memory.current"); n != 0 {
		t.Errorf("%d bytes are left in a group over its limit", n)
	}
	if n := climb(root, "/none", "memory.max", "memory.current"); n != Unknown {
		t.Errorf("%d bytes are left where no group says so", n)
	}
}
