//go:build (amd64 || arm64) && !nogpu

package cu

import (
	"fmt"
	"math/bits"
	"unsafe"
)

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
func (g *gpu) Alloc(bytes int) (uintptr, error) {
	defer g.enter()()
	p := &g.pool
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
		if addr, err = g.fresh(c); err != nil {
			return 0, err
		}
	}
	p.used[addr] = c
	return addr, g.check("cuMemsetD8Async", fast(g.api.memset, addr, 0, uintptr(c), g.stream))
}

// fresh takes memory from the driver, returning the pool's unused memory if there is none left.
func (g *gpu) fresh(bytes int) (uintptr, error) {
	const outOfMemory = 2
	code := call(g.api.memAlloc, g.result(0), uintptr(bytes))
	if code == outOfMemory {
		_ = fast(g.api.streamSync, g.stream)
		for c, list := range g.pool.free {
			for _, p := range list {
				_ = call(g.api.memFree, p)
			}
			delete(g.pool.free, c)
		}
		code = call(g.api.memAlloc, g.result(0), uintptr(bytes))
	}
	return uintptr(g.out[0]), g.check("cuMemAlloc", code)
}

// Spare is the driver's free memory plus the pool's unused memory.
func (g *gpu) Spare() (int64, error) {
	defer g.enter()()
	err := g.check("cuMemGetInfo", call(g.api.memInfo, g.result(0), g.result(1))) // free, total
	n := int64(g.out[0])
	for c, list := range g.pool.free {
		n += int64(c * len(list))
	}
	return n, err
}

// Free keeps the memory for a later Alloc, unless it is large: then the driver waits for the work on it.
func (g *gpu) Free(addr uintptr) error {
	c, ok := g.pool.used[addr]
	if !ok {
		return fmt.Errorf("free of device memory %#x, which is not allocated", addr)
	}
	delete(g.pool.used, addr)
	if c >= large {
		defer g.enter()()
		return g.check("cuMemFree", call(g.api.memFree, addr))
	}
	g.pool.free[c] = append(g.pool.free[c], addr)
	return nil
}

func (p *pool) close(g *gpu) {
	for _, list := range p.free {
		for _, addr := range list {
			_ = call(g.api.memFree, addr)
		}
	}
	for addr := range p.used {
		_ = call(g.api.memFree, addr)
	}
	p.free, p.used = nil, nil
}

// Shared returns pinned memory, which has one address for both sides.
func (g *gpu) Shared(bytes int) (uintptr, []byte, error) {
	defer g.enter()()
	var at unsafe.Pointer
	if err := g.check("cuMemAllocHost", call(g.api.memAllocHost, uintptr(unsafe.Pointer(&at)), uintptr(bytes))); err != nil {
		return 0, nil, err
	}
	g.shared = append(g.shared, uintptr(at))
	host := unsafe.Slice((*byte)(at), bytes)
	clear(host)
	return uintptr(at), host, nil
}

// Clear sets a rectangle to zero.
func (g *gpu) Clear(b Block) error {
	if b.Rows == 0 || b.Width == 0 {
		return nil
	}
	defer g.enter()()
	if b.Rows == 1 {
		return g.check("cuMemsetD8Async", fast(g.api.memset, b.Addr, 0, uintptr(b.Width), g.stream))
	}
	return g.check("cuMemsetD2D8Async", fast(g.api.memset2D, b.Addr, uintptr(b.Pitch), 0, uintptr(b.Width), uintptr(b.Rows), g.stream))
}

// Move copies a rectangle on the device.
func (g *gpu) Move(dst, src Block) error {
	if dst.Rows == 0 || dst.Width == 0 {
		return nil
	}
	defer g.enter()()
	if dst.Rows == 1 {
		return g.check("cuMemcpyDtoDAsync", fast(g.api.dtod, dst.Addr, src.Addr, uintptr(dst.Width), g.stream))
	}
	g.desc2D = [16]uint64{2: onDevice, 4: uint64(src.Addr), 6: uint64(src.Pitch),
		9: onDevice, 11: uint64(dst.Addr), 13: uint64(dst.Pitch), 14: uint64(dst.Width), 15: uint64(dst.Rows)}
	return g.copy2D()
}

// CUmemorytype.
const (
	onHost   = 1
	onDevice = 2
)

// copy2D starts the copy described by desc2D. Its fields, eight bytes each: source x, y, type, host, device, array,
// pitch; the same seven of the destination; width in bytes; height.
func (g *gpu) copy2D() error {
	return g.check("cuMemcpy2DAsync", fast(g.api.copy2D, uintptr(unsafe.Pointer(&g.desc2D[0])), g.stream))
}
