package devicetest

import (
	"bytes"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// memoryExtra: new memory is zero, and what is written through a view is read through it and affects nothing else.
func memoryExtra(t *testing.T, d device.Device) {
	if d.Name() == "" {
		t.Error("the device has no name")
	}
	whole := device.Empty(d, tensor.F32, 5, 12)
	defer d.Free(whole.Buf)
	fresh := make([]byte, 5*12*4)
	d.Read(fresh, whole)
	if !bytes.Equal(fresh, make([]byte, len(fresh))) {
		t.Error("fresh memory is not zero")
	}
	view := whole.Columns(3, 10).RowRange(1, 4)
	numbers := make([]float64, view.Len())
	for i := range numbers {
		numbers[i] = float64(i + 1)
	}
	src := encode(tensor.F32, numbers)
	d.Write(view, src)
	clear(src) // the device must not read it any more
	back := make([]byte, len(src))
	d.Read(back, view)
	close(t, "a view read back", decode(tensor.F32, back), numbers, view.Cols, 0, 0)
	want := make([]float64, whole.Len())
	for i, x := range numbers {
		want[(1+i/7)*12+3+i%7] = x
	}
	d.Read(fresh, whole)
	close(t, "the whole read back", decode(tensor.F32, fresh), want, whole.Cols, 0, 0)
	if err := d.Sync(); err != nil {
		t.Errorf("sync: %v", err)
	}
}
