package devicetest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"antiphase/device"
	"antiphase/internal/half"
	"antiphase/tensor"
)

// guard is the zone before and after each tensor, in bytes: an arena's alignment.
const guard = 256

// Poison is a NaN of each float dtype that no arithmetic makes, and an id that no table has.
const (
	poison64 = 0x7FF8_0BAD_F00D_0BAD
	poison32 = 0x7FC0_0BAD
	poison16 = 0x7FDB
	poisonID = 0x7F7F_7F7F
)

// placed is a case with its tensors on a device. Each tensor has its own buffer, between guard zones; a strided one
// also has poison between its rows.
type placed struct {
	c     *Case
	d     device.Device
	x     []tensor.Tensor // the views
	whole []tensor.Tensor // the buffers, guards included, as [1,n]
	image [][]byte        // what they held before the call
}

// place allocates and fills: inputs and accumulators with v, outputs and guards with poison.
func (c *Case) place(d device.Device, v [][]float64, strided bool) *placed {
	n := len(c.args)
	p := &placed{c, d, make([]tensor.Tensor, n), make([]tensor.Tensor, n), make([][]byte, n)}
	for i := 1; i < n; i++ {
		a := &c.args[i]
		dt := a.dtype(d.Types())
		size, ld, from := dt.Size(), a.cols, 0
		if strided && !a.dense {
			from, ld = 8, (a.cols+7)/8*8+16 // rows stay on multiples of 8 elements, as blocks of a fused product do
		}
		front := guard/size + from
		total := guard/size + a.rows*ld + guard/size
		p.whole[i] = device.Empty(d, dt, 1, total)
		p.x[i] = p.whole[i]
		p.x[i].Off, p.x[i].Rows, p.x[i].Cols, p.x[i].Ld = front*size, a.rows, a.cols, ld
		p.image[i] = poisoned(dt, total)
		if a.role == in || a.role == acc {
			p.each(i, func(at, r int) {
				copy(p.image[i][at:], encode(dt, v[i][r*a.cols:(r+1)*a.cols]))
			})
		}
		d.Write(p.whole[i], p.image[i])
	}
	return p
}

// each visits the rows of argument i: their first byte in its buffer and their number.
func (p *placed) each(i int, f func(at, row int)) {
	x := p.x[i]
	for r := range x.Rows {
		f(x.Off+r*x.Ld*x.Type.Size(), r)
	}
}

// call runs the op once on the whole tensors.
func (p *placed) call(t testing.TB) *placed {
	t.Helper()
	p.c.bind(p.x)(p.d)
	p.sync(t)
	return p
}

func (p *placed) sync(t testing.TB) {
	t.Helper()
	if err := p.d.Sync(); err != nil {
		t.Fatalf("%s: sync: %v", p.c.name, err)
	}
}

// buffer reads argument i's buffer back.
func (p *placed) buffer(i int) []byte {
	b := make([]byte, len(p.image[i]))
	p.d.Read(b, p.whole[i])
	return b
}

// content reads argument i's elements back, without gaps.
func (p *placed) content(i int) []byte {
	b := make([]byte, tensor.Bytes(p.x[i].Type, p.x[i].Rows, p.x[i].Cols))
	p.d.Read(b, p.x[i])
	return b
}

// bits are the bytes of all written arguments; the memory is given back.
func (p *placed) bits() [][]byte {
	all := make([][]byte, len(p.x))
	for i := range p.x {
		if a := p.c.args[i]; a.role == out || a.role == acc {
			all[i] = p.content(i)
		}
	}
	p.free()
	return all
}

func (p *placed) free() {
	for _, w := range p.whole[1:] {
		p.d.Free(w.Buf)
	}
}

// untouched fails if the op wrote outside its outputs: into an input, a guard zone or padding.
func (p *placed) untouched(t *testing.T) {
	t.Helper()
	for i := 1; i < len(p.x); i++ {
		got, a := p.buffer(i), p.c.args[i]
		if a.role != in {
			row := a.cols * p.x[i].Type.Size()
			p.each(i, func(at, _ int) { copy(got[at:at+row], p.image[i][at:at+row]) })
		}
		if !bytes.Equal(got, p.image[i]) {
			at := 0
			for got[at] == p.image[i][at] {
				at++
			}
			t.Errorf("%s %v: byte %d of its buffer changed, the view begins at %d", a.name, p.x[i], at, p.x[i].Off)
		}
	}
}

// poisoned is n elements of poison.
func poisoned(d tensor.DType, n int) []byte {
	b := make([]byte, 0, n*d.Size())
	for range n {
		switch d {
		case tensor.F64:
			b = binary.NativeEndian.AppendUint64(b, poison64)
		case tensor.F32:
			b = binary.NativeEndian.AppendUint32(b, poison32)
		case tensor.BF16:
			b = binary.NativeEndian.AppendUint16(b, poison16)
		default:
			b = binary.NativeEndian.AppendUint32(b, poisonID)
		}
	}
	return b
}

// encode rounds numbers to a dtype's bytes.
func encode(d tensor.DType, v []float64) []byte {
	b := make([]byte, 0, len(v)*d.Size())
	for _, x := range v {
		switch d {
		case tensor.F64:
			b = binary.NativeEndian.AppendUint64(b, math.Float64bits(x))
		case tensor.F32:
			b = binary.NativeEndian.AppendUint32(b, math.Float32bits(float32(x)))
		case tensor.BF16:
			b = binary.NativeEndian.AppendUint16(b, half.F32ToBF16(float32(x)))
		case tensor.I32:
			b = binary.NativeEndian.AppendUint32(b, uint32(int32(x)))
		default:
			panic(fmt.Sprintf("devicetest: encode to %v", d))
		}
	}
	return b
}

// decode widens a dtype's bytes.
func decode(d tensor.DType, b []byte) []float64 {
	v := make([]float64, len(b)/d.Size())
	for i := range v {
		switch at := b[i*d.Size():]; d {
		case tensor.F64:
			v[i] = math.Float64frombits(binary.NativeEndian.Uint64(at))
		case tensor.F32:
			v[i] = float64(math.Float32frombits(binary.NativeEndian.Uint32(at)))
		case tensor.BF16:
			v[i] = float64(half.BF16ToF32(binary.NativeEndian.Uint16(at)))
		case tensor.I32:
			v[i] = float64(int32(binary.NativeEndian.Uint32(at)))
		}
	}
	return v
}
