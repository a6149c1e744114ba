//go:build linux && amd64

package cuda

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"antiphase/internal/cu"
)

// emulator is a Driver that runs the kernels on the CPU: their text is compiled as C++ with testdata/ptx.cuh in the
// place of kernels/ptx.cuh. It is slow and right, so that the kernels' arithmetic, bounds and barriers are tested on
// any machine.
type emulator struct {
	t        testing.TB
	compiler string
	dir      string
	memory   map[uintptr][]byte
	funcs    []emulated
	graph    *emulatedGraph // being recorded
	args     [maxArgs]unsafe.Pointer
	slots    [maxArgs]uint64
	pending  [][]byte // memory that a kernel sees only after it has waited for those before it (early.cuh)
}

type emulated struct{ launch, pending, entry uintptr }

// emulatedUnits are those that some test has compiled, by name and text: they serve all tests, which run one after the
// other.
var emulatedUnits = map[string]uintptr{}

var _ cu.Driver = (*emulator)(nil)

// newEmulator skips the test where there is no C++ compiler, or no time.
func newEmulator(t testing.TB) *emulator {
	t.Helper()
	if testing.Short() {
		t.Skip("compiling the kernels as C++ takes half a minute")
	}
	for _, name := range []string{"g++", "clang++-19", "clang++-16", "clang++", "c++"} {
		if path, err := exec.LookPath(name); err == nil {
			return &emulator{t: t, compiler: path, dir: t.TempDir(), memory: map[uintptr][]byte{}}
		}
	}
	t.Skip("no C++ compiler to run the kernels with")
	return nil
}

// Info claims a small Hopper, so that geometry that depends on the number of multiprocessors takes several shapes.
func (e *emulator) Info() cu.Info {
	return cu.Info{Name: "emulator", Major: 9, SMs: 3, L2: 1 << 20, Shared: 227 << 10}
}

// Alloc gives host memory on 256 bytes, with noise behind its end for those who read too far.
func (e *emulator) Alloc(bytes int) (uintptr, error) {
	b := make([]byte, bytes+1024)
	skip := int(-uintptr(unsafe.Pointer(&b[0])) & 255)
	for i := skip + bytes; i < len(b); i++ {
		b[i] = byte(rand.Uint32()) | 0x70
	}
	at := uintptr(unsafe.Pointer(&b[skip]))
	e.memory[at] = b
	return at, nil
}

func (e *emulator) Free(addr uintptr) error {
	if e.memory[addr] == nil {
		return fmt.Errorf("free of %#x", addr)
	}
	delete(e.memory, addr)
	return nil
}

func (e *emulator) Shared(bytes int) (uintptr, []byte, error) {
	at, err := e.Alloc(bytes)
	return at, bytesAt(at, bytes), err
}

// bytesAt sees device memory, which is the host's.
func bytesAt(addr uintptr, n int) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&addr))), n)
}

func row(b cu.Block, r int) []byte { return bytesAt(b.Addr+uintptr(r*b.Pitch), b.Width) }

func (e *emulator) Upload(dst cu.Block, src []byte) error {
	if e.graph != nil {
		return fmt.Errorf("%d bytes copied while a graph is recorded", len(src))
	}
	for r := range dst.Rows {
		copy(row(dst, r), src[r*dst.Width:])
	}
	return nil
}

func (e *emulator) Download(dst []byte, src cu.Block) error {
	if e.graph != nil {
		return fmt.Errorf("%d bytes copied while a graph is recorded", len(dst))
	}
	for r := range src.Rows {
		copy(dst[r*src.Width:], row(src, r))
	}
	return nil
}

func (e *emulator) NewFetch(bytes int) (cu.Fetch, error) {
	at, err := e.Alloc(bytes)
	return emulatedFetch{e, at}, err
}

// emulatedFetch is memory: work is done when it is asked for.
type emulatedFetch struct {
	e  *emulator
	at uintptr
}

func (f emulatedFetch) Addr() uintptr { return f.at }
func (f emulatedFetch) Mark() error   { return nil }
func (f emulatedFetch) Free() error   { return f.e.Free(f.at) }

func (f emulatedFetch) Wait(dst []byte) error {
	return f.e.Download(dst, cu.Block{Addr: f.at, Rows: 1, Width: len(dst), Pitch: len(dst)})
}

func (e *emulator) Clear(b cu.Block) error {
	if e.later(func() error { return e.Clear(b) }) {
		return nil
	}
	for r := range b.Rows {
		clear(row(b, r))
	}
	return nil
}

func (e *emulator) Move(dst, src cu.Block) error {
	if e.later(func() error { return e.Move(dst, src) }) {
		return nil
	}
	for r := range dst.Rows {
		copy(row(dst, r), row(src, r))
	}
	return nil
}

var dynamicShared = regexp.MustCompile(`extern __shared__ (?:__align__\(\d+\) )?(\w[\w ]*?) (\w+)\[\];`)

// Load compiles a unit, with an entry of one signature for each kernel of the registry that is in it.
func (e *emulator) Load(s cu.Source) (uintptr, error) {
	var text strings.Builder
	text.WriteString(dynamicShared.ReplaceAllString(s.Text, "$1* $2 = ($1*)emu::dynamic;"))
	for _, r := range registry {
		if strings.TrimSpace(r.unit+" "+r.options) == s.Name {
			fmt.Fprintf(&text,
				"extern \"C\" __attribute__((visibility(\"default\"))) void emu_%s(void** p) { emu::invoke(%s, p); }\n",
				r.name, r.name)
		}
	}
	key := s.Name + text.String()
	if lib, ok := emulatedUnits[key]; ok {
		return lib, nil
	}
	base := filepath.Join(e.dir, fmt.Sprintf("unit%d", len(emulatedUnits)))
	if err := os.WriteFile(base+".cc", []byte(text.String()), 0o644); err != nil {
		return 0, err
	}
	level := "-O1"
	if strings.Contains(s.Name, "_cached") {
		level = "-O0" // many shapes and little work for each: compiling takes the time
	}
	args := append([]string{level, "-w", "-std=c++17", "-shared", "-fPIC", "-fno-strict-aliasing",
		"-fvisibility=hidden", "-nostdinc++"}, s.Options...)
	args = append(args, "-o", base+".so", base+".cc", "-nodefaultlibs", "-lm", "-lc", "-lgcc")
	if out, err := exec.Command(e.compiler, args...).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s: %v\n%.4000s", s.Name, err, out)
	}
	lib, err := purego.Dlopen(base+".so", purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err == nil {
		emulatedUnits[key] = lib
	}
	return lib, err
}

func (e *emulator) Func(module uintptr, name string) (cu.Func, error) {
	entry, err := purego.Dlsym(module, "emu_"+name)
	if err != nil {
		return 0, err
	}
	launch, err := purego.Dlsym(module, "emu_launch")
	if err != nil {
		return 0, err
	}
	pending, err := purego.Dlsym(module, "emu_pending")
	e.funcs = append(e.funcs, emulated{launch, pending, entry})
	return cu.Func(len(e.funcs)), err
}

func (e *emulator) Reserve(cu.Func, int) error { return nil }

func (e *emulator) Usage(cu.Func) cu.Usage { return cu.Usage{} }

func (e *emulator) Launch(f cu.Func, grid, block cu.Dim, shared int, args []uint64) error {
	if shared > e.Info().Shared {
		return fmt.Errorf("%d bytes of shared memory", shared)
	}
	if e.graph != nil {
		args = slices.Clone(args)
		e.later(func() error { return e.Launch(f, grid, block, shared, args) })
		return nil
	}
	for i, a := range args {
		e.slots[i] = a
		e.args[i] = unsafe.Pointer(&e.slots[i])
	}
	k := e.funcs[f-1]
	for _, b := range e.pending {
		purego.SyscallN(k.pending, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	}
	purego.SyscallN(k.launch, k.entry, uintptr(grid.X), uintptr(grid.Y), uintptr(grid.Z),
		uintptr(block.X), uintptr(block.Y), uintptr(block.Z), uintptr(unsafe.Pointer(&e.args[0])))
	return nil
}

// MatMul leaves every product to the built-in kernel.
func (e *emulator) MatMul(*cu.Product) (bool, error) { return false, nil }

func (e *emulator) Sync() error { return nil }

// Record keeps what f asks for as a list of calls.
func (e *emulator) Record(f func()) (cu.Graph, error) {
	g := &emulatedGraph{}
	e.graph = g
	f()
	e.graph = nil
	return g, nil
}

// later puts a call into the graph that is being recorded, if there is one.
func (e *emulator) later(call func() error) bool {
	if e.graph != nil {
		e.graph.calls = append(e.graph.calls, call)
	}
	return e.graph != nil
}

type emulatedGraph struct{ calls []func() error }

func (g *emulatedGraph) Launch() error {
	for _, f := range g.calls {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

func (g *emulatedGraph) Free() error { return nil }

func (e *emulator) Time(f func()) (float64, error) {
	f()
	return 0, nil
}

func (e *emulator) Close() error { return nil }

// emulatedDevice is a Device whose kernels run on the CPU.
func emulatedDevice(t testing.TB) *Device {
	t.Helper()
	d, err := newDevice(newEmulator(t))
	if err != nil {
		t.Fatal(err)
	}
	d.replace = map[string]string{}
	for _, name := range []string{"ptx.cuh", "attn_ptx.cuh", "hopper.cuh", "early.cuh"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		d.replace[name] = string(b)
	}
	return d
}
