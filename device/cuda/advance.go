package cuda

import (
	"fmt"

	"antiphase/device"
	"antiphase/internal/cu"
	"antiphase/tensor"
)

var advance, fetched = kernelOf("advance", "advance"), kernelOf("advance", "fetched")

// Advance turns the rows of a decoding step into those of the next.
func (d *rowOps) Advance(ids, pos, best tensor.Tensor) {
	device.CheckAdvance(ids, pos, best)
	if n := ids.Cols; n > 0 {
		d.launch(advance, dim1(ceil(n, 256)), dim1(256), 0, ptr(ids), ptr(pos), ptr(best), i32(n))
	}
}

// fetch is an asynchronous copy of the driver, and the error pending when it was started.
type fetch struct {
	d    *Device
	way  cu.Fetch
	room int
	err  error
}

// NewFetch allocates an asynchronous copy of up to bytes bytes to the host. Like Alloc it panics if there is no memory.
func (d *Device) NewFetch(bytes int) device.Fetch {
	way, err := d.drv.NewFetch(bytes)
	if err != nil {
		panic(&tensor.NoMemory{Where: "pinned host", Bytes: bytes, Free: -1, Err: err})
	}
	return &fetch{d: d, way: way, room: bytes}
}

// Start begins the copy. Wait reports errors of the driver so far, but not later ones.
func (f *fetch) Start(src tensor.Tensor) {
	if src.Type.Size() != 4 || src.Rows != 1 || 4*src.Cols > f.room {
		panic(fmt.Sprintf("cuda: fetch of %v, at most one row of %d words", src, f.room/4))
	}
	f.d.launch(fetched, dim1(ceil(src.Cols, 256)), dim1(256), 0, uint64(f.way.Addr()), ptr(src), i32(src.Cols))
	f.d.fail(f.way.Mark())
	f.err, f.d.err = f.d.err, nil
}

// Wait blocks until the copy is done. If a kernel has reported a fault meanwhile it waits for all work, so that the
// report is complete.
func (f *fetch) Wait(dst []byte) error {
	err := f.way.Wait(dst)
	if f.err != nil {
		err, f.err = f.err, nil
	}
	if err == nil && f.d.told[0] != 0 {
		err = f.d.Sync()
	}
	return err
}

// Free releases the pinned memory.
func (f *fetch) Free() { f.d.fail(f.way.Free()) }
