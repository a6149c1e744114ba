// Package cuda is the Device on an NVIDIA GPU: bf16 weights and activations, fp32 sums, statistics and master weights.
//
// A method checks shapes, computes the launch geometry from them alone and launches kernels of kernels/STEM.cu, or
// cuBLASLt for large products. An op of few rows may wait for the next op and run in one kernel with it (held.go). All
// work runs in order on one stream. A method returns at once; Sync waits and returns the first fault (an id outside its
// table, an error of the driver). Scratch memory is one buffer that grows to the largest need, so a steady step
// allocates nothing, on the host or on the GPU, and Record turns it into one graph. Sums have a fixed order.
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

// ErrUnavailable is wrapped by Open's error if there is no usable GPU, driver or compiler.
var ErrUnavailable = cu.ErrUnavailable

// Options configure Open.
type Options struct {
	Progress  func(line string) // called for each kernel that is built; may be nil
	ByteCache bool              // int8 key/value caches, see device.Cache: half the memory, different results
}

// Device is one GPU. It is used by one goroutine at a time.
type Device struct {
	drv   cu.Driver
	info  cu.Info
	types device.Types

	funcs    []loaded          // indexed by kernel
	modules  map[string]module // by unit and options
	replace  map[string]string // kernel files that a test uses instead of the embedded ones
	err      error             // first fault since the last Sync
	args     [maxArgs]uint64   // of the current launch, so that a launch allocates nothing
	product  cu.Product        // of the current product, for the same reason
	mapOf    cu.Tiles          // of the current tensor map, for the same reason
	forward  forwardArgs       // of the current attention, for the same reason
	backward backwardArgs
	queries  queriesArgs

	fault  uintptr // shared memory: code, value, bound of the first fault of a kernel
	told   []byte  // the same memory on the host
	room   scratch
	logits scratch       // Classify's chunk, held while its products use the scratch memory
	chunk  tensor.Buffer // the same memory as a buffer, for products
	graphs int           // number alive: they hold addresses of the scratch memory
	fresh  fresh         // outputs of kernels that may still be running
	held   held          // an op that may be fused with the next

	unfused bool // nothing is held; for tests
	wgmma   bool // attention uses Hopper kernels, where there are any

	maxLogits int // see the constant; tests make it small
}

var (
	_ device.Device   = (*Device)(nil)
	_ device.Recorder = (*Device)(nil)
	_ device.Pager    = (*Device)(nil)
	_ device.Ahead    = (*Device)(nil)
)

// maxArgs bounds the parameters of a kernel.
const maxArgs = 48

// loaded is a ready kernel, and the dynamic shared memory it may use.
type loaded struct {
	fn     cu.Func
	shared int
}

// module is a loaded unit, or the error that prevented loading: it is not retried.
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

// newDevice makes a device of a driver, and owns the driver.
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

// Name describes the device.
func (d *Device) Name() string {
	return fmt.Sprintf("cuda:%d: %s, %s, %d SMs, %s", d.info.Ordinal, d.info.Name, d.info.Arch(), d.info.SMs, d.precision())
}

// Info describes the GPU and its libraries.
func (d *Device) Info() cu.Info { return d.info }

// Types are bf16 for weights and activations, fp32 for statistics.
func (d *Device) Types() device.Types { return d.types }

// Alloc returns zeroed device memory. It panics if the GPU has none left, as a slice does.
func (d *Device) Alloc(bytes int) *tensor.Buffer {
	addr, err := d.drv.Alloc(bytes)
	if err != nil {
		panic(&tensor.NoMemory{Where: "device", Bytes: bytes, Free: -1, Err: err})
	}
	return &tensor.Buffer{Addr: addr, Size: bytes}
}

// Free releases it.
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

// Read waits for earlier work and copies src to dense host bytes.
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

// faults describe the kernels' fault codes (prelude.cuh): the wrong value, then its bound.
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

// Build compiles every kernel now instead of at its first use, and reports every unit that does not compile.
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

// Record captures what f starts, without running it. f must have run once before, so that kernels, plans and scratch
// memory exist, and must not read, write or wait.
func (d *Device) Record(f func()) (device.Replay, error) {
	d.flush()
	before := d.err
	d.err = nil
	d.fresh.clear() // the first kernel of a recording does not start early, nor does the first one after it
	g, err := d.drv.Record(func() {
		defer d.flush() // also after a panic: what f started belongs to the recording
		f()
	})
	if err == nil && d.err != nil {
		err = d.err
		_ = g.Free() // it lacks the launch that failed
	}
	d.err = before // work that could not be recorded will run, and report then
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

// Free releases the graph.
func (g *graph) Free() error {
	g.d.graphs--
	return g.g.Free()
}

// ChunkRows is the number of rows of one sequence above which they should be computed together: a block of Attention
// reads each key once for 64 rows or more, AttentionCached once for each row.
func (d *Device) ChunkRows() int { return 32 }

// Time runs f and returns the milliseconds that the GPU spent on it.
func (d *Device) Time(f func()) (float64, error) {
	return d.now().Time(func() { f(); d.flush() })
}

// vec reports whether 16-byte accesses to 8 elements (bf16) or twice 4 (fp32) are aligned in all rows of all tensors.
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

// flat views dense tensors as one row each; others are unchanged.
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

// Stream returns the driver after all earlier work has been queued: work given to it directly, such as a collective,
// then runs in order with the ops.
func (d *Device) Stream() cu.Driver {
	drv := d.now()
	d.fresh.clear()
	return drv
}
