// Package cutest is a GPU driver that only records calls, so that launchers can be tested on any machine.
package cutest

import (
	"fmt"
	"slices"

	"antiphase/internal/cu"
)

// Launch is one recorded launch.
type Launch struct {
	Kernel      string
	Grid, Block cu.Dim
	Shared      int
	Args        []uint64
	Struct      []byte // of LaunchStruct
}

// Driver records calls. Its memory is addresses without bytes: reads return zero.
type Driver struct {
	Launches []Launch
	Products []cu.Product
	Clears   []cu.Block
	Moves    []cu.Block // destinations
	Loaded   []string   // units, in the order of their first use
	Graphs   int        // launches of graphs
	Recorded int        // launches, products, clears and moves inside the last graph
	Order    []string   // graphs, marks, waits, copies and Syncs in order, up to its capacity
	Live     int        // bytes allocated and not freed
	NoLt     bool       // MatMul supports nothing
	Quiet    bool       // record nothing, so that a test sees only the caller's allocations
	// Params is the number of parameters of each kernel; a launch with another number is an error. Nil disables the
	// check.
	Params map[string]int
	Device cu.Info

	next  uintptr
	sizes map[uintptr]int
	names []string // of kernels, Func is the place + 1
	err   error

	recording bool
}

var (
	_ cu.Driver = (*Driver)(nil)
	_ cu.Tiler  = (*Driver)(nil)
)

// New makes a recorder that claims to be an H200.
func New() *Driver {
	return &Driver{
		Device: cu.Info{Name: "recorder", Major: 9, SMs: 132, L2: 60 << 20, Shared: 227 << 10, Memory: 140 << 30},
		next:   1 << 32,
		sizes:  map[uintptr]int{},
	}
}

// Reset forgets what was recorded.
func (d *Driver) Reset() {
	d.Launches, d.Products, d.Clears, d.Moves, d.Graphs, d.Order = nil, nil, nil, nil, 0, d.Order[:0]
}

// note records a call's place among the others.
func (d *Driver) note(call string) {
	if len(d.Order) < cap(d.Order) {
		d.Order = append(d.Order, call)
	}
}

// aside counts a call that belongs to a graph, and reports whether there is nothing more to do.
func (d *Driver) aside() bool {
	if d.recording {
		d.Recorded++
	}
	return d.recording || d.Quiet
}

// Fail makes the next Sync return err.
func (d *Driver) Fail(err error) { d.err = err }

// Info is Device.
func (d *Driver) Info() cu.Info { return d.Device }

// Alloc hands out addresses.
func (d *Driver) Alloc(bytes int) (uintptr, error) {
	at := d.next
	d.next += uintptr(bytes+4095) &^ 4095
	d.sizes[at] = bytes
	d.Live += bytes
	return at, nil
}

// Free rejects addresses that Alloc did not return.
func (d *Driver) Free(addr uintptr) error {
	n, ok := d.sizes[addr]
	if !ok {
		return fmt.Errorf("free of %#x, which is not allocated", addr)
	}
	delete(d.sizes, addr)
	d.Live -= n
	return nil
}

// Shared is host memory and an address.
func (d *Driver) Shared(bytes int) (uintptr, []byte, error) {
	at, err := d.Alloc(bytes)
	return at, make([]byte, bytes), err
}

// Upload checks sizes, and rejects a copy during a recording.
func (d *Driver) Upload(dst cu.Block, src []byte) error {
	d.note("upload")
	return fits(d, dst, len(src))
}

// Download returns zeros, with the same checks.
func (d *Driver) Download(dst []byte, src cu.Block) error {
	d.note("download")
	clear(dst)
	return fits(d, src, len(dst))
}

// NewFetch returns a fetch of zeros.
func (d *Driver) NewFetch(bytes int) (cu.Fetch, error) {
	at, err := d.Alloc(bytes)
	return &fetch{d: d, at: at, room: bytes}, err
}

type fetch struct {
	d    *Driver
	at   uintptr
	room int
}

// Addr is an address.
func (f *fetch) Addr() uintptr { return f.at }

// Mark fails during a recording.
func (f *fetch) Mark() error {
	f.d.note("mark")
	return fits(f.d, cu.Block{}, 0)
}

// Wait gives zeros.
func (f *fetch) Wait(dst []byte) error {
	f.d.note("wait")
	if len(dst) > f.room {
		return fmt.Errorf("%d bytes of a room for %d", len(dst), f.room)
	}
	clear(dst)
	return nil
}

// Free counts.
func (f *fetch) Free() error { return f.d.Free(f.at) }

func fits(d *Driver, b cu.Block, n int) error {
	if d.recording {
		return fmt.Errorf("%d bytes copied while a graph is recorded", n)
	}
	if b.Rows*b.Width != n {
		return fmt.Errorf("%d bytes and a block of %d rows of %d", n, b.Rows, b.Width)
	}
	return nil
}

// Clear records.
func (d *Driver) Clear(b cu.Block) error {
	if !d.aside() {
		d.Clears = append(d.Clears, b)
	}
	return nil
}

// Move records the destination.
func (d *Driver) Move(dst, src cu.Block) error {
	if !d.aside() {
		d.Moves = append(d.Moves, dst)
	}
	return nil
}

// Load accepts any text.
func (d *Driver) Load(s cu.Source) (uintptr, error) {
	d.Loaded = append(d.Loaded, s.Name)
	return uintptr(len(d.Loaded)), nil
}

// Func accepts any name.
func (d *Driver) Func(module uintptr, name string) (cu.Func, error) {
	d.names = append(d.names, name)
	return cu.Func(len(d.names)), nil
}

// Reserve rejects more shared memory than a block may have.
func (d *Driver) Reserve(f cu.Func, shared int) error {
	if shared > d.Device.Shared {
		return fmt.Errorf("kernel %s: %d bytes of shared memory, at most %d", d.names[f-1], shared, d.Device.Shared)
	}
	return nil
}

// Usage is unknown.
func (d *Driver) Usage(cu.Func) cu.Usage { return cu.Usage{} }

// Launch records, and rejects geometry that no GPU supports.
func (d *Driver) Launch(f cu.Func, grid, block cu.Dim, shared int, args []uint64) error {
	if err := takes(d, f, grid, block, len(args)); err != nil || d.aside() {
		return err
	}
	d.Launches = append(d.Launches, Launch{d.names[f-1], grid, block, shared, slices.Clone(args), nil})
	return nil
}

// takes rejects geometry that no GPU supports, and a wrong number of parameters.
func takes(d *Driver, f cu.Func, grid, block cu.Dim, params int) error {
	name, threads := d.names[f-1], block.X*block.Y*block.Z
	if grid.X < 1 || grid.Y < 1 || grid.Z < 1 || grid.X > 1<<31-1 || grid.Y > 65535 || grid.Z > 65535 || threads < 1 ||
		threads > 1024 {
		return fmt.Errorf("kernel %s: grid %v of blocks %v", name, grid, block)
	}
	if want, ok := d.Params[name]; d.Params != nil && (!ok || want != params) {
		return fmt.Errorf("kernel %s: %d arguments for %d parameters", name, params, want)
	}
	return nil
}

// LaunchStruct records in the same way.
func (d *Driver) LaunchStruct(f cu.Func, grid, block cu.Dim, shared int, arg []byte) error {
	if err := takes(d, f, grid, block, 1); err != nil || d.aside() {
		return err
	}
	d.Launches = append(d.Launches, Launch{d.names[f-1], grid, block, shared, nil, slices.Clone(arg)})
	return nil
}

// TensorMap rejects what the copy engine does not support.
func (d *Driver) TensorMap(m *cu.TensorMap, t *cu.Tiles) error {
	*m = cu.TensorMap{}
	return t.Check()
}

// MatMul records.
func (d *Driver) MatMul(p *cu.Product) (bool, error) {
	if d.NoLt {
		return false, nil
	}
	if d.aside() {
		return true, nil
	}
	d.Products = append(d.Products, *p)
	return true, nil
}

// Sync returns the error set by Fail.
func (d *Driver) Sync() error {
	d.note("sync")
	err := d.err
	d.err = nil
	return err
}

// Record counts what f calls; replays are counted too.
func (d *Driver) Record(f func()) (cu.Graph, error) {
	d.Recorded, d.recording = 0, true
	f()
	d.recording = false
	return graph{d}, nil
}

type graph struct{ d *Driver }

// Launch counts.
func (g graph) Launch() error {
	g.d.note("graph")
	g.d.Graphs++
	return nil
}

// Free does nothing.
func (graph) Free() error { return nil }

// Time runs f in no time.
func (d *Driver) Time(f func()) (float64, error) {
	f()
	return 0, nil
}

// Close has nothing to release.
func (d *Driver) Close() error { return nil }
