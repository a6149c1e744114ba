// Package ref is the oracle: every op of device.Device in float64, as plain loops that read like the formula.
//
// Each op is checked, its tensors are loaded into float64 matrices, the formula runs, and the result is stored
// back through the view. Whatever helps the reader is materialised; nothing is tiled, fused or threaded.
// Finite differences hold the backward formulas to the forward ones, and devicetest holds every other
// device to this one. Only tests import it.
package ref

import (
	"cmp"
	"fmt"
	"unsafe"

	"antiphase/device"
	"antiphase/tensor"
)

// Device is the float64 oracle. Its memory is ordinary host memory. Ops are grouped as the CPU's are.
type Device struct {
	*oracle
	elementwise
	rowOps
	products
	attention
}

// oracle is what all ops share.
type oracle struct {
	types device.Types
	fault error // the first since the last Sync
}

// The groups of ops: elementwise, on rows, matrix products, attention.
type (
	elementwise struct{ *oracle }
	rowOps      struct{ *oracle }
	products    struct{ *oracle }
	attention   struct{ *oracle }
)

var _ device.Device = (*Device)(nil)

// New makes an oracle: float64 in memory too.
func New() *Device { return NewTypes(device.Types{Act: tensor.F64, Stat: tensor.F64}) }

// NewTypes makes an oracle whose tensors have these dtypes. It still computes in float64 and rounds each result once,
// which is the best any device with these dtypes can do. A cache has dtype Act unless t says otherwise.
func NewTypes(t device.Types) *Device {
	t.Cache = cmp.Or(t.Cache, t.Act)
	o := &oracle{types: t}
	return &Device{o, elementwise{o}, rowOps{o}, products{o}, attention{o}}
}

// Name says that this is the oracle, and the dtypes of its tensors.
func (d *Device) Name() string {
	return fmt.Sprintf("ref (float64 oracle over %v and %v)", d.types.Act, d.types.Stat)
}

// Types are F64 unless the device was made with others.
func (d *oracle) Types() device.Types { return d.types }

// Alloc returns zeroed host memory, aligned for every dtype.
func (d *oracle) Alloc(bytes int) *tensor.Buffer {
	words := make([]uint64, max(1, (bytes+7)/8))
	b := &tensor.Buffer{Host: unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), bytes), Size: bytes}
	b.Addr = uintptr(unsafe.Pointer(&words[0]))
	return b
}

// Free drops the memory, so that a later use of it panics.
func (d *oracle) Free(b *tensor.Buffer) { b.Host = nil }

// Write copies dense host bytes into dst, row by row.
func (d *oracle) Write(dst tensor.Tensor, src []byte) {
	row := dst.Cols * dst.Type.Size()
	for r := range dst.Rows {
		copy(bytesOf(dst, r), src[r*row:(r+1)*row])
	}
}

// Read copies src to dense host bytes, row by row.
func (d *oracle) Read(dst []byte, src tensor.Tensor) {
	row := src.Cols * src.Type.Size()
	for r := range src.Rows {
		copy(dst[r*row:(r+1)*row], bytesOf(src, r))
	}
}

// bytesOf is the memory of row r of t.
func bytesOf(t tensor.Tensor, r int) []byte {
	from := t.Off + r*t.Ld*t.Type.Size()
	return t.Buf.Host[from : from+t.Cols*t.Type.Size()]
}

// Sync returns the first fault since the last Sync: an id out of range, a position outside its page table.
func (d *oracle) Sync() error {
	err := d.fault
	d.fault = nil
	return err
}

// Close has nothing to free.
func (d *Device) Close() error { return nil }

// fail keeps the first fault.
func (d *oracle) fail(err error) {
	if d.fault == nil {
		d.fault = err
	}
}
