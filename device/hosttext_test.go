package device_test

import (
	"fmt"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/tensor"
)

// Copies of another length or type than the tensor has are refused before anything is written, and say what was to go
// where; a tensor of no elements takes and gives none.
func TestCopiesOfAnotherSize(t *testing.T) {
	d := ref.NewTypes(device.Types{Act: tensor.BF16, Stat: tensor.F32})
	f32, bf16, i16, i32 := device.Empty(d, tensor.F32, 1, 3), device.Empty(d, tensor.BF16, 1, 3),
		device.Empty(d, tensor.I16, 1, 3), device.Empty(d, tensor.I32, 1, 3)
	two, three := make([]float32, 2), make([]float32, 3)
	four := make([]float32, 4)
	for _, c := range []struct {
		f    func()
		want string
	}{
		{func() { device.WriteI32(d, i32, make([]int32, 2)) }, "write of 2 host values and I32[1,3]"},
		{func() { device.WriteI32(d, f32, make([]int32, 3)) }, "write of 3 host values and F32[1,3]"},
		{func() { device.ReadI32(d, make([]int32, 4), i32) }, "read of 4 host values and I32[1,3]"},
		{func() { device.WriteFloats(d, f32, two) }, "write of 2 host values and F32[1,3]"},
		{func() { device.WriteFloats(d, bf16, four) }, "write of 4 host values and BF16[1,3]"},
		{func() { device.WriteFloats(d, tensor.Tensor{}, three) }, "write of 3 host values and absent"},
		{func() { device.ReadFloats(d, two, f32) }, "read of 2 host values and F32[1,3]"},
		{func() { device.ReadFloats(d, make([]float64, 4), bf16) }, "read of 4 host values and BF16[1,3]"},
		{func() { device.WriteSplit(d, bf16, i16, two) }, "write of 2 host values and BF16[1,3]"},
		{func() { device.WriteSplit(d, f32, i16, three) }, "write of 3 host values and F32[1,3]"},
		{func() { device.WriteSplit(d, bf16, bf16, three) }, "write of 3 host values and BF16[1,3]"},
		{func() { device.WriteSplit(d, bf16, i16.Columns(0, 2), three) }, "write of 3 host values and I16[1,2]"},
		{func() { device.ReadSplit(d, four, bf16, i16) }, "read of 4 host values and BF16[1,3]"},
		{func() { device.ReadSplit(d, three, bf16, i16.Columns(0, 2)) }, "read of 3 host values and I16[1,2]"},
		{func() { device.ReadSplit(d, three, bf16, bf16) }, "read of 3 host values and BF16[1,3]"},
		{func() { device.ReadBits(d, make([]uint16, 2), bf16) }, "read of 2 host values and BF16[1,3]"},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); got != "device: "+c.want {
					t.Errorf("%q, want %q", got, "device: "+c.want)
				}
			}()
			c.f()
		}()
	}
	none := device.Empty(d, tensor.F32, 0, 5)
	device.WriteFloats(d, none, two[:0])
	device.ReadFloats(d, two[:0], none)
}

// Rows of large activations lie an odd number of cache lines apart; of fewer than two lines they lie as they are.
func TestStrideOfEveryWidth(t *testing.T) {
	for d, line := range map[tensor.DType]int{tensor.BF16: 32, tensor.F32: 16} {
		types := device.Types{Act: d, OddRows: true}
		for cols := range 20 * line {
			got := types.Stride(cols)
			odd := got%line == 0 && got/line%2 == 1 && got >= cols && got-cols < 2*line
			if cols < 2*line && got != cols || cols >= 2*line && !odd {
				t.Fatalf("%d columns of %s lie %d apart", cols, d, got)
			}
			if plain := (device.Types{Act: d}).Stride(cols); plain != cols {
				t.Fatalf("%d columns lie %d apart where it does not matter", cols, plain)
			}
		}
	}
}

// fetched gives numbers to the one who waits, or an error.
type fetched struct{ err error }

func (f fetched) Start(tensor.Tensor) {}
func (f fetched) Free()               {}
func (f fetched) Wait(dst []byte) error {
	for i := range dst {
		dst[i] = byte(i)
	}
	return f.err
}

func TestWaitI32(t *testing.T) {
	ids := make([]int32, 2)
	if err := device.WaitI32(fetched{}, ids); err != nil || ids[0] != 0x03020100 || ids[1] != 0x07060504 {
		t.Errorf("%#x, %v", ids, err)
	}
	broken := fmt.Errorf("broken")
	if err := device.WaitI32(fetched{broken}, ids); err != broken {
		t.Error(err)
	}
}
