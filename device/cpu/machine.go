package cpu

import (
	"cmp"
	"fmt"
	"runtime"

	"antiphase/device"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

// machine is the state that all ops share: workers, memory, and the precision of products.
type machine struct {
	memory
	pool    *pool
	workers []worker
	shared  region // operands and partial sums that all workers read
	fault   error  // first fault since the last Sync
	trail   trail  // order in which decoding reads weights

	precision Precision
	act       tensor.DType // of weights and activations
}

// worker is the state owned by one thread of the pool.
type worker struct {
	scratch simd.Scratch
	buf     []float32
	_       [64]byte // workers do not share cache lines
}

func newMachine(o Options) *machine {
	n := o.Threads
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	return &machine{pool: newPool(n), workers: make([]worker, n), precision: o.Precision, act: o.Precision.act()}
}

// Types: a cache has the precision of product operands.
func (d *machine) Types() device.Types {
	return device.Types{Act: d.act, Stat: tensor.F32, Cache: d.Products(), OddRows: true}
}

// Sync reports the first fault since the last call.
func (d *machine) Sync() error {
	err := d.fault
	d.fault = nil
	return err
}

// fail records a fault, unless there is an earlier one.
func (d *machine) fail(err error) { d.fault = cmp.Or(d.fault, err) }

// Alloc returns zeroed memory that begins on a page.
func (d *machine) Alloc(bytes int) *tensor.Buffer {
	b := d.allocate(bytes)
	d.forget(b) // the garbage collector may reuse memory that was never freed
	return b
}

// Free releases it.
func (d *machine) Free(b *tensor.Buffer) {
	d.forget(b)
	clear(d.trail.next)
	d.release(b)
}

// Write copies dense host bytes into dst.
func (d *machine) Write(dst tensor.Tensor, src []byte) {
	mustBytes("write", dst, len(src))
	d.touch(dst)
	width := dst.Cols * dst.Type.Size()
	for r := range dst.Rows {
		copy(rowBytes(dst, r), src[r*width:(r+1)*width])
	}
}

// Read copies src to dense host bytes.
func (d *machine) Read(dst []byte, src tensor.Tensor) {
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

// run distributes tiles 0…n−1 of t to the workers and waits for all.
func (d *machine) run(n int, t task) { d.pool.run(n, t) }

// scratch is the worker's memory for packed operands.
func (d *machine) scratch(worker int) *simd.Scratch { return &d.workers[worker].scratch }

// buf is n floats owned by the worker, valid until its next call; their content is arbitrary.
func (d *machine) buf(worker, n int) []float32 { return simd.Grow(&d.workers[worker].buf, n) }

// room is n floats shared by all workers, valid until the next call; their content is arbitrary.
func (d *machine) room(n int) []float32 { return d.shared.floats(&d.memory, n) }

// region is memory owned by the device that only grows.
type region struct{ buf *tensor.Buffer }

func (r *region) floats(m *memory, n int) []float32 {
	if r.buf == nil || r.buf.Size < 4*n {
		r.free(m)
		r.buf = m.allocate(4 * (n + n/4 + 1))
	}
	return floatsOf(r.buf)[:n]
}

// floatsOf is a buffer's memory.
func floatsOf(b *tensor.Buffer) []float32 {
	n := b.Size / 4
	return f32(tensor.Tensor{Buf: b, Type: tensor.F32, Rows: 1, Cols: n, Ld: n})
}

func (r *region) free(m *memory) {
	if r.buf != nil {
		m.release(r.buf)
		r.buf = nil
	}
}
