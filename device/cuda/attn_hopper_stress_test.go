package cuda

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"testing"
)

// TestHopperStress repeats the Hopper kernels of a shape, forward and backward apart, and wants the same bits each time. A fault that shows once in
// a hundred processes needs many of them: tools/gpu/hopper.sh stress counts. It takes ANTIPHASE_TEST_STRESS=repetitions, and a GPU.
func TestHopperStress(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("ANTIPHASE_TEST_STRESS"))
	if err != nil {
		t.Skip("ANTIPHASE_TEST_STRESS=repetitions asks for it")
	}
	d := gpu(t, nil)
	for _, s := range hopperOrder() {
		t.Run(fmt.Sprintf("%d%d_%d_%d", s.maps, s.keys, s.d, s.dv), func(t *testing.T) {
			const tokens, length = 32768, 2048
			width := 2048
			if s.d == 64 {
				width = 768
			}
			c := benchCall(t, d, s, tokens/length, length, width/s.d/s.keys)
			k := hopperShapes[s]
			t.Run("forward", func(t *testing.T) {
				repeat(t, d, n, func() { d.forwardHopper(c, s, &k) }, func() []byte { return read(d, c.out, c.lse) })
			})
			t.Run("backward", func(t *testing.T) {
				d.attend(c) // by the mma kernels: what backward reads
				repeat(t, d, n, func() { d.backwardHopper(c, s, &k) }, func() []byte { return read(d, c.dq, c.dk, c.dv) })
			})
		})
	}
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
