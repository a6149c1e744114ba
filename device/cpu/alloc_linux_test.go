package cpu

import (
	"errors"
	"math/rand/v2"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// What a device maps for itself, packed weights, operands and logits, it unmaps when closed; what it was asked for, when
// that is freed.
func TestMappingsAreFreed(t *testing.T) {
	for _, p := range []Precision{FP32, BF16, Int8} {
		d := New(Options{Threads: 2, Precision: p})
		r := rand.New(rand.NewPCG(1, 1))
		x, w := randomTensor(d, r, 520, 512), randomTensor(d, r, 1100, 512)
		all := []tensor.Tensor{x, w, device.Empty(d, tensor.F32, 520, 1100), device.Empty(d, tensor.I32, 1, 520),
			device.Empty(d, tensor.F32, 1, 520), device.Empty(d, d.act, 520, 512), device.Empty(d, tensor.F32, 1100, 512)}
		own := len(d.mapped)
		d.MatMul(all[2], x, w, device.MatMul{TransB: true})
		d.Classify(&device.Classifier{X: x, W: w, Targets: all[3], Loss: all[4], DX: all[5], DW: all[6], Scale: 1})
		if len(d.mapped) <= own {
			t.Fatalf("%v: the ops mapped nothing: make them larger", p)
		}
		for _, x := range all {
			d.Free(x.Buf)
		}
		if d.Close(); len(d.mapped) != 0 {
			t.Errorf("%v: %d mappings are left", p, len(d.mapped))
		}
	}
}

// More memory than there is ends in an error that says how much was asked for.
func TestNoMemory(t *testing.T) {
	d := New(Options{Threads: 1})
	defer d.Close()
	defer func() {
		var none *tensor.NoMemory
		if err, _ := recover().(error); !errors.As(err, &none) || none.Where != "host" || none.Bytes != 1<<50 || none.Err == nil && none.Free < 0 {
			t.Errorf("%v", err)
		}
	}()
	d.Alloc(1 << 50)
}
