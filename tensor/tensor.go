// Package tensor describes memory: a dtype, a shape and the location of the bytes. It does no arithmetic.
//
// A Tensor is a matrix of Rows × Cols elements with a row pitch of Ld elements, so that a block of columns (the queries
// inside a fused QKV product) is a Tensor too. It is a small value: copying it copies no data and passing it allocates
// nothing. The bytes belong to a Buffer of one device; only a device may access them. Activations come from an Arena, a
// stack that forward pushes and backward pops.
package tensor

import (
	"fmt"
	"unsafe"
)

// DType is the type of one element.
type DType uint8

// The element types. F64 is the oracle's, BF16 the GPU's, F32 everyone's; I32 holds ids and positions, I16 the lower
// halves of float32 numbers whose upper halves are a BF16 (see half.Split), I8 the bytes of a key/value cache (see
// device.Cache).
const (
	Invalid DType = iota
	F32
	F64
	BF16
	I32
	I16
	I8
)

// Size is the number of bytes of one element.
func (d DType) Size() int {
	switch d {
	case F64:
		return 8
	case F32, I32:
		return 4
	case BF16, I16:
		return 2
	case I8:
		return 1
	}
	panic(fmt.Sprintf("tensor: size of dtype %d", d))
}

// String is the dtype's name as safetensors spells it.
func (d DType) String() string {
	switch d {
	case F32:
		return "F32"
	case F64:
		return "F64"
	case BF16:
		return "BF16"
	case I32:
		return "I32"
	case I16:
		return "I16"
	case I8:
		return "I8"
	}
	return "invalid"
}

// Buffer is one piece of a device's memory. Host is nil if the host cannot access it.
type Buffer struct {
	Host []byte
	Addr uintptr
	Size int
}

// Tensor is a matrix view into a Buffer. The zero Tensor means "absent".
type Tensor struct {
	Buf        *Buffer
	Off        int // bytes from the start of Buf
	Type       DType
	Rows, Cols int
	Ld         int // row pitch in elements, at least Cols
}

// Bytes is the size of a dense rows × cols matrix of type d.
func Bytes(d DType, rows, cols int) int { return rows * cols * d.Size() }

// Ok reports whether t is present.
func (t Tensor) Ok() bool { return t.Buf != nil }

// Len is the number of elements.
func (t Tensor) Len() int { return t.Rows * t.Cols }

// Dense reports whether the rows are contiguous.
func (t Tensor) Dense() bool { return t.Ld == t.Cols || t.Rows == 1 }

// Is reports whether t is present and has this shape.
func (t Tensor) Is(rows, cols int) bool { return t.Ok() && t.Rows == rows && t.Cols == cols }

// Columns is the view of columns [from, to).
func (t Tensor) Columns(from, to int) Tensor {
	if from < 0 || to < from || to > t.Cols {
		panic(fmt.Sprintf("tensor: columns [%d,%d) of %v", from, to, t))
	}
	t.Off += from * t.Type.Size()
	t.Cols = to - from
	return t
}

// RowRange is the view of rows [from, to).
func (t Tensor) RowRange(from, to int) Tensor {
	if from < 0 || to < from || to > t.Rows {
		panic(fmt.Sprintf("tensor: rows [%d,%d) of %v", from, to, t))
	}
	t.Off += from * t.Ld * t.Type.Size()
	t.Rows = to - from
	return t
}

// Reshape views a dense tensor as rows × cols.
func (t Tensor) Reshape(rows, cols int) Tensor {
	if !t.Dense() || rows*cols != t.Len() {
		panic(fmt.Sprintf("tensor: reshape %v to %d×%d", t, rows, cols))
	}
	t.Rows, t.Cols, t.Ld = rows, cols, cols
	return t
}

// Slice returns a dense rows × cols view of the flat tensor t, starting at element at.
func (t Tensor) Slice(at, rows, cols int) Tensor {
	if !t.Dense() || at < 0 || at+rows*cols > t.Len() {
		panic(fmt.Sprintf("tensor: slice %d×%d at %d of %v", rows, cols, at, t))
	}
	t.Off += at * t.Type.Size()
	t.Rows, t.Cols, t.Ld = rows, cols, cols
	return t
}

// Overlaps reports whether the byte ranges of the two views intersect.
func (t Tensor) Overlaps(u Tensor) bool {
	return t.Ok() && t.Buf == u.Buf && t.Off < u.Off+u.span() && u.Off < t.Off+t.span()
}

func (t Tensor) span() int {
	if t.Rows == 0 {
		return 0
	}
	return ((t.Rows-1)*t.Ld + t.Cols) * t.Type.Size()
}

// String shows dtype and shape for panics and logs.
func (t Tensor) String() string {
	if !t.Ok() {
		return "absent"
	}
	if t.Dense() {
		return fmt.Sprintf("%s[%d,%d]", t.Type, t.Rows, t.Cols)
	}
	return fmt.Sprintf("%s[%d,%d ld %d]", t.Type, t.Rows, t.Cols, t.Ld)
}

// Host is the host memory of t, from its first element to its last, including padding. It is for host devices and
// tests: it panics if the host cannot access the memory or E is not t's type.
func Host[E float32 | float64 | int32 | uint16](t Tensor) []E {
	var e E
	if int(unsafe.Sizeof(e)) != t.Type.Size() {
		panic(fmt.Sprintf("tensor: %v seen as %T", t, e))
	}
	n := t.span()
	if n == 0 {
		return nil
	}
	if t.Buf.Host == nil {
		panic(fmt.Sprintf("tensor: %v is not in host memory", t))
	}
	b := t.Buf.Host[t.Off : t.Off+n]
	return unsafe.Slice((*E)(unsafe.Pointer(&b[0])), n/int(unsafe.Sizeof(e)))
}
