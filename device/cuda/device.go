// Package cuda is the Device on an NVIDIA GPU: bf16 weights and activations, fp32 sums, statistics and master weights.
//
// A method checks shapes, works out the geometry from them alone and launches: kernels of kernels/STEM.cu, or cuBLASLt
// for large products; of few rows an op may wait for the next and run in one kernel with it (held.go). All work runs in the
// order of one stream; a method returns at once, Sync waits and tells the first fault (an id outside its table, an error of
// the driver). Scratch memory is one room that grows to the largest need, so a steady step allocates nothing, on the host or
// on the GPU, and Record turns it into one graph. Sums have a fixed order.
package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"

	"antiphase/device"
	"antiphase/internal/cu"
	"antiphase/tensor"
)

// ErrUnavailable is wrapped by Open's error where there is no GPU, driver or compiler to use.
var ErrUnavailable = cu.ErrUnavailable

// Options say how to open a GPU.
type Options struct {
	Progress  func(line string) // told about each kernel that is being built; may be nil
	ByteCache bool              // key/value caches hold bytes, see device.Cache: half the memory, other bits
}

// Device is one GPU. It is used by one goroutine at a time.
type Device struct {
	drv   cu.Driver
	info  cu.Info
	types device.Types

	funcs    []loaded          // by kernel
	modules  map[string]module // by unit and options
	replace  map[string]string // kernel files that a test puts in place of the embedded ones
	err      error             // first fault since the last Sync
	args     [maxArgs]uint64   // of the launch under way, so that a launch allocates nothing
	product  cu.Product        // of the product under way, likewise
	mapOf    cu.Tiles          // of the tensor map under way, likewise
	forward  forwardArgs       // of the attention under way, likewise
	backward backwardArgs
	queries  queriesArgs

	fault  uintptr // shared memory: code, value, bound of the first fault of a kernel
	told   []byte  // the same, as the host sees it
	room   scratch
	logits scratch       // Classify's chunk, held while its products use the room
	chunk  tensor.Buffer // the same memory, as products see it
	graphs int           // alive: they hold addresses of the room
	fresh  fresh         // what kernels that overlap have written
	held   held          // an op that the next one may take along

	unfused bool // nothing is held: a test's
	wgmma   bool // attention takes the kernels for Hopper, where there are any

	maxLogits int // see the constant; a test makes it small
}

var (
	_ device.Device   = (*Device)(nil)
	_ device.Recorder = (*Device)(nil)
	_ device.Pager    = (*Device)(nil)
	_ device.Ahead    = (*Device)(nil)
)

// maxArgs bounds the parameters of a kernel.
const maxArgs = 48

// loaded is a kernel that is ready, and how much dynamic shared memory it may use.
type loaded struct {
	fn     cu.Func
	shared int
}

// module is a unit that was loaded, or why it could not be: it is not tried again.
type module struct {
	handle uintptr
	err    error
}

// Open opens GPU number ordinal.
func Open(ordinal int, opt Options) (*Device, error) {
	drv, err := cu.Open(ordinal, opt.Progress)
	if err != nil {
		return nil, err
	}
	d, err := newDevice(drv)
	if err == nil {
		err = d.chooseAttention(os.Getenv("ANTIPHASE_ATTENTION"))
		if opt.ByteCache {
			d.types.Cache = tensor.I8
		}
	}
	if err != nil {
		return nil, errors.Join(err, drv.Close())
	}
	return d, nil
}

// newDevice makes a device of a driver, which it owns from then on.
func newDevice(drv cu.Driver) (*Device, error) {
	info := drv.Info()
	if info.Major < 8 {
		return nil, fmt.Errorf("%w: %s has compute capability %d.%d, bf16 matrix units begin with 8.0", ErrUnavailable, info.Name, info.Major, info.Minor)
	}
	fault, told, err := drv.Shared(16)
	if err != nil {
		return nil, err
	}
	return &Device{
		drv: drv, info: info, fault: fault, told: told, maxLogits: maxLogits,
		types:   device.Types{Act: tensor.BF16, Stat: tensor.F32, Cache: tensor.BF16},
		funcs:   make([]loaded, len(registry)),
		modules: map[string]module{},
	}, nil
}

// Name says what this is.
func (d *Device) Name() string {
	return fmt.Sprintf("cuda:%d: %s, %s, %d SMs, %s", d.info.Ordinal, d.info.Name, d.info.Arch(), d.info.SMs, d.precision())
}

// Info describes the GPU and its libraries.
func (d *Device) Info() cu.Info { return d.info }

// Types are bf16 for weights and activations, fp32 for statistics.
func (d *Device) Types() device.Types { return d.types }

// Alloc gives zeroed device memory. It panics when the GPU has none left, as a slice does.
func (d *Device) Alloc(bytes int) *tensor.Buffer {
	addr, err := d.drv.Alloc(bytes)
	if err != nil {
		panic(&tensor.NoMemory{Where: "device", Bytes: bytes, Free: -1, Err: err})
	}
	return &tensor.Buffer{Addr: addr, Size: bytes}
}

// Free takes it back.
func (d *Device) Free(b *tensor.Buffer) {
	d.fail(d.now().Free(b.Addr))
	*b = tensor.Buffer{}
}

// Write copies dense host bytes into dst.
func (d *Device) Write(dst tensor.Tensor, src []byte) {
	mustBytes("write", dst, len(src))
	if len(src) > 0 {
		d.fail(d.now().Upload(block(dst), src))
	}
}

// Read waits for the work before it and copies src to dense host bytes.
func (d *Device) Read(dst []byte, src tensor.Tensor) {
	mustBytes("read", src, len(dst))
	if len(dst) > 0 {
		d.fail(d.now().Download(dst, block(src)))
		d.fresh.clear()
	}
}

func mustBytes(verb string, t tensor.Tensor, n int) {
	if !t.Ok() || tensor.Bytes(t.Type, t.Rows, t.Cols) != n {
		panic(fmt.Sprintf("cuda: %s of %d bytes and %v", verb, n, t))
	}
}

// Sync waits for all work and returns the first fault since the last call.
func (d *Device) Sync() error {
	d.fail(d.now().Sync())
	d.fresh.clear()
	if code := d.told[0]; code != 0 {
		value, bound := int32(binary.LittleEndian.Uint32(d.told[4:])), int32(binary.LittleEndian.Uint32(d.told[8:]))
		d.fail(fault(int(code), value, bound))
		clear(d.told)
	}
	err := d.err
	d.err = nil
	if d.graphs == 0 {
		d.fail(d.room.drop(d.drv))
		d.fail(d.logits.drop(d.drv))
	}
	return err
}

// faults are the kernels' codes (prelude.cuh) in words: the value that was wrong, then its bound.
var faults = [...]string{
	1: "Embed: id %d outside a table of %d rows",
	2: "EmbedBackward: id %d outside a table of %d rows",
	3: "Rope: position %d outside a table of %d",
	4: "Classify: target %d outside %d classes",
	5: "cache: position %d outside %d",
}

func fault(code int, value, bound int32) error {
	if code >= len(faults) || faults[code] == "" {
		return fmt.Errorf("cuda: fault %d with %d and %d", code, value, bound)
	}
	return fmt.Errorf("cuda: "+faults[code], value, bound)
}

// Close frees what the device holds of its own.
func (d *Device) Close() error { return d.drv.Close() }

// fail keeps the first fault for Sync.
func (d *Device) fail(err error) {
	if err != nil && d.err == nil {
		d.err = err
	}
}

// Build compiles every kernel now instead of at its first use, and tells every unit that does not compile.
func (d *Device) Build() error {
	var all []error
	for k := range registry {
		if d.funcs[k].fn != 0 || registry[k].hopper && d.info.Major != 9 {
			continue
		}
		if err := d.load(kernel(k)); err != nil && !slices.ContainsFunc(all, func(e error) bool { return e.Error() == err.Error() }) {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// graph is recorded work: Launch replays all of it with one call, on the same addresses.
type graph struct {
	d *Device
	g cu.Graph
}

// Record keeps what f starts, without running it. f must have run once before, so that kernels, plans and scratch memory
// are there, and may not read, write or wait.
func (d *Device) Record(f func()) (device.Replay, error) {
	d.flush()
	before := d.err
	d.err = nil
	d.fresh.clear() // a recording's first kernel does not start early, nor does the first one behind it
	g, err := d.drv.Record(func() {
		defer d.flush() // also behind a panic: what f started belongs to the recording
		f()
	})
	if err == nil && d.err != nil {
		err = d.err
		_ = g.Free() // it lacks the launch that failed
	}
	d.err = before // what failed to be recorded will run, and tell then
	if err != nil {
		return nil, err
	}
	d.graphs++
	return &graph{d, g}, nil
}

// Launch replays the graph; faults surface in Sync.
func (g *graph) Launch() {
	g.d.flush()
	g.d.fail(g.g.Launch())
}

// Free gives the graph back.
func (g *graph) Free() error {
	g.d.graphs--
	return g.g.Free()
}

// ChunkRows is where rows of one sequence are better off together: a block of Attention reads each key once for 64 rows or
// more, AttentionCached once for each.
func (d *Device) ChunkRows() int { return 32 }

// Time runs f and gives the milliseconds that the GPU spent between its start and its end.
func (d *Device) Time(f func()) (float64, error) {
	return d.now().Time(func() { f(); d.flush() })
}

// vec says that 16-byte accesses to 8 elements at a time (bf16) or twice 4 (fp32) are right in all rows of all tensors.
func vec(all ...tensor.Tensor) bool {
	for _, t := range all {
		if t.Buf != nil && ((t.Buf.Addr+uintptr(t.Off))%16 != 0 || t.Rows > 1 && t.Ld*t.Type.Size()%16 != 0) {
			return false
		}
	}
	return true
}

// block is t as a rectangle of bytes.
func block(t tensor.Tensor) cu.Block {
	size := t.Type.Size()
	b := cu.Block{Addr: t.Buf.Addr + uintptr(t.Off), Rows: t.Rows, Width: t.Cols * size, Pitch: t.Ld * size}
	if t.Dense() {
		b.Width *= b.Rows
		b.Rows, b.Pitch = 1, b.Width
	}
	return b
}

// flat views dense tensors as one row each; false leaves them alone.
func flat(all ...*tensor.Tensor) {
	for _, t := range all {
		if t.Buf != nil && !t.Dense() {
			return
		}
	}
	for _, t := range all {
		t.Cols *= t.Rows
		t.Rows, t.Ld = 1, t.Cols
	}
}

// Stream is the driver, once everything before has been asked of it: work given to it directly, such as a collective, then runs
// after the ops before and before those after.
func (d *Device) Stream() cu.Driver {
	drv := d.now()
	d.fresh.clear()
	return drv
}
