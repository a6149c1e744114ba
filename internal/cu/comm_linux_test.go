//go:build (amd64 || arm64) && !nogpu

package cu

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	g = newGPU(nil)
	g.stream = 0x5712ea
	g.api.ctxSetCurrent, g.api.eventDestroy, g.api.streamDestroy = find("fake_nothing"), find("fake_nothing"),
		find("fake_nothing")
	g.api.eventCreate, g.api.streamCreate = find("fake_make"), find("fake_make")
	g.api.eventRecord, g.api.streamWait = find("fake_record"), find("fake_wait")
	return g, func(name string) unsafe.Pointer { p := find(name); return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }
}

// The library is loaded once per process, so its tests share it.
func TestNCCL(t *testing.T) {
	g, symbol := fakeNCCL(t)
	t.Run("signatures", func(t *testing.T) { ncclSignatures(t, g, symbol) })
	t.Run("beside", func(t *testing.T) { ncclBeside(t, g, symbol) })
}

// Every call reaches NCCL with the arguments that its header asks for, the id by value.
func ncclSignatures(t *testing.T, g *gpu, symbol func(name string) unsafe.Pointer) {
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
	lost, err := g.Join(id, 0, 4)
	if err != nil {
		t.Fatal(err)
	}
	lost.Abort()
	if *failure = 6; lost.Fault() != nil {
		t.Error("a communicator that was aborted, and freed with that, was polled")
	}
	if _, err := g.Join(id, 4, 4); err == nil || !strings.Contains(err.Error(), "two ranks use one GPU") {
		t.Errorf("two ranks on one GPU: %v", err)
	}
	if err := os.Unsetenv("ANTIPHASE_CUDA_PATH"); err != nil {
		t.Fatal(err)
	}
}

// Collectives of Beside wait for the stream's work and go to a second stream; others, and work after Join, do not.
func ncclBeside(t *testing.T, g *gpu, symbol func(name string) unsafe.Pointer) {
	last := (*[8]int64)(symbol("last"))
	logged, pairs := (*int32)(symbol("logged")), (*[64]int64)(symbol("pairs"))
	id, err := NewCommID()
	if err != nil {
		t.Fatal(err)
	}
	c, err := g.Join(id, 0, 2)
	if err != nil {
		t.Fatal(err)
	}
	stream := func(f func() error, at int) int64 {
		if err := f(); err != nil {
			t.Fatal(err)
		}
		return last[at]
	}
	reduce := func() error { return c.AllReduce(100, 7, false) }
	scatter := func() error { return c.ReduceScatter(200, 100, 7, false) }
	if err := c.Join(); err != nil || *logged != 0 {
		t.Errorf("Join with nothing to join: %v, %d numbers logged", err, *logged)
	}
	const main, fork, join, second = 0x5712ea, 1, 2, 3
	for _, f := range []func() error{reduce, scatter} {
		if on := stream(func() error { return c.Beside(f) }, 6); on != second {
			t.Errorf("Beside on stream %#x, want the second one", on)
		}
	}
	if on := stream(reduce, 6); on != main {
		t.Errorf("a sum after Beside on stream %#x, want the first one", on)
	}
	for range 2 { // the second has nothing to join
		if err := c.Join(); err != nil {
			t.Fatal(err)
		}
	}
	want := []int64{fork, main, -fork, second, fork, main, -fork, second, join, second, -join, main}
	if got := pairs[:*logged]; !slices.Equal(got, want) {
		t.Errorf("events and streams %v, want %v", got, want)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}
