package cuda

import (
	"bytes"
	"os"
	"strconv"
	"testing"
	"unsafe"

	"antiphase/device"
	"antiphase/tensor"
)

// TestHopperStress repeats the Hopper kernels of a shape, forward and backward apart, and wants the same bits each
// time. A fault that shows once in a hundred processes needs many of them: tools/gpu/hopper.sh stress counts. It takes
// ANTIPHASE_TEST_STRESS=repetitions, and a GPU.
func TestHopperStress(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("ANTIPHASE_TEST_STRESS"))
	if err != nil {
		t.Skip("ANTIPHASE_TEST_STRESS=repetitions asks for it")
	}
	made := map[attnShape]map[string]hopperKernels{}
	for _, s := range hopperOrder() {
		made[s] = s.suspects()
	}
	d := gpu(t, nil) // after the kernels: it knows those that are registered
	for _, s := range hopperOrder() {
		t.Run(s.String(), func(t *testing.T) {
			const tokens, length = 32768, 2048
			width := 2048
			if s.d == 64 {
				width = 768
			}
			c := benchCall(t, d, s, tokens/length, length, width/s.d/s.keys)
			for name, k := range made[s] {
				t.Run("forward_"+name, func(t *testing.T) {
					k := k
					if name == "indirect" {
						// Fills the argument.
						d.forwardHopper(c, s, &hopperKernels{tile: k.tile, forward: hopperShapes[s].forward})
						k.self = d.kept(t, structBytes(&d.forward))
					}
					repeat(t, d, n, func() { d.forwardHopper(c, s, &k) },
						func() []byte { return read(d, c.out, c.lse) })
				})
				t.Run("backward_"+name, func(t *testing.T) {
					k := k
					d.attend(c) // by the mma kernels: what backward reads
					if name == "indirect" {
						table := hopperShapes[s]
						d.backwardHopper(c, s, &table)
						k.self = d.kept(t, structBytes(&d.backward))
					}
					repeat(t, d, n, func() { d.backwardHopper(c, s, &k) },
						func() []byte { return read(d, c.dq, c.dk, c.dv) })
				})
			}
		})
	}
}

// suspects are the table's kernels, and the same without one of the things that a rare fault might come from, see
// hopper.cuh.
func (s attnShape) suspects() map[string]hopperKernels {
	all := map[string]hopperKernels{"table": hopperShapes[s]}
	for name, option := range map[string]string{"prefetch": "-DPREFETCH=0", "registers": "-DREDISTRIBUTE=0",
		"indirect": "-DINDIRECT=1"} {
		k := hopperShapes[s]
		back := append(k.back.options(s), option)
		k.forward = hopperOf("attn_hopper_forward", "attn_hopper_forward", append(k.tile.options(s, false), option)...)
		k.backward, k.queries = hopperOf("attn_hopper_backward", "attn_hopper_backward", back...),
			hopperOf("attn_hopper_backward", "attn_hopper_queries", back...)
		all[name] = k
	}
	return all
}

// structBytes are a launcher's argument.
func structBytes[T any](a *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(a)), unsafe.Sizeof(*a))
}

// kept is the address of a copy of b in the GPU's memory, for the rest of the test.
func (d *Device) kept(t *testing.T, b []byte) uint64 {
	t.Helper()
	x := device.Empty(d, tensor.I32, 1, len(b)/4)
	d.Write(x, b)
	if err := d.Sync(); err != nil {
		t.Fatal(err)
	}
	return ptr(x)
}

// repeat runs f in batches of ten and compares what it left after each.
func repeat(t *testing.T, d *Device, n int, f func(), result func() []byte) {
	t.Helper()
	var want []byte
	for i := 0; i < n; i += 10 {
		for range 10 {
			f()
		}
		if err := d.Sync(); err != nil {
			t.Fatalf("after %d launches: %v", i+10, err)
		}
		got := result()
		if want == nil {
			want = got
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("other bits after %d launches", i+10)
		}
	}
}
