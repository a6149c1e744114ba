package cpu

import (
	"errors"
	"math/rand/v2"
	"testing"

	"antiphase/device"
	"antiphase/internal/hostmem"
	"antiphase/tensor"
)

// What a device maps for itself, packed weights, operands and logits, it unmaps when closed; what it was asked for,
// when that is freed.
func TestMappingsAreFreed(t *testing.T) {
	for i := range 6 {
		p, closeFirst := Precision(i/2), i%2 == 1
		d := New(Options{Threads: 2, Precision: p})
		r := rand.New(rand.NewPCG(1, 1))
		x, w := randomTensor(d, r, 520, 512), randomTensor(d, r, 1100, 512)
		all := []tensor.Tensor{x, w, device.Empty(d, tensor.F32, 520, 1100), device.Empty(d, tensor.I32, 1, 520),
			device.Empty(d, tensor.F32, 1, 520), device.Empty(d, d.act, 520, 512),
			device.Empty(d, tensor.F32, 1100, 512)}
		own := len(d.mapped)
		d.MatMul(all[2], x, w, device.MatMul{TransB: true})
		d.Classify(&device.Classifier{X: x, W: w, Targets: all[3], Loss: all[4], DX: all[5], DW: all[6], Scale: 1})
		if len(d.mapped) <= own {
			t.Fatalf("%v: the ops mapped nothing: make them larger", p)
		}
		if closeFirst {
			if d.Close(); len(d.mapped) != own {
				t.Errorf("%v: a closed device has %d mappings, %d of them asked for", p, len(d.mapped), own)
			}
		}
		for _, x := range all {
			d.Free(x.Buf)
		}
		if !closeFirst {
			d.Close()
		}
		if len(d.mapped) != 0 {
			t.Errorf("%v: %d mappings are left", p, len(d.mapped))
		}
	}
}

// Large memory begins on a huge page and maps as many as it needs, and one to begin on.
func TestMappingsOfHugePages(t *testing.T) {
	d := New(Options{Threads: 1})
	defer d.Close()
	for bytes, pages := range map[int]int{huge: 1, hugePage - 1: 1, hugePage: 1, hugePage + 1: 2, 3 * hugePage: 3} {
		b := d.Alloc(bytes)
		if got := len(d.mapped[b.Addr]); b.Addr%hugePage != 0 || got != (pages+1)*hugePage || len(b.Host) != bytes {
			t.Errorf("%d bytes at %x, %d of them, in a mapping of %d", bytes, b.Addr, len(b.Host), got)
		}
		d.Free(b)
	}
}

// The free memory is asked for from 64 MiB on.
func TestFreeMemoryMatters(t *testing.T) {
	if free := freeFor(64<<20 - 1); free != hostmem.Unknown {
		t.Errorf("%d bytes free for a small allocation", free)
	}
	if free := freeFor(64 << 20); (free == hostmem.Unknown) != (hostmem.Available() == hostmem.Unknown) {
		t.Errorf("%d bytes free for a large allocation", free)
	}
}

// More memory than there is ends in an error that says how much was asked for.
func TestNoMemory(t *testing.T) {
	d := New(Options{Threads: 1})
	defer d.Close()
	defer func() {
		var none *tensor.NoMemory
		if err, _ := recover().(error); !errors.As(err, &none) || none.Where != "host" || none.Bytes != 1<<50 ||
			none.Err == nil && none.Free < 0 {
			t.Errorf("%v", err)
		} else if hostmem.Available() != hostmem.Unknown && none.Err != nil {
			t.Errorf("%v: it was not compared with the free memory", err)
		}
	}()
	d.Alloc(1 << 50)
}
