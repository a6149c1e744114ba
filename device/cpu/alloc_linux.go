package cpu

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"antiphase/tensor"
)

// huge is the size from which memory is mapped on its own: 4 KiB pages cost large matrices dearly in address
// translation, so the kernel is asked for 2 MiB ones.
const huge = 4 << 20

// allocate gives fresh zeroed memory that begins on a page.
func (d *Device) allocate(bytes int) *tensor.Buffer {
	var b []byte
	if bytes >= huge {
		var err error
		b, err = unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			panic(fmt.Sprintf("cpu: %d bytes of memory: %v", bytes, err))
		}
		_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // advice: a kernel without huge pages is right too
	} else {
		b = aligned(max(bytes, 1))
	}
	return &tensor.Buffer{Host: b, Addr: uintptr(unsafe.Pointer(&b[0])), Size: bytes}
}

// release takes it back.
func (d *Device) release(b *tensor.Buffer) {
	if len(b.Host) >= huge {
		if err := unix.Munmap(b.Host); err != nil {
			panic(fmt.Sprintf("cpu: free %d bytes: %v", b.Size, err))
		}
	}
	*b = tensor.Buffer{}
}
