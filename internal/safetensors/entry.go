package safetensors

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"antiphase/internal/half"
)

// FromBytes makes an entry of bytes already in file format.
func FromBytes(name string, d DType, shape []int, b []byte) Entry {
	return Entry{name, d, shape, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}}
}

// FromFloat32s makes an entry of values stored as d: F64, F32, F16 or BF16, rounded to nearest even where d is
// narrower.
func FromFloat32s(name string, d DType, shape []int, v []float32) Entry {
	put := map[DType]func([]byte, float32) []byte{
		F64:  func(b []byte, x float32) []byte { return le.AppendUint64(b, math.Float64bits(float64(x))) },
		F32:  func(b []byte, x float32) []byte { return le.AppendUint32(b, math.Float32bits(x)) },
		F16:  func(b []byte, x float32) []byte { return le.AppendUint16(b, half.F32ToF16(x)) },
		BF16: func(b []byte, x float32) []byte { return le.AppendUint16(b, half.F32ToBF16(x)) },
	}[d]
	return Entry{name, d, shape, func(w io.Writer) error {
		if put == nil {
			return fmt.Errorf("float32 values cannot be stored as %s", d)
		}
		return stream(w, v, put)
	}}
}

// FromInt64s makes an I64 entry.
func FromInt64s(name string, shape []int, v []int64) Entry {
	return Entry{name, I64, shape, func(w io.Writer) error {
		return stream(w, v, func(b []byte, x int64) []byte { return le.AppendUint64(b, uint64(x)) })
	}}
}

var le = binary.LittleEndian

// stream encodes v through one buffer of a fixed size, so that writing a model does not double its memory.
func stream[T any](w io.Writer, v []T, put func([]byte, T) []byte) error {
	const chunk = 8192
	buf := make([]byte, 0, 8*chunk)
	for len(v) > 0 {
		n := min(chunk, len(v))
		buf = buf[:0]
		for _, x := range v[:n] {
			buf = put(buf, x)
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
		v = v[n:]
	}
	return nil
}
