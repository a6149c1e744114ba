//go:build (amd64 || arm64) && !nogpu

package cu

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
)

// A call of C must not allocate: a step makes thousands of them.
func TestCallAllocatesNothing(t *testing.T) {
	h, err := purego.Dlopen("libc.so.6", purego.RTLD_NOW)
	if err != nil {
		t.Skip("no libc.so.6 here: ", err)
	}
	memset, err := purego.Dlsym(h, "memset")
	if err != nil {
		t.Fatal(err)
	}
	room := new([64]byte)
	if n := testing.AllocsPerRun(100,
		func() { fast(memset, uintptr(unsafe.Pointer(&room[0])), 7, 64, 0, 0, 0, 0, 0, 0, 0, 0) }); n != 0 {
		t.Errorf("a call allocates %v times", n)
	}
	if room[63] != 7 {
		t.Error("the call did nothing")
	}
}

func BenchmarkCall(b *testing.B) {
	h, err := purego.Dlopen("libc.so.6", purego.RTLD_NOW)
	if err != nil {
		b.Skip("no libc.so.6 here: ", err)
	}
	getppid, err := purego.Dlsym(h, "getppid")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		fast(getppid)
	}
}

// A library that is missing is told by all the names that were tried, in one line.
func TestMissingLibrary(t *testing.T) {
	_, err := openLib("libantiphase-missing.so.1", "libantiphase-missing.so")
	if err == nil {
		t.Fatal("a library of no system was found")
	}
	for _, want := range []string{"libantiphase-missing.so.1", "libantiphase-missing.so"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %s", err, want)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%q is more than one line", err)
	}
}

// A size class holds what was asked and wastes at most an eighth above the smallest.
func TestClass(t *testing.T) {
	for n := 1; n < 1<<31; n += n/3 + 1 {
		c := class(n)
		if c < n || c%512 != 0 || n > 4096 && c > n+n/8 {
			t.Errorf("%d bytes have class %d", n, c)
		}
		if class(c) != c {
			t.Errorf("class %d has class %d", c, class(c))
		}
	}
}

// Every byte of a rectangle is in one part, and no part is larger than a piece.
func TestCut(t *testing.T) {
	for _, b := range []Block{{4096, 1, 3*pieceSize + 5, 3*pieceSize + 5}, {4096, 7, 100, 128},
		{4096, 3, pieceSize + 1, pieceSize + 64}, {4096, 5, pieceSize/2 + 1, pieceSize}} {
		at := 0
		err := cut(b, func(part Block, from, to int) error {
			if from != at || part.Rows*part.Width != to-from || to-from > pieceSize {
				t.Errorf("%v: part %v for bytes %d to %d", b, part, from, to)
			}
			if want := b.Addr + uintptr(from/b.Width*b.Pitch+from%b.Width); part.Addr != want {
				t.Errorf("%v: part %v, want address %d", b, part, want)
			}
			at = to
			return nil
		})
		if err != nil || at != b.Rows*b.Width {
			t.Errorf("%v: %d of %d bytes (%v)", b, at, b.Rows*b.Width, err)
		}
	}
}

// idle is a gpu whose driver is a function that does nothing and returns 0.
func idle(t *testing.T) (g *gpu, zero uintptr) {
	h, err := purego.Dlopen("libc.so.6", purego.RTLD_NOW)
	if err != nil {
		t.Skip("no libc.so.6 here: ", err)
	}
	if zero, err = purego.Dlsym(h, "sched_yield"); err != nil {
		t.Fatal(err)
	}
	g = newGPU(func(string) {})
	for _, at := range g.api.table() {
		*at = zero
	}
	return g, zero
}

// A gpu starts, serves every part of the Driver and closes; a second Close does nothing.
func TestLifeOfAGPU(t *testing.T) {
	g, _ := idle(t)
	var _ Driver = g
	if err := g.start(); err != nil {
		t.Fatal(err)
	}
	g.lt = nil // a library that happens to be installed needs a GPU
	g.handle = 1
	if g.params[maxParams-1] != uintptr(unsafe.Pointer(&g.slots[maxParams-1])) {
		t.Error("the parameters of a launch do not point to its arguments")
	}
	recorded, err := g.Record(func() {
		if g.Sync() == nil || g.Upload(Block{}, nil) == nil {
			t.Error("a wait or a copy within a recording")
		}
	})
	if err != nil || g.recording {
		t.Fatalf("recording: %v, still recording: %v", err, g.recording)
	}
	f, err := g.NewFetch(64)
	if err != nil {
		t.Fatal(err)
	}
	addr, err := g.Alloc(1000)
	if err != nil || g.pool.used[addr] != class(1000) {
		t.Fatalf("memory of class %d, want %d (%v)", g.pool.used[addr], class(1000), err)
	}
	if g.Free(addr) != nil || g.Free(addr) == nil {
		t.Error("memory is freed once")
	}
	if n, err := g.Spare(); err != nil || n != int64(class(1000)) {
		t.Errorf("%d bytes to spare, want the pool's %d (%v)", n, class(1000), err)
	}
	if done, err := g.MatMul(&Product{M: 1, N: 1, K: 1}); done || err != nil {
		t.Errorf("a product without a library: %v, %v", done, err)
	}
	if err := errors.Join(recorded.Launch(), recorded.Free(), f.Free(), g.Close(), g.Close()); err != nil {
		t.Error(err)
	}
	if g.handle != 0 || g.pool.used != nil {
		t.Error("Close left something")
	}
}

// The calls of a steady step allocate nothing; the driver is a function that returns 0.
func TestSteadyStepAllocatesNothing(t *testing.T) {
	g, zero := idle(t)
	downloads(t, g)
	p := &Product{M: 512, N: 256, K: 128, TransB: true, A: 4096, B: 4096, C: 4096}
	key := *p
	key.A, key.B, key.C = 0, 0, 0
	g.lt = &cublasLt{mem: &g.memory, api: ltAPI{matmul: zero}, plans: map[Product]*plan{key: {}},
		alpha: &[2]float32{1, 0}}
	args := make([]uint64, 13)
	pinnedRoom, landed := slices.Repeat([]byte{7}, 64), make([]byte, 64)
	way := &fetch{ctx: g.context, size: 64, place: pinned{host: unsafe.Pointer(&pinnedRoom[0])}}
	for name, f := range map[string]func() error{
		"Launch": func() error { return g.Launch(0, Dim{1, 1, 1}, Dim{32, 1, 1}, 0, args) },
		"Clear":  func() error { return g.Clear(Block{Rows: 1, Width: 64, Pitch: 64}) },
		"Move":   func() error { return g.Move(Block{Rows: 1, Width: 64, Pitch: 64}, Block{}) },
		"Sync":   g.Sync,
		"graph":  (&graph{ctx: g.context}).Launch,
		"Mark":   way.Mark,
		"Wait":   func() error { return way.Wait(landed) },
		"MatMul": func() error { _, err := g.MatMul(p); return err },
	} {
		if n := testing.AllocsPerRun(50, func() {
			if err := f(); err != nil {
				t.Fatal(name, err)
			}
		}); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
	if !slices.Equal(landed, pinnedRoom) || way.Wait(make([]byte, 65)) == nil {
		t.Errorf("a fetch brought %v, or gave more than it has room for", landed)
	}
}

// downloads holds a copy in parts to what lies in the pieces of pinned memory that it passes, in order, and to no
// allocation.
func downloads(t *testing.T, g *gpu) {
	for i := range g.stage.piece {
		room := make([]byte, pieceSize)
		for j := range room {
			room[j] = byte(i + 1)
		}
		g.stage.piece[i].host = unsafe.Pointer(&room[0])
	}
	dst := make([]byte, 5*pieceSize/2)
	for _, b := range []Block{{0, 1, len(dst), len(dst)}, {0, 5, pieceSize / 2, pieceSize}} {
		g.stage.at, g.stage.used = 0, 0
		clear(dst)
		if err := g.Download(dst, b); err != nil {
			t.Fatal(err)
		}
		for i, want := range map[int]byte{0: 1, pieceSize - 1: 1, pieceSize: 2, 2*pieceSize - 1: 2, 2 * pieceSize: 3,
			len(dst) - 1: 3} {
			if dst[i] != want {
				t.Errorf("%v: byte %d came through piece %d, want %d", b, i, dst[i], want)
			}
		}
	}
	if n := testing.AllocsPerRun(5, func() { _ = g.Download(dst, Block{0, 1, len(dst), len(dst)}) }); n != 0 {
		t.Errorf("a download allocates %v times", n)
	}
}
