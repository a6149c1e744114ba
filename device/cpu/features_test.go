package cpu

import (
	"strings"
	"testing"

	"antiphase/internal/simd"
)

func TestFeatures(t *testing.T) {
	each(t, func(t *testing.T) {
		f := Features()
		if f[0] != simd.Name() || len(f) != len(simd.Names()) {
			t.Errorf("features %v with %s picked of %v", f, simd.Name(), simd.Names())
		}
		d := New(Options{Threads: 1})
		defer d.Close()
		if !strings.Contains(d.Name(), simd.Name()) {
			t.Errorf("name %q does not say %s", d.Name(), simd.Name())
		}
	})
}

func TestFeaturesWrongName(t *testing.T) {
	t.Setenv(simd.Env, "sse9")
	if f := Features(); f[len(f)-1] != "(no sse9 here)" {
		t.Errorf("features %v say nothing of sse9", f)
	}
}

func TestAlloc(t *testing.T) {
	d := New(Options{Threads: 1})
	defer d.Close()
	for _, n := range []int{0, 1, 4096, 5 << 20} {
		b := d.Alloc(n)
		if b.Size != n || b.Addr%4096 != 0 || len(b.Host) < n {
			t.Errorf("alloc %d: size %d, %d bytes at %x", n, b.Size, len(b.Host), b.Addr)
		}
		for i, x := range b.Host {
			if x != 0 {
				t.Fatalf("alloc %d: byte %d is %d", n, i, x)
			}
		}
		d.Free(b)
		if b.Host != nil {
			t.Errorf("alloc %d: freed memory is still there", n)
		}
	}
}
