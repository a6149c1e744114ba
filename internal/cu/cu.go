// Package cu accesses an NVIDIA GPU without cgo: the driver, NVRTC and cuBLASLt through dlopen.
//
// Open finds the libraries, retains the device's primary context and returns a Driver: memory, copies, kernels from
// source, matrix products and graphs, all in the order of one stream. Kernels are compiled at first use and cached as
// cubins under the user's cache folder. Every call locks its OS thread and makes the context current there, in one
// place (see enter), so that a Driver may move between goroutines but is used by one at a time. Without CUDA, Open's
// error says in one line what was looked for.
package cu

import (
	"errors"
	"fmt"
)

// ErrUnavailable is wrapped by the error of Open if there is no usable GPU, driver or compiler.
var ErrUnavailable = errors.New("cuda is not available")

// unavailable reports in one line what was looked for and not found.
func unavailable(format string, a ...any) error {
	return fmt.Errorf("%w: %s", ErrUnavailable, fmt.Sprintf(format, a...))
}

// Dim is the extent of a grid or of a block.
type Dim struct{ X, Y, Z int }

// Func is a loaded kernel.
type Func uintptr

// Usage is a kernel's resource usage: registers per thread, bytes of local memory per thread (spilled registers, arrays
// indexed at run time; 0 is fast), and bytes of static shared memory per block.
type Usage struct{ Registers, Local, Shared int }

// Info describes the GPU and the libraries behind a Driver.
type Info struct {
	Name         string
	Ordinal      int
	Major, Minor int // compute capability
	SMs          int // streaming multiprocessors
	L2           int // bytes
	Shared       int // maximum bytes of shared memory per block
	Memory       int // total bytes
	Driver       int // CUDA version of the driver, 1000·major + 10·minor
	NVRTC        int // version of the compiler, in the same form
	CublasLt     int // version of cuBLASLt in its own numbering; 0 if there is none
}

// Arch is the architecture that kernels are compiled for.
func (i Info) Arch() string {
	if i.Major >= 9 {
		return fmt.Sprintf("sm_%d%da", i.Major, i.Minor) // including instructions specific to this generation
	}
	return fmt.Sprintf("sm_%d%d", i.Major, i.Minor)
}

// Source is one unit of compilation: complete text, without includes.
type Source struct {
	Name    string // for messages
	Text    string
	Options []string
}

// Block is a rectangle of bytes: Rows of Width bytes with a pitch of Pitch bytes. Its host side is dense.
type Block struct {
	Addr               uintptr
	Rows, Width, Pitch int
}

// Product is c[m,n] (+)= op(a)[m,k]·op(b)[k,n] of row-major bf16 matrices with fp32 accumulation. The fields up to
// Accumulate are the shape, for which a plan is cached; leading dimensions are in elements.
type Product struct {
	M, N, K        int
	LdA, LdB, LdC  int
	TransA, TransB bool
	Float          bool // c is fp32, else bf16
	Accumulate     bool
	Split          bool // the sum over k may be split into parts that are added in a fixed order
	A, B, C        uintptr
}

// TensorMap is the copy engine's descriptor of a tensor, an argument of kernels that load tiles with it (Hopper). Its
// content is opaque; it includes the tensor's address, so moved memory needs a new one.
type TensorMap [128]byte

// Tiles describes how a bf16 tensor of four dimensions is divided into tiles. Dimension 0 is contiguous; Strides are in
// bytes, of dimensions 1 to 3. A box is stored densely in shared memory, dimension 0 first, in rows of Box[0] elements
// whose 16-byte chunks are swizzled over 128 or 64 bytes: Box[0] is 64 or 32. Elements outside the tensor read as 0.
type Tiles struct {
	Addr    uintptr
	Dims    [4]int
	Strides [3]int
	Box     [4]int
}

// Check reports why the copy engine would reject the tiles.
func (t *Tiles) Check() error {
	bad := t.Addr == 0 || t.Addr%16 != 0 || t.Box[0] != 64 && t.Box[0] != 32
	for i, n := range t.Dims {
		bad = bad || n < 1 || n > 1<<32 || t.Box[i] < 1 || t.Box[i] > 256
	}
	for _, n := range t.Strides {
		bad = bad || n < 0 || n%16 != 0 || n >= 1<<40
	}
	if bad {
		copied := *t // formatting the tiles themselves would make them escape to the heap
		return fmt.Errorf("no tensor map for %+v", copied)
	}
	return nil
}

// Tiler is a Driver whose GPU has a copy engine for tiles and whose kernels can take their arguments as one struct.
type Tiler interface {
	// TensorMap fills m.
	TensorMap(m *TensorMap, t *Tiles) error
	// LaunchStruct starts a kernel with one parameter of len(arg) bytes, which are copied before it returns.
	LaunchStruct(f Func, grid, block Dim, shared int, arg []byte) error
}

// Meter is a Driver that knows the free memory of its GPU.
type Meter interface{ Spare() (int64, error) }

// Graph is recorded work that one call replays.
type Graph interface {
	Launch() error
	Free() error
}

// Fetch is an asynchronous copy to the host: memory that kernels write and the host reads, and an event in stream
// order.
type Fetch interface {
	// Addr is the address that kernels write to.
	Addr() uintptr
	// Mark records the event after the work so far.
	Mark() error
	// Wait blocks until the work before the mark is done, but not for later work, and copies the result.
	Wait(dst []byte) error
	Free() error
}

// EarlyStarter is a Driver that can start a kernel while the previous one still runs (programmatic dependent launch).
type EarlyStarter interface {
	// Early declares that a kernel waits for earlier work itself (griddepcontrol.wait). It then starts early after
	// another such kernel, and only there: all work before the first of them is done and visible when any of them
	// starts.
	Early(f Func)
}

// Driver is a GPU as a device needs it. All work runs in the order of the calls.
type Driver interface {
	Info() Info
	// Alloc returns zeroed device memory, aligned to 256 bytes; Free returns it to a pool for a later Alloc.
	Alloc(bytes int) (uintptr, error)
	Free(addr uintptr) error
	// Shared returns zeroed memory that kernels and the host can both access, for the lifetime of the driver. The host
	// sees kernels' writes after Sync.
	Shared(bytes int) (addr uintptr, host []byte, err error)
	// Upload copies dense host bytes; src may be reused at once.
	Upload(dst Block, src []byte) error
	// Download waits for earlier work and copies to dense host bytes.
	Download(dst []byte, src Block) error
	// NewFetch allocates an asynchronous copy of up to bytes bytes.
	NewFetch(bytes int) (Fetch, error)
	// Clear sets bytes to zero, Move copies a rectangle to another of the same rows and width.
	Clear(b Block) error
	Move(dst, src Block) error
	// Load compiles a unit; Func finds a kernel in it; Reserve lets it use this many bytes of dynamic shared memory.
	Load(s Source) (module uintptr, err error)
	Func(module uintptr, name string) (Func, error)
	Reserve(f Func, shared int) error
	// Usage is the resource usage of a kernel.
	Usage(f Func) Usage
	// Launch starts a kernel; args hold one parameter each, in its low bytes.
	Launch(f Func, grid, block Dim, shared int, args []uint64) error
	// MatMul computes a product, or returns false if the library does not support the shape.
	MatMul(p *Product) (bool, error)
	// Sync waits for all work and returns the first fault.
	Sync() error
	// Record captures what f starts, without running it, as a graph.
	Record(f func()) (Graph, error)
	// Time runs f and returns the milliseconds it took on the GPU.
	Time(f func()) (float64, error)
	Close() error
}
