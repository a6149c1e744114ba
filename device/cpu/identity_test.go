package cpu

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"antiphase/device"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

// Sets of kernels that differ only in what a precision does not use have one identity, so a run may move between the
// processors that have them; sets with one identity compute the same bits.
func TestIdentity(t *testing.T) {
	for _, p := range []Precision{FP32, BF16, Int8} {
		bits, first := map[device.Identity][]byte{}, map[device.Identity]string{}
		each(t, func(t *testing.T) {
			d := New(Options{Threads: 2, Precision: p})
			defer d.Close()
			id, got := d.Identity(), productBits(d)
			if want := bits[id]; want == nil {
				bits[id], first[id] = got, simd.Name()
			} else if !bytes.Equal(got, want) {
				t.Errorf("%s and %s are both %v and compute other bits", first[id], simd.Name(), id)
			}
		})
		for _, pair := range [][2]string{{"avxvnni", "avx2"}, {"neonbf16", "neon"}} {
			a, b := identityWith(t, pair[0], p), identityWith(t, pair[1], p)
			if same := p == FP32 || pair[1] == "avx2"; a.Kernels != "" && b.Kernels != "" && (a == b) != same {
				t.Errorf("%s: %s is %v, %s is %v", p, pair[0], a, pair[1], b)
			}
		}
	}
}

// identityWith is that of a device with the named kernels, empty if they do not run here.
func identityWith(t *testing.T, name string, p Precision) device.Identity {
	t.Helper()
	before := simd.Name()
	if simd.Use(name) != nil {
		return device.Identity{}
	}
	defer func() {
		if err := simd.Use(before); err != nil {
			t.Error(err)
		}
	}()
	d := New(Options{Threads: 1, Precision: p})
	defer d.Close()
	return d.Identity()
}

// productBits are the results of a few ops on odd sizes: products of one row and of many, and a norm.
func productBits(d *Device) []byte {
	const rows, out, in = 37, 45, 70
	r := rand.New(rand.NewPCG(3, 1))
	var tensors []tensor.Tensor
	random := func(rows, cols int) tensor.Tensor {
		x, act := device.Empty(d, tensor.F32, rows, cols), device.EmptyAct(d, rows, cols)
		tensors = append(tensors, x, act)
		for i := range f32(x) {
			f32(x)[i] = float32(r.NormFloat64())
		}
		d.Copy(act, x)
		return act
	}
	x, w, y, z, gain := random(rows, in), random(out, in), random(rows, out), random(rows, out), random(1, out)
	d.MatMul(y, x, w, device.MatMul{TransB: true})
	d.MatMul(y.RowRange(0, 1), x.RowRange(1, 2), w, device.MatMul{TransB: true})
	d.RMSNorm(z, tensor.Tensor{}, tensor.Tensor{}, y, tensor.Tensor{}, gain, 1e-5)
	var all []byte
	for _, t := range []tensor.Tensor{y, z} {
		b := make([]byte, tensor.Bytes(t.Type, t.Rows, t.Cols))
		d.Read(b, t)
		all = append(all, b...)
	}
	for _, t := range tensors {
		d.Free(t.Buf)
	}
	return all
}

// Sets of kernels with the same bits by precision, on every architecture: those that add products of bfloat16 are
// another set only where these are used, those that add int8 products never.
func TestSameBitsAs(t *testing.T) {
	for set, want := range map[string][3]string{ // fp32, bf16, int8
		"amx": {"avx512", "amx", "amx"}, "avx512bf16": {"avx512", "avx512bf16", "avx512bf16"},
		"avx512": {"avx512", "avx512", "avx512"}, "avxvnni": {"avx2", "avx2", "avx2"},
		"avx2": {"avx2", "avx2", "avx2"}, "neonbf16": {"neon", "neonbf16", "neonbf16"},
		"neon": {"neon", "neon", "neon"}, "generic": {"generic", "generic", "generic"},
	} {
		for i, p := range []Precision{FP32, BF16, Int8} {
			if got := sameBitsAs(set, p); got != want[i] {
				t.Errorf("%s at %s: %s, want %s", set, p, got, want[i])
			}
		}
	}
}
