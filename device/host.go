package device

import (
	"fmt"
	"unsafe"

	"antiphase/internal/half"
	"antiphase/tensor"
)

// Empty allocates a dense zeroed tensor on d.
func Empty(d Device, t tensor.DType, rows, cols int) tensor.Tensor {
	b := d.Alloc(max(tensor.Bytes(t, rows, cols), 1))
	return tensor.Tensor{Buf: b, Type: t, Rows: rows, Cols: cols, Ld: cols}
}

// EmptyAct is Empty for an activation, with the device's preferred pitch.
func EmptyAct(d Device, rows, cols int) tensor.Tensor {
	t := d.Types()
	return Empty(d, t.Act, rows, t.Stride(cols)).Columns(0, cols)
}

// WriteI32 copies ids or positions to the device.
func WriteI32(d Device, dst tensor.Tensor, src []int32) {
	mustLen("write", dst, len(src), tensor.I32)
	d.Write(dst, raw(src))
}

// ReadI32 copies ids from the device.
func ReadI32(d Device, dst []int32, t tensor.Tensor) {
	mustLen("read", t, len(dst), tensor.I32)
	d.Read(raw(dst), t)
}

// WriteFloats copies host numbers to a tensor of any float dtype, rounding to it.
func WriteFloats[E float32 | float64](d Device, dst tensor.Tensor, src []E) {
	mustLen("write", dst, len(src), dst.Type)
	if dst.Type == own[E]() {
		d.Write(dst, raw(src))
		return
	}
	switch dst.Type {
	case tensor.F32:
		d.Write(dst, raw(convert[float32](src)))
	case tensor.F64:
		d.Write(dst, raw(convert[float64](src)))
	case tensor.BF16:
		out := make([]uint16, len(src))
		for i, x := range src {
			out[i] = half.F32ToBF16(float32(x))
		}
		d.Write(dst, raw(out))
	default:
		panic(fmt.Sprintf("device: write floats into %v", dst))
	}
}

// ReadFloats copies a float tensor of any dtype to host numbers of len t.Len().
func ReadFloats[E float32 | float64](d Device, dst []E, t tensor.Tensor) {
	mustLen("read", t, len(dst), t.Type)
	if t.Type == own[E]() {
		d.Read(raw(dst), t)
		return
	}
	switch t.Type {
	case tensor.F32:
		readVia[float32](d, dst, t)
	case tensor.F64:
		readVia[float64](d, dst, t)
	case tensor.BF16:
		in := make([]uint16, len(dst))
		d.Read(raw(in), t)
		for i, x := range in {
			dst[i] = E(half.BF16ToF32(x))
		}
	default:
		panic(fmt.Sprintf("device: read floats from %v", t))
	}
}

// WriteSplit writes the halves of float32 numbers to w, in BF16, and lower, in I16.
func WriteSplit(d Device, w, lower tensor.Tensor, src []float32) {
	mustLen("write", w, len(src), tensor.BF16)
	mustLen("write", lower, len(src), tensor.I16)
	WriteHalf(d, w, src)
	WriteHalf(d, lower, src)
}

// WriteHalf writes one half of every number: the upper one into BF16, the lower one into I16.
func WriteHalf(d Device, dst tensor.Tensor, src []float32) {
	mustLen("write", dst, len(src), dst.Type)
	out := make([]uint16, len(src))
	for i, x := range src {
		upper, lower := half.Split(x)
		if out[i] = upper; dst.Type == tensor.I16 {
			out[i] = lower
		}
	}
	d.Write(dst, raw(out))
}

// ReadSplit joins the halves.
func ReadSplit(d Device, dst []float32, w, lower tensor.Tensor) {
	mustLen("read", w, len(dst), tensor.BF16)
	mustLen("read", lower, len(dst), tensor.I16)
	up, low := make([]uint16, len(dst)), make([]uint16, len(dst))
	ReadBits(d, up, w)
	ReadBits(d, low, lower)
	JoinHalves(dst, up, low)
}

// JoinHalves makes floats of the halves that WriteSplit wrote.
func JoinHalves(dst []float32, up, low []uint16) {
	up, low = up[:len(dst)], low[:len(dst)]
	for i := range dst {
		dst[i] = half.Join(up[i], low[i])
	}
}

// ReadBits copies 16-bit elements without conversion.
func ReadBits(d Device, dst []uint16, t tensor.Tensor) {
	mustLen("read", t, len(dst), t.Type)
	d.Read(raw(dst), t)
}

func readVia[F, E float32 | float64](d Device, dst []E, t tensor.Tensor) {
	in := make([]F, len(dst))
	d.Read(raw(in), t)
	for i, x := range in {
		dst[i] = E(x)
	}
}

func convert[F, E float32 | float64](src []E) []F {
	out := make([]F, len(src))
	for i, x := range src {
		out[i] = F(x)
	}
	return out
}

// own is the dtype of a host number.
func own[E float32 | float64]() tensor.DType {
	if unsafe.Sizeof(*new(E)) == 4 {
		return tensor.F32
	}
	return tensor.F64
}

// raw views a slice of numbers as bytes, without a copy.
func raw[E float32 | float64 | int32 | uint16](s []E) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}

func mustLen(verb string, t tensor.Tensor, n int, d tensor.DType) {
	if !t.Ok() || t.Len() != n || t.Type != d {
		panic(fmt.Sprintf("device: %s of %d host values and %v", verb, n, t))
	}
}
