//go:build (amd64 || arm64) && !nogpu

package cu

import (
	"fmt"
	"math/bits"
	"unsafe"
)

// memory is the GPU's memory and the copies from and to the host.
type memory struct {
	*context
	pool   pool
	stage  staging
	shared []uintptr  // pinned memory of Shared
	desc2D [16]uint64 // CUDA_MEMCPY2D of the current copy
}

func (m *memory) close() {
	m.stage.close(m.context)
	m.pool.close(m.context)
	for _, p := range m.shared {
		_ = call(m.api.memFreeHost, p)
	}
}

// pool keeps freed memory for the next Alloc of its size class: cuMemAlloc synchronises with the GPU, a list does not.
// Work runs in order, so memory may be reused while earlier work on it is in flight.
type pool struct {
	free map[int][]uintptr // by class
	used map[uintptr]int   // class of allocated memory
}

// large is the size at and above which memory is not pooled but returned to the driver: it belongs to a model or a
// pass, is allocated rarely, and others may need it.
const large = 64 << 20

// class rounds a size up so that at most an eighth is wasted and sizes recur.
func class(n int) int {
	if n <= 512 {
		return 512
	}
	if n >= large {
		const page = 2 << 20
		return (n + page - 1) &^ (page - 1)
	}
	step := 1 << max(9, bits.Len(uint(n-1))-4)
	return (n + step - 1) &^ (step - 1)
}

// Alloc returns zeroed memory.
func (m *memory) Alloc(bytes int) (uintptr, error) {
	defer m.enter()()
	p := &m.pool
	if p.used == nil {
		p.free, p.used = map[int][]uintptr{}, map[uintptr]int{}
	}
	c := class(bytes)
	var addr uintptr
	if list := p.free[c]; len(list) > 0 {
		addr = list[len(list)-1]
		p.free[c] = list[:len(list)-1]
	} else {
		var err error
		if addr, err = m.fresh(c); err != nil {
			return 0, err
		}
	}
	p.used[addr] = c
	return addr, m.check("cuMemsetD8Async", fast(m.api.memset, addr, 0, uintptr(c), m.stream))
}

// fresh takes memory from the driver, returning the pool's unused memory if there is none left.
func (m *memory) fresh(bytes int) (uintptr, error) {
	const outOfMemory = 2
	code := call(m.api.memAlloc, m.result(0), uintptr(bytes))
	if code == outOfMemory {
		_ = fast(m.api.streamSync, m.stream)
		for c, list := range m.pool.free {
			for _, p := range list {
				_ = call(m.api.memFree, p)
			}
			delete(m.pool.free, c)
		}
		code = call(m.api.memAlloc, m.result(0), uintptr(bytes))
	}
	return uintptr(m.out[0]), m.check("cuMemAlloc", code)
}

// Spare is the driver's free memory plus the pool's unused memory.
func (m *memory) Spare() (int64, error) {
	defer m.enter()()
	err := m.check("cuMemGetInfo", call(m.api.memInfo, m.result(0), m.result(1))) // free, total
	n := int64(m.out[0])
	for c, list := range m.pool.free {
		n += int64(c * len(list))
	}
	return n, err
}

// Free keeps the memory for a later Alloc, unless it is large: then the driver waits for the work on it.
func (m *memory) Free(addr uintptr) error {
	c, ok := m.pool.used[addr]
	if !ok {
		return fmt.Errorf("free of device memory %#x, which is not allocated", addr)
	}
	delete(m.pool.used, addr)
	if c >= large {
		defer m.enter()()
		return m.check("cuMemFree", call(m.api.memFree, addr))
	}
	m.pool.free[c] = append(m.pool.free[c], addr)
	return nil
}

func (p *pool) close(c *context) {
	for _, list := range p.free {
		for _, addr := range list {
			_ = call(c.api.memFree, addr)
		}
	}
	for addr := range p.used {
		_ = call(c.api.memFree, addr)
	}
	p.free, p.used = nil, nil
}

// Shared returns pinned memory, which has one address for both sides.
func (m *memory) Shared(bytes int) (uintptr, []byte, error) {
	defer m.enter()()
	var at unsafe.Pointer
	if err := m.check("cuMemAllocHost",
		call(m.api.memAllocHost, uintptr(unsafe.Pointer(&at)), uintptr(bytes))); err != nil {
		return 0, nil, err
	}
	m.shared = append(m.shared, uintptr(at))
	host := unsafe.Slice((*byte)(at), bytes)
	clear(host)
	return uintptr(at), host, nil
}

// Clear sets a rectangle to zero.
func (m *memory) Clear(b Block) error {
	if b.Rows == 0 || b.Width == 0 {
		return nil
	}
	defer m.enter()()
	if b.Rows == 1 {
		return m.check("cuMemsetD8Async", fast(m.api.memset, b.Addr, 0, uintptr(b.Width), m.stream))
	}
	return m.check("cuMemsetD2D8Async",
		fast(m.api.memset2D, b.Addr, uintptr(b.Pitch), 0, uintptr(b.Width), uintptr(b.Rows), m.stream))
}

// Move copies a rectangle on the device.
func (m *memory) Move(dst, src Block) error {
	if dst.Rows == 0 || dst.Width == 0 {
		return nil
	}
	defer m.enter()()
	if dst.Rows == 1 {
		return m.check("cuMemcpyDtoDAsync", fast(m.api.dtod, dst.Addr, src.Addr, uintptr(dst.Width), m.stream))
	}
	m.desc2D = [16]uint64{2: onDevice, 4: uint64(src.Addr), 6: uint64(src.Pitch),
		9: onDevice, 11: uint64(dst.Addr), 13: uint64(dst.Pitch), 14: uint64(dst.Width), 15: uint64(dst.Rows)}
	return m.copy2D()
}

// CUmemorytype.
const (
	onHost   = 1
	onDevice = 2
)

// copy2D starts the copy described by desc2D. Its fields, eight bytes each: source x, y, type, host, device, array,
// pitch; the same seven of the destination; width in bytes; height.
func (m *memory) copy2D() error {
	return m.check("cuMemcpy2DAsync", fast(m.api.copy2D, uintptr(unsafe.Pointer(&m.desc2D[0])), m.stream))
}
