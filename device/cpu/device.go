// Package cpu is the Device on the host's processor: every op a parallel loop over tiles, computing in float32. Weights and activations are
// float32 or, by Options.Precision, bfloat16; products take the latter, or int8 weights, as factors.
//
// A method checks shapes, fills its task (a struct that lives in the Device, so that a step allocates nothing) and
// hands the tiles to a fixed pool of workers; the tile function does the work with internal/simd. However
// tiles are cut, each output element is one chain of operations in a fixed order, or partial sums cut by shape alone: results do not
// depend on the number of workers. Work is finished when a method returns; Sync only reports faults.
package cpu

import (
	"fmt"
	"runtime"
	"unsafe"

	"antiphase/device"
	"antiphase/device/cpu/attn"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

// Options say how to use the machine.
type Options struct {
	Threads   int       // workers; 0 means GOMAXPROCS
	Precision Precision // of products; float32 unless said otherwise
}

// Device is the host's processor. It is used by one goroutine at a time.
type Device struct {
	pool    *pool
	workers []worker
	shared  region  // operands and partial sums that all workers read
	logits  region  // Classify's chunk
	fault   error   // first fault since the last Sync
	weights weights // right-hand operands that stay packed
	trail   trail   // and in which order decoding reads them

	precision Precision
	act       tensor.DType // of weights and activations
	mapped    mappings     // memory that is not the Go heap's

	maxPacked, maxLogits int // see the constants; a test makes them small

	tasks
	attn *attn.Engine
}

var _ device.Device = (*Device)(nil)

// tasks are the arguments of the op that is running, one struct per op.
type tasks struct {
	zero            zeroTask
	copy            copyTask
	add             addTask
	bias            biasTask
	biasBackward    biasBackwardTask
	embed           embedTask
	embedBackward   embedBackwardTask
	matmul          gemm
	matmulBF16      gemmBF16
	matmulGrad      gemmGrad
	matmulFew       gemmFew
	matmulInt8      gemmInt8
	rmsnorm         rmsnormTask
	rmsnormBackward rmsnormBackwardTask
	rope            ropeTask
	swiglu          swigluTask
	swigluBackward  swigluBackwardTask
	sigmoid         sigmoidTask
	sigmoidBackward sigmoidBackwardTask
	classify        classifyTask
	classifyBlocks  classifyBF16
	classifyGrad    classifyGrad
	sumSquares      sumSquaresTask
	adamw           adamwTask
	attnTask        attnTask
	probs           probsTask
}

// worker is what one thread of the pool owns.
type worker struct {
	scratch simd.Scratch
	buf     []float32
	_       [64]byte // workers do not share cache lines
}

// New starts a device.
func New(o Options) *Device {
	n := o.Threads
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	d := &Device{pool: newPool(n), workers: make([]worker, n), precision: o.Precision, act: o.Precision.act(), maxPacked: maxPacked, maxLogits: maxLogits}
	d.attn = attn.New((*lender)(d), o.Precision != FP32)
	return d
}

// Name says what this is.
func (d *Device) Name() string {
	return fmt.Sprintf("cpu: %d threads, %s, %s", len(d.workers), simd.Name(), d.precision)
}

// Types: a cache holds the factors of products.
func (d *Device) Types() device.Types {
	return device.Types{Act: d.act, Stat: tensor.F32, Cache: d.Products(), OddRows: true}
}

// Sync reports the first fault since the last call.
func (d *Device) Sync() error {
	err := d.fault
	d.fault = nil
	return err
}

// Close stops the workers and frees the device's own memory.
func (d *Device) Close() error {
	d.pool.close()
	d.shared.free(d)
	d.logits.free(d)
	d.freeWeights()
	return nil
}

// Alloc gives fresh zeroed memory that begins on a page.
func (d *Device) Alloc(bytes int) *tensor.Buffer {
	b := d.allocate(bytes)
	d.forget(b) // the collector may give out again what was never given back
	return b
}

// Free takes it back.
func (d *Device) Free(b *tensor.Buffer) {
	d.forget(b)
	clear(d.trail.next)
	d.release(b)
}

// Write copies dense host bytes into dst.
func (d *Device) Write(dst tensor.Tensor, src []byte) {
	mustBytes("write", dst, len(src))
	d.touch(dst)
	width := dst.Cols * dst.Type.Size()
	for r := range dst.Rows {
		copy(rowBytes(dst, r), src[r*width:(r+1)*width])
	}
}

// Read copies src to dense host bytes.
func (d *Device) Read(dst []byte, src tensor.Tensor) {
	mustBytes("read", src, len(dst))
	width := src.Cols * src.Type.Size()
	for r := range src.Rows {
		copy(dst[r*width:(r+1)*width], rowBytes(src, r))
	}
}

// rowBytes is the memory of row r.
func rowBytes(t tensor.Tensor, r int) []byte {
	size := t.Type.Size()
	at := t.Off + r*t.Ld*size
	return t.Buf.Host[at : at+t.Cols*size]
}

func mustBytes(verb string, t tensor.Tensor, n int) {
	if !t.Ok() || tensor.Bytes(t.Type, t.Rows, t.Cols) != n {
		panic(fmt.Sprintf("cpu: %s of %d bytes and %v", verb, n, t))
	}
}

// run hands tiles 0…n−1 of t to the workers and waits for the last.
func (d *Device) run(n int, t task) { d.pool.run(n, t) }

// scratch is the worker's room for packed operands.
func (d *Device) scratch(worker int) *simd.Scratch { return &d.workers[worker].scratch }

// buf is n floats of the worker's own, valid until its next call; their content is arbitrary.
func (d *Device) buf(worker, n int) []float32 { return simd.Grow(&d.workers[worker].buf, n) }

// room is n floats that all workers may see, valid until the next call; their content is arbitrary.
func (d *Device) room(n int) []float32 { return d.shared.floats(d, n) }

// region is memory of the device's own that only grows.
type region struct{ buf *tensor.Buffer }

func (r *region) floats(d *Device, n int) []float32 {
	if r.buf == nil || r.buf.Size < 4*n {
		r.free(d)
		r.buf = d.allocate(4 * (n + n/4 + 1))
	}
	return floatsOf(r.buf)[:n]
}

// floatsOf is a buffer's memory.
func floatsOf(b *tensor.Buffer) []float32 {
	n := b.Size / 4
	return f32(tensor.Tensor{Buf: b, Type: tensor.F32, Rows: 1, Cols: n, Ld: n})
}

func (r *region) free(d *Device) {
	if r.buf != nil {
		d.release(r.buf)
		r.buf = nil
	}
}

// f32 is the memory of a float32 tensor, nil for an absent one.
func f32(t tensor.Tensor) []float32 {
	if !t.Ok() {
		return nil
	}
	return tensor.Host[float32](t)
}

// i32 is the memory of an int32 tensor.
func i32(t tensor.Tensor) []int32 { return tensor.Host[int32](t) }

// aligned cuts page-aligned memory of n bytes out of the Go heap.
func aligned(n int) []byte {
	const page = 4096
	raw := make([]byte, n+page)
	skip := int(-uintptr(unsafe.Pointer(&raw[0])) & (page - 1))
	return raw[skip : skip+n : skip+n]
}
