package cuda

import (
	"fmt"
	"math"

	"antiphase/internal/cu"
	"antiphase/tensor"
)

// Alloc returns zeroed device memory. It panics if the GPU has none left, as a slice does.
func (d *Device) Alloc(bytes int) *tensor.Buffer {
	return &tensor.Buffer{Addr: alloc(d.drv, bytes), Size: bytes}
}

// alloc is how this package allocates device memory: it panics with a [*tensor.NoMemory] if there is none.
func alloc(drv cu.Driver, bytes int) uintptr {
	addr, err := drv.Alloc(bytes)
	if err != nil {
		panic(&tensor.NoMemory{Where: "device", Bytes: bytes, Free: -1, Err: err})
	}
	return addr
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

// Scratch is the device memory that ops hold for themselves, besides Alloc: scratch for partial results and the
// classifier's chunk of logits. cuBLASLt's workspace, of a fixed size, does not count.
func (d *Device) Scratch() int { return d.room.size + d.logits.size }

// Spare is the free memory of the GPU.
func (d *Device) Spare() int64 {
	if m, ok := d.drv.(cu.Meter); ok {
		if n, err := m.Spare(); err == nil {
			return n
		}
	}
	return math.MaxInt64
}
