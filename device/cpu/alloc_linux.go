package cpu

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"antiphase/internal/hostmem"
	"antiphase/tensor"
)

const (
	// huge is the size at and above which memory is mapped separately: with 4 KiB pages large matrices suffer from TLB
	// misses, and the hardware prefetcher stops at page ends, so 2 MiB pages are requested.
	huge     = 1 << 20
	hugePage = 2 << 20
)

// mappings are the device's mapped buffers by address: a buffer begins on a huge page inside its mapping.
type mappings map[uintptr][]byte

// allocate returns zeroed memory that begins on a page.
func (m *memory) allocate(bytes int) *tensor.Buffer {
	if bytes < huge {
		b := aligned(max(bytes, 1))
		return &tensor.Buffer{Host: b, Addr: uintptr(unsafe.Pointer(&b[0])), Size: bytes}
	}
	if free := freeFor(bytes); int64(bytes) > free { // the kernel would grant it, and kill the process later
		panic(&tensor.NoMemory{Where: "host", Bytes: bytes, Free: free})
	}
	room := (bytes + hugePage - 1) / hugePage * hugePage
	all, err := unix.Mmap(-1, 0, room+hugePage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		panic(&tensor.NoMemory{Where: "host", Bytes: bytes, Free: -1, Err: err})
	}
	skip := int(-uintptr(unsafe.Pointer(&all[0])) & (hugePage - 1))
	_ = unix.Madvise(all[skip:skip+room], unix.MADV_HUGEPAGE) // only advice: a kernel without huge pages works too
	b := all[skip : skip+bytes : skip+bytes]
	if m.mapped == nil {
		m.mapped = mappings{}
	}
	addr := uintptr(unsafe.Pointer(&b[0]))
	m.mapped[addr] = all
	return &tensor.Buffer{Host: b, Addr: addr, Size: bytes}
}

// freeFor returns the free memory if it could matter: the query takes longer than small allocations.
func freeFor(bytes int) int64 {
	if bytes < 64<<20 {
		return hostmem.Unknown
	}
	return hostmem.Available()
}

// release frees it.
func (m *memory) release(b *tensor.Buffer) {
	if all, ok := m.mapped[b.Addr]; ok {
		delete(m.mapped, b.Addr)
		if err := unix.Munmap(all); err != nil {
			panic(fmt.Sprintf("cpu: free %d bytes: %v", b.Size, err))
		}
	}
	*b = tensor.Buffer{}
}
