// Package safetensors reads and writes the safetensors file format.
//
//	8 bytes   N, little-endian
//	N bytes   JSON object: tensor name → {dtype, shape, data_offsets}, and "__metadata__"; starts with '{', may end
//	          with spaces
//	the rest  the tensors' bytes, little-endian, row-major, without overlap, hole or tail
//
// [Open] maps the file and checks the whole header before any tensor byte is read; [File.Bytes] is then a view of the
// mapping, and [File.Float32s] and similar methods convert into new memory. [Write] streams tensors and gives the same
// bytes for the same tensors. A file is untrusted: all size arithmetic is checked and memory is bounded by the file's
// size.
package safetensors

import "math"

// MaxHeader is the maximum header length in bytes that is read or written, the format's own limit.
const MaxHeader = 100_000_000

// metadataKey is the header key that holds free text instead of a tensor.
const metadataKey = "__metadata__"

// DType is an element type in the format's spelling.
type DType string

// The supported element types, in the format's own order.
const (
	Bool   DType = "BOOL"
	U8     DType = "U8"
	I8     DType = "I8"
	F8E5M2 DType = "F8_E5M2"
	F8E4M3 DType = "F8_E4M3"
	F8E8M0 DType = "F8_E8M0"
	I16    DType = "I16"
	U16    DType = "U16"
	F16    DType = "F16"
	BF16   DType = "BF16"
	I32    DType = "I32"
	U32    DType = "U32"
	F32    DType = "F32"
	C64    DType = "C64"
	F64    DType = "F64"
	I64    DType = "I64"
	U64    DType = "U64"
)

// dtypes gives each type its size in bytes and its rank: files hold higher ranks first, which keeps every tensor
// aligned.
var dtypes = map[DType]struct{ size, rank int }{
	Bool: {1, 1}, U8: {1, 2}, I8: {1, 3}, F8E5M2: {1, 4}, F8E4M3: {1, 5}, F8E8M0: {1, 6},
	I16: {2, 7}, U16: {2, 8}, F16: {2, 9}, BF16: {2, 10},
	I32: {4, 11}, U32: {4, 12}, F32: {4, 13}, C64: {8, 14}, F64: {8, 15}, I64: {8, 16}, U64: {8, 17},
}

// Size returns the bytes of one element, 0 for an unknown type.
func (d DType) Size() int { return dtypes[d].size }

// Info describes one tensor of a file. Its bytes are [Begin, End) of the part after the header.
type Info struct {
	Name       string
	DType      DType
	Shape      []int
	Begin, End int64
}

// byteSize returns shape × element size, and false for an unknown type, a negative dimension or a product past 2⁶³−1. A
// zero dimension does not excuse an overflow among the others: no legitimate writer makes such a shape.
func byteSize(d DType, shape []int) (int64, bool) {
	n := int64(d.Size())
	if n == 0 {
		return 0, false
	}
	empty := false
	for _, dim := range shape {
		if dim < 0 {
			return 0, false
		}
		if dim == 0 {
			empty = true
			continue
		}
		if n > math.MaxInt64/int64(dim) {
			return 0, false
		}
		n *= int64(dim)
	}
	if empty {
		return 0, true
	}
	return n, true
}
