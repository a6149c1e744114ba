package simd

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// huge is n floats in huge pages, as the device's large tensors are: with small ones benchmarks time address
// translation.
func huge(b *testing.B, n int) []float32 {
	m, err := unix.Mmap(-1, 0, 4*n+(2<<20), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		b.Fatal(err)
	}
	_ = unix.Madvise(m, unix.MADV_HUGEPAGE) // advice: slower without
	b.Cleanup(func() { _ = unix.Munmap(m) })
	x := unsafe.Slice((*float32)(unsafe.Pointer(&m[0])), n)
	for i := range x {
		x[i] = float32(i%17) - 8
	}
	return x
}
