//go:build (amd64 || arm64) && !nogpu

package cu

import (
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
	if n := testing.AllocsPerRun(100, func() { fast(memset, uintptr(unsafe.Pointer(&room[0])), 7, 64, 0, 0, 0, 0, 0, 0, 0, 0) }); n != 0 {
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
	for _, b := range []Block{{4096, 1, 3*pieceSize + 5, 3*pieceSize + 5}, {4096, 7, 100, 128}, {4096, 3, pieceSize + 1, pieceSize + 64}, {4096, 5, pieceSize/2 + 1, pieceSize}} {
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

// The calls of a steady step allocate nothing; the driver is a function that returns 0.
func TestSteadyStepAllocatesNothing(t *testing.T) {
	h, err := purego.Dlopen("libc.so.6", purego.RTLD_NOW)
	if err != nil {
		t.Skip("no libc.so.6 here: ", err)
	}
	zero, err := purego.Dlsym(h, "sched_yield") // returns 0, whatever it is given
	if err != nil {
		t.Fatal(err)
	}
	g := &gpu{}
	for _, at := range g.api.table() {
		*at = zero
	}
	downloads(t, g)
	p := &Product{M: 512, N: 256, K: 128, TransB: true, A: 4096, B: 4096, C: 4096}
	key := *p
	key.A, key.B, key.C = 0, 0, 0
	g.lt = &cublasLt{g: g, api: ltAPI{matmul: zero}, plans: map[Product]*plan{key: {}}, alpha: &[2]float32{1, 0}}
	args := make([]uint64, 13)
	pinnedRoom, landed := slices.Repeat([]byte{7}, 64), make([]byte, 64)
	way := &fetch{g: g, size: 64, place: pinned{host: unsafe.Pointer(&pinnedRoom[0])}}
	for name, f := range map[string]func() error{
		"Launch": func() error { return g.Launch(0, Dim{1, 1, 1}, Dim{32, 1, 1}, 0, args) },
		"Clear":  func() error { return g.Clear(Block{Rows: 1, Width: 64, Pitch: 64}) },
		"Move":   func() error { return g.Move(Block{Rows: 1, Width: 64, Pitch: 64}, Block{}) },
		"Sync":   g.Sync,
		"graph":  (&graph{g: g}).Launch,
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

// downloads holds a copy in parts to what lies in the pieces of pinned memory that it passes, in order, and to no allocation.
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
		for i, want := range map[int]byte{0: 1, pieceSize - 1: 1, pieceSize: 2, 2*pieceSize - 1: 2, 2 * pieceSize: 3, len(dst) - 1: 3} {
			if dst[i] != want {
				t.Errorf("%v: byte %d came through piece %d, want %d", b, i, dst[i], want)
			}
		}
	}
	if n := testing.AllocsPerRun(5, func() { _ = g.Download(dst, Block{0, 1, len(dst), len(dst)}) }); n != 0 {
		t.Errorf("a download allocates %v times", n)
	}
}
