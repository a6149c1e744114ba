package quota

import (
	"os"
	"path/filepath"
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

// TestCheck: what stays within its share passes, what does not is noticed even when it is let go at once.
func TestCheck(t *testing.T) {
	in, out := &fake{TB: t}, &fake{TB: t}
	Check(in, "frugal", 1<<20, 4, func() { keep = make([]byte, 1<<20) })
	Check(out, "greedy", 1<<20, 4, func() {
		for range 40 {
			keep = make([]byte, 1<<20)
		}
		keep = nil
	})
	if in.failed || !out.failed {
		t.Errorf("frugal failed %v, greedy failed %v", in.failed, out.failed)
	}
}

// TestFiles: an open file and a mapping are noticed, closed ones are not.
func TestFiles(t *testing.T) {
	if _, _, ok := files(); !ok {
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
