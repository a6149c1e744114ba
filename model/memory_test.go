package model

import (
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/tensor"
)

// meagre is a device that has room for some allocations and then for no more. live are those not freed.
type meagre struct {
	device.Device
	left, live int
}

func (d *meagre) Alloc(n int) *tensor.Buffer {
	if d.left--; d.left < 0 {
		panic(&tensor.NoMemory{Where: "device", Bytes: n, Free: 0})
	}
	d.live++
	return d.Device.Alloc(n)
}

func (d *meagre) Free(b *tensor.Buffer) {
	d.live--
	d.Device.Free(b)
}

// A model that memory does not suffice for leaves nothing allocated, whichever allocation fails: the caller may go on
// without it.
func TestNoMemoryLeavesNothing(t *testing.T) {
	c := configs(t)["diff/base"]
	made := func(d *meagre) (m *Model, failed bool) {
		defer func() {
			if v := recover(); v != nil {
				_, failed = v.(*tensor.NoMemory)
			}
		}()
		m, err := New(d, c, layer.Memory{Train: true, Master: true})
		if err != nil {
			t.Fatal(err)
		}
		return m, false
	}
	for n := 0; ; n++ {
		d := &meagre{Device: ref.New(), left: n}
		m, failed := made(d)
		if !failed {
			if n < 5 {
				t.Fatalf("a model takes %d allocations; want more to fail", n)
			}
			m.Free()
		}
		if d.live != 0 {
			t.Errorf("room for %d allocations: %d are left", n, d.live)
		}
		if !failed {
			return
		}
	}
}
