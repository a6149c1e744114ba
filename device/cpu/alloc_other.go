//go:build !linux

package cpu

import (
	"unsafe"

	"antiphase/tensor"
)

// Alloc gives fresh zeroed memory that begins on a page.
func (d *Device) Alloc(bytes int) *tensor.Buffer {
	b := aligned(max(bytes, 1))
	return &tensor.Buffer{Host: b, Addr: uintptr(unsafe.Pointer(&b[0])), Size: bytes}
}

// Free takes it back; the garbage collector does the rest.
func (d *Device) Free(b *tensor.Buffer) { *b = tensor.Buffer{} }
