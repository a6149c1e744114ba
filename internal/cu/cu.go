// Package cu reaches an NVIDIA GPU without cgo: the driver, NVRTC and cuBLASLt by dlopen.
//
// Open finds the libraries, retains the device's primary context and gives a Driver: memory, copies, kernels from source,
// matrix products and graphs, all in the order of one stream. Kernels are compiled at first use and kept as cubins under the
// user's cache folder. Every call locks its OS thread and makes the context current there, in one place (see enter), so that a
// Driver may move between goroutines but is used by one at a time. Without CUDA, Open says in one line what was looked for.
package cu

import (
	"errors"
	"fmt"
)

// ErrUnavailable is wrapped by the error of Open where there is no usable GPU, driver or compiler.
var ErrUnavailable = errors.New("cuda is not available")

// unavailable says in one line what was looked for and not found.
func unavailable(format string, a ...any) error {
	return fmt.Errorf("%w: %s", ErrUnavailable, fmt.Sprintf(format, a...))
}

// Dim is the extent of a grid or of a block.
type Dim struct{ X, Y, Z int }

// Func is a kernel that was loaded.
type Func uintptr

// Usage is what the compiler gave a kernel: registers a thread, bytes of local memory a thread (spilled registers, arrays
// that are indexed at run time; 0 is fast), and bytes of static shared memory a block.
type Usage struct{ Registers, Local, Shared int }

// Info describes the GPU and the libraries behind a Driver.
type Info struct {
	Name         string
	Ordinal      int
	Major, Minor int // compute capability
	SMs          int // streaming multiprocessors
	L2           int // bytes
	Shared       int // bytes of shared memory that one block may ask for
	Memory       int // bytes in all
	Driver       int // CUDA version of the driver, 1000·major + 10·minor
	NVRTC        int // version of the compiler, likewise
	CublasLt     int // version of cuBLASLt as it numbers itself; 0 when there is none
}

// Arch is the name of the architecture that kernels are built for.
func (i Info) Arch() string {
	if i.Major >= 9 {
		return fmt.Sprintf("sm_%d%da", i.Major, i.Minor) // with the instructions of this generation alone
	}
	return fmt.Sprintf("sm_%d%d", i.Major, i.Minor)
}

// Source is one unit of compilation: complete text, no file is looked for.
type Source struct {
	Name    string // for messages
	Text    string
	Options []string
}

// Block is a rectangle of bytes: Rows of Width bytes that start Pitch bytes apart. Its host side is dense.
type Block struct {
	Addr               uintptr
	Rows, Width, Pitch int
}

// Product is c[m,n] (+)= op(a)[m,k]·op(b)[k,n] of row-major bf16 matrices with fp32 accumulation.
// The fields up to Accumulate are the shape, which a plan is kept for; leading dimensions are in elements.
type Product struct {
	M, N, K        int
	LdA, LdB, LdC  int
	TransA, TransB bool
	Float          bool // c is fp32, else bf16
	Accumulate     bool
	Split          bool // the sum over k may be cut into parts that are added in a fixed order
	A, B, C        uintptr
}

// TensorMap is the copy engine's description of a tensor, an argument of kernels that load tiles by it (Hopper). Its
// content is the driver's; it holds the tensor's address, so moved memory needs a new one.
type TensorMap [128]byte

// Tiles says how a bf16 tensor of four dimensions is cut into tiles. Dimension 0 is contiguous; Strides are the distances
// in bytes of dimensions 1 to 3. A box lands in shared memory densely, dimension 0 first, in rows of Box[0] elements whose
// 16-byte chunks are swizzled over 128 or 64 bytes: Box[0] is 64 or 32. What lies outside the tensor reads as 0.
type Tiles struct {
	Addr    uintptr
	Dims    [4]int
	Strides [3]int
	Box     [4]int
}

// Check says why the copy engine would not take the tiles.
func (t *Tiles) Check() error {
	bad := t.Addr == 0 || t.Addr%16 != 0 || t.Box[0] != 64 && t.Box[0] != 32
	for i, n := range t.Dims {
		bad = bad || n < 1 || n > 1<<32 || t.Box[i] < 1 || t.Box[i] > 256
	}
	for _, n := range t.Strides {
		bad = bad || n < 0 || n%16 != 0 || n >= 1<<40
	}
	if bad {
		copied := *t // formatting the tiles themselves would move them to the heap
		return fmt.Errorf("no tensor map for %+v", copied)
	}
	return nil
}

// Tiler is a Driver whose GPU has a copy engine for tiles and whose kernels may take their arguments as one struct.
type Tiler interface {
	// TensorMap fills m.
	TensorMap(m *TensorMap, t *Tiles) error
	// LaunchStruct starts a kernel with one parameter of len(arg) bytes, which are copied before it returns.
	LaunchStruct(f Func, grid, block Dim, shared int, arg []byte) error
}

// Meter is a Driver that knows how much memory its GPU can still give.
type Meter interface{ Spare() (int64, error) }

// Graph is recorded work that one call replays.
type Graph interface {
	Launch() error
	Free() error
}

// Fetch is a way to the host: memory that kernels write and the host reads, and a mark in the order of work.
type Fetch interface {
	// Addr is where kernels write.
	Addr() uintptr
	// Mark sets the mark behind the work so far.
	Mark() error
	// Wait blocks until the work before the mark is done, not for work behind it, and hands over what it has left here.
	Wait(dst []byte) error
	Free() error
}

// EarlyStarter is a Driver that can start a kernel while the one before it still runs (programmatic dependent launch).
type EarlyStarter interface {
	// Early says that a kernel waits by itself for the work before it (griddepcontrol.wait). It then starts early behind another such kernel,
	// and only there: whatever came before the first of them is done and seen when any of them starts.
	Early(f Func)
}

// Driver is what a device needs of a GPU. All work runs in the order of the calls.
type Driver interface {
	Info() Info
	// Alloc gives zeroed device memory, aligned to 256 bytes; Free takes it back for a later Alloc.
	Alloc(bytes int) (uintptr, error)
	Free(addr uintptr) error
	// Shared gives zeroed memory that kernels and the host both reach, as long as the driver lives. The host sees what kernels
	// wrote there after Sync.
	Shared(bytes int) (addr uintptr, host []byte, err error)
	// Upload copies dense host bytes; src may be reused at once.
	Upload(dst Block, src []byte) error
	// Download waits for the work before it and copies to dense host bytes.
	Download(dst []byte, src Block) error
	// NewFetch makes a way for at most so many bytes.
	NewFetch(bytes int) (Fetch, error)
	// Clear sets bytes to zero, Move copies a rectangle to another of the same rows and width.
	Clear(b Block) error
	Move(dst, src Block) error
	// Load builds a unit; Func finds a kernel in it and lets it use shared bytes of dynamic shared memory.
	Load(s Source) (module uintptr, err error)
	Func(module uintptr, name string) (Func, error)
	Reserve(f Func, shared int) error
	// Usage is what a kernel takes of a multiprocessor.
	Usage(f Func) Usage
	// Launch starts a kernel; args hold one parameter each, in its low bytes.
	Launch(f Func, grid, block Dim, shared int, args []uint64) error
	// MatMul forms a product, or says false where the library has no way for this shape.
	MatMul(p *Product) (bool, error)
	// Sync waits for everything and returns the first fault.
	Sync() error
	// Record keeps what f starts, without running it, as a graph.
	Record(f func()) (Graph, error)
	// Time runs f and gives the milliseconds between its start and its end on the GPU.
	Time(f func()) (float64, error)
	Close() error
}
