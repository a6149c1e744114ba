//go:build (amd64 || arm64) && !nogpu

package cu

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
)

// fakeNCCL builds testdata/nccl.c and lets openNCCL find it. It gives a GPU whose context is nothing and whose
// stream is a number.
func fakeNCCL(t *testing.T) (g *gpu, symbol func(name string) unsafe.Pointer) {
	t.Helper()
	cc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no C compiler for a library with NCCL's signatures")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "libnccl.so.2")
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-o", path, "testdata/nccl.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Setenv("ANTIPHASE_CUDA_PATH", dir)
	h, err := purego.Dlopen(path, purego.RTLD_NOW)
	if err != nil {
		t.Fatal(err)
	}
	find := func(name string) uintptr {
		p, err := purego.Dlsym(h, name)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	g = &gpu{stream: 0x5712ea}
	g.api.ctxSetCurrent = find("fake_nothing")
	return g, func(name string) unsafe.Pointer { p := find(name); return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }
}

// Every call reaches NCCL with the arguments that its header asks for, the id by value.
func TestNCCLSignatures(t *testing.T) {
	g, symbol := fakeNCCL(t)
	last := (*[8]int64)(symbol("last"))
	id, err := NewCommID()
	if err != nil {
		t.Fatal(err)
	}
	if id[0] != 1 || id[127] != byte((127*7+1)&0xff) {
		t.Errorf("id %v", id)
	}
	c, err := g.Join(id, 2, 4)
	if err != nil {
		t.Fatal(err)
	}
	if *(*CommID)(symbol("last_id")) != id || *last != [8]int64{4, 2, 0, 0, 0, 0, 0, 1} || c.Version() != 22803 {
		t.Errorf("joined with %v", *last)
	}
	const comm, stream = 0xc0ffee, 0x5712ea
	for _, x := range []struct {
		name string
		call func() error
		want [8]int64
	}{
		{"AllReduce", func() error { return c.AllReduce(100, 7, false) }, [8]int64{100, 100, 7, 7, 0, comm, stream, 2}},
		{"AllReduce of doubles", func() error { return c.AllReduce(100, 7, true) }, [8]int64{100, 100, 7, 8, 0, comm,
			stream, 2}},
		{"ReduceScatter", func() error { return c.ReduceScatter(200, 100, 7, false) }, [8]int64{100, 200, 7, 7, 0, comm,
			stream, 3}},
		{"AllGather", func() error { return c.AllGather(200, 100, 9) }, [8]int64{100, 200, 9, 0, comm, stream, 0, 4}},
		{"Broadcast", func() error { return c.Broadcast(100, 9, 3) }, [8]int64{100, 100, 9, 0, 3, comm, stream, 5}},
		{"Close", c.Close, [8]int64{comm, 0, 0, 0, 0, 0, 0, 7}},
	} {
		if err := x.call(); err != nil || *last != x.want {
			t.Errorf("%s: %v, %v; want %v", x.name, *last, err, x.want)
		}
	}
	c.Abort() // after Close there is nothing to end
	if last[7] != 7 {
		t.Error("a communicator that was destroyed was aborted")
	}
	failure := (*int32)(symbol("async_error"))
	for code, bad := range map[int32]bool{0: false, 7: false, 6: true} {
		if *failure = code; (c.Fault() != nil) != bad {
			t.Errorf("async error %d: %v", code, c.Fault())
		}
	}
	if _, err := g.Join(id, 4, 4); err == nil || !strings.Contains(err.Error(), "two ranks use one GPU") {
		t.Errorf("two ranks on one GPU: %v", err)
	}
	if err := os.Unsetenv("ANTIPHASE_CUDA_PATH"); err != nil {
		t.Fatal(err)
	}
}
