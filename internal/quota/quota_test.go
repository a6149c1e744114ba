package quota

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"antiphase/internal/vfs"
)

type fake struct {
	testing.TB
	failed bool
}

func (f *fake) Helper()               {}
func (f *fake) Errorf(string, ...any) { f.failed = true }

var keep []byte

// TestCheck: what stays within its share passes, what does not is noticed even when it is let go at once. The share
// grows with the input and with the factor, by 8 MiB more; what was allocated before does not count.
func TestCheck(t *testing.T) {
	allocate := func(mib int) func() {
		return func() {
			for range mib {
				keep = make([]byte, 1<<20)
			}
			keep = nil
		}
	}
	allocate(50)()
	for _, c := range []struct{ input, times, takes, share int }{
		{1, 4, 1, 12}, {1, 4, 11, 12}, {1, 4, 14, 12}, {1, 16, 22, 24}, {1, 16, 26, 24}, {16, 1, 22, 24},
		{16, 1, 26, 24}, {0, 9, 6, 8}, {0, 9, 10, 8},
	} {
		f := &fake{TB: t}
		Check(f, "a reader", c.input<<20, c.times, allocate(c.takes))
		if f.failed != (c.takes > c.share) {
			t.Errorf("%d MiB for an input of %d at %d times: failed %v", c.takes, c.input, c.times, f.failed)
		}
	}
}

// TestFiles: an open file and a mapping are noticed, closed ones are not.
func TestFiles(t *testing.T) {
	if _, _, ok := files(); !ok && runtime.GOOS != "linux" {
		t.Skip("this system does not list open files")
	}
	var kept []*os.File
	path := filepath.Join(t.TempDir(), "x")
	open := func() *os.File {
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	good, bad := &fake{TB: t}, &fake{TB: t}
	Files(good, "closes", func() { open().Close() })
	Files(bad, "forgets", func() { kept = append(kept, open()) })
	for _, f := range kept {
		f.Close()
	}
	if good.failed || !bad.failed {
		t.Errorf("closing failed %v, forgetting failed %v", good.failed, bad.failed)
	}
	if err := os.WriteFile(path, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	var unmap []func() error
	mapped := func() func() error {
		_, f, err := vfs.OS{}.Map(path)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	good, bad = &fake{TB: t}, &fake{TB: t}
	Files(good, "unmaps", func() { _ = mapped()() })
	Files(bad, "stays mapped", func() { unmap = append(unmap, mapped()) })
	for _, f := range unmap {
		if err := f(); err != nil {
			t.Error(err)
		}
	}
	if good.failed || !bad.failed {
		t.Errorf("unmapping failed %v, staying mapped failed %v", good.failed, bad.failed)
	}
}
