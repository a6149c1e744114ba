//go:build !linux

package cpu

import (
	"unsafe"

	"antiphase/tensor"
)

// allocate returns zeroed memory that begins on a page.
func (m *memory) allocate(bytes int) *tensor.Buffer {
	b := aligned(max(bytes, 1))
	return &tensor.Buffer{Host: b, Addr: uintptr(unsafe.Pointer(&b[0])), Size: bytes}
}

// release frees it.
func (m *memory) release(b *tensor.Buffer) { *b = tensor.Buffer{} }

// mappings is empty here.
type mappings struct{}
