package device_test

import (
	"math"
	"slices"
	"testing"
	"unsafe"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/tensor"
)

// Numbers of either type go to a device of any type and come back, rounded once where the tensor is narrower.
func TestNumbersThereAndBack(t *testing.T) {
	values := []float64{0, 1, -2.5, math.Pi, 1e-30, -65504.125}
	narrow := make([]float32, len(values))
	for i, x := range values {
		narrow[i] = float32(x)
	}
	bf16 := func(x float64) float64 { // eight bits of mantissa, to nearest even
		b := math.Float32bits(float32(x))
		b += 0x7fff + b>>16&1
		return float64(math.Float32frombits(b &^ 0xffff))
	}
	d := ref.New()
	for _, c := range []struct {
		t  tensor.DType
		of func(x float64) float64
	}{{tensor.F64, func(x float64) float64 { return x }},
		{tensor.F32, func(x float64) float64 { return float64(float32(x)) }}, {tensor.BF16, bf16}} {
		x := device.Empty(d, c.t, 2, 3)
		back, short := make([]float64, 6), make([]float32, 6)
		device.WriteFloats(d, x, values)
		device.ReadFloats(d, back, x)
		device.ReadFloats(d, short, x)
		for i, v := range values {
			if back[i] != c.of(v) || short[i] != float32(c.of(v)) {
				t.Errorf("%v: %g came back as %g and %g, want %g", c.t, v, back[i], short[i], c.of(v))
			}
		}
		device.WriteFloats(d, x, narrow)
		device.ReadFloats(d, back, x)
		for i, v := range narrow {
			if back[i] != c.of(float64(v)) {
				t.Errorf("%v: %g came back as %g", c.t, v, back[i])
			}
		}
		part := x.Columns(1, 3).RowRange(1, 2) // a view is written alone
		device.WriteFloats(d, part, []float64{7, 8})
		device.ReadFloats(d, back, x)
		if back[4] != 7 || back[5] != 8 || back[3] != c.of(float64(narrow[3])) || back[2] != c.of(float64(narrow[2])) {
			t.Errorf("%v: %v after a part was written", c.t, back)
		}
	}
}

// Integers come back as they were; lengths and types that do not fit are refused.
func TestIntegersThereAndBack(t *testing.T) {
	d := ref.New()
	values, narrow := make([]float64, 6), make([]float32, 3)
	ids := device.Empty(d, tensor.I32, 1, 3)
	device.WriteI32(d, ids, []int32{-1, 2, 1 << 30})
	got := make([]int32, 3)
	if device.ReadI32(d, got, ids); !slices.Equal(got, []int32{-1, 2, 1 << 30}) {
		t.Errorf("%v", got)
	}
	for name, f := range map[string]func(){
		"too few":         func() { device.WriteI32(d, ids, got[:2]) },
		"floats of ids":   func() { device.WriteFloats(d, ids, values[:3]) },
		"ids as floats":   func() { device.ReadFloats(d, narrow, ids) },
		"floats as ids":   func() { device.ReadI32(d, got, device.Empty(d, tensor.F32, 1, 3)) },
		"nothing":         func() { device.WriteI32(d, tensor.Tensor{}, nil) },
		"other size":      func() { device.ReadFloats(d, values, device.Empty(d, tensor.F64, 1, 5)) },
		"halves as bytes": func() { device.ReadBits(d, make([]uint16, 2), device.Empty(d, tensor.BF16, 1, 3)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is allowed", name)
				}
			}()
			f()
		}()
	}
}

// A float32 in two halves is the number again, to the bit; the upper half alone is within half a unit of bf16.
func TestHalves(t *testing.T) {
	d := ref.NewTypes(device.Types{Act: tensor.BF16, Stat: tensor.F32})
	src := []float32{0, 1, -1.00390625, math.Pi, -1e-20, 3e38, 0.1, -0.30000001}
	w, low := device.Empty(d, tensor.BF16, 1, 8), device.Empty(d, tensor.I16, 1, 8)
	device.WriteSplit(d, w, low, src)
	back, upper := make([]float32, 8), make([]float32, 8)
	device.ReadSplit(d, back, w, low)
	device.ReadFloats(d, upper, w)
	for i, x := range src {
		if math.Float32bits(back[i]) != math.Float32bits(x) {
			t.Errorf("%g became %g", x, back[i])
		}
		if !(math.Abs(float64(upper[i]-x)) <= math.Abs(float64(x))/256) {
			t.Errorf("the upper half of %g is %g", x, upper[i])
		}
	}
	up, lo := make([]uint16, 8), make([]uint16, 8)
	device.ReadBits(d, up, w)
	device.ReadBits(d, lo, low)
	joined := make([]float32, 8)
	if device.JoinHalves(joined, up, lo); !slices.Equal(joined, src) {
		t.Errorf("%v", joined)
	}
}

// Activations have the device's pitch and the columns asked for.
func TestEmptyAct(t *testing.T) {
	d := ref.NewTypes(device.Types{Act: tensor.BF16, Stat: tensor.F32, OddRows: true})
	x := device.EmptyAct(d, 3, 384)
	if x.Rows != 3 || x.Cols != 384 || x.Ld != 416 || x.Type != tensor.BF16 || x.Buf.Size < 2*3*416 {
		t.Errorf("%v", x)
	}
	if e := device.Empty(d, tensor.F32, 0, 5); !e.Ok() || e.Len() != 0 || e.Buf.Size == 0 {
		t.Errorf("an empty tensor: %v in %d bytes", e, e.Buf.Size)
	}
}

// direct is a device that notes the memory that it is given.
type direct struct {
	device.Device
	host *byte
}

func (d *direct) Write(_ tensor.Tensor, src []byte) { d.host = &src[0] }
func (d *direct) Read(dst []byte, _ tensor.Tensor)  { d.host = &dst[0] }

// Numbers of the tensor's own type are copied from and to where they are; others pass through memory of their own.
func TestOwnNumbersPassOnce(t *testing.T) {
	d := &direct{Device: ref.New()}
	short, long := make([]float32, 6), make([]float64, 6)
	at32, at64 := (*byte)(unsafe.Pointer(&short[0])), (*byte)(unsafe.Pointer(&long[0]))
	for _, dtype := range []tensor.DType{tensor.F32, tensor.F64, tensor.BF16} {
		x := device.Empty(d, dtype, 2, 3)
		for name, c := range map[string]struct {
			call func()
			host *byte
			own  bool
		}{
			"write float32": {func() { device.WriteFloats(d, x, short) }, at32, dtype == tensor.F32},
			"write float64": {func() { device.WriteFloats(d, x, long) }, at64, dtype == tensor.F64},
			"read float32":  {func() { device.ReadFloats(d, short, x) }, at32, dtype == tensor.F32},
			"read float64":  {func() { device.ReadFloats(d, long, x) }, at64, dtype == tensor.F64},
		} {
			if c.call(); (d.host == c.host) != c.own {
				t.Errorf("%s, %v: in place is %v", name, dtype, !c.own)
			}
		}
	}
}
