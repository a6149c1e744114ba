package cuda

import (
	"bytes"
	"fmt"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// warpsRight compares norms that give each row a warp with the oracle, and the forward pass with the bits of the kernel
// that gives each row a block, which takes few rows at a time.
func warpsRight(t *testing.T, d *Device, rows int, widths ...int) {
	t.Helper()
	for _, n := range widths {
		b := newBeside(t, d)
		x, delta, dy, dx := b.random(tensor.BF16, rows, n, 8, 1), b.random(tensor.BF16, rows, n, 0, 1),
			b.random(tensor.BF16, rows, n, 0, 1), b.random(tensor.BF16, rows, n, 0, 1)
		w, y, rstd, dw := b.random(tensor.BF16, 1, n, 0, 1), b.random(tensor.BF16, rows, n, 0, 1),
			b.random(tensor.F32, 1, rows, 0, 1), b.random(tensor.F32, 1, n, 0, 1)
		sum := b.random(tensor.BF16, rows, n, 0, 1)
		forward := func(d device.Device, i int) { d.RMSNorm(y[i], rstd[i], sum[i], x[i], delta[i], w[i], 1e-5) }
		for from := 0; from < rows; from += fewRows {
			to := min(from+fewRows, rows)
			d.RMSNorm(y[0].RowRange(from, to), rstd[0].Columns(from, to), sum[0].RowRange(from, to),
				x[0].RowRange(from, to), delta[0].RowRange(from, to), w[0], 1e-5)
		}
		want := read(d, y[0], rstd[0], sum[0])
		b.both(forward)
		if !bytes.Equal(read(d, y[0], rstd[0], sum[0]), want) {
			t.Errorf("%d×%d: other bits than from a block for each row", rows, n)
		}
		b.same("RMSNorm", y, 1e-2)
		b.same("RMSNorm sum", sum, 1e-2)
		b.both(func(d device.Device, i int) {
			d.RMSNorm(y[i], tensor.Tensor{}, tensor.Tensor{}, dy[i], tensor.Tensor{}, w[i], 1e-5)
			d.RMSNormBackward(dx[i], dw[i], dy[i], sum[i], w[i], rstd[i])
		})
		b.same("RMSNorm alone", y, 1e-2)
		b.same("RMSNormBackward dx", dx, 1e-2)
		b.same("RMSNormBackward dw", dw, 1e-4)
		for _, p := range b.pairs {
			d.Free(p[0].Buf)
		}
	}
}

// TestNormWarps does so on a GPU, for the widths of all kernels.
func TestNormWarps(t *testing.T) {
	d := gpu(t, nil)
	warpsRight(t, d, 5000, 8, 384, 768, 1000, 1536)
}

func TestNormWarpsLaunch(t *testing.T) {
	for _, c := range []struct {
		rows, cols int
		want       []string
	}{
		{4096, 768, []string{"rmsnorm_warps 1024,1,1 × 128 + 0", "rmsnorm_backward_warps 1024,1,1 × 128 + 0",
			"rmsnorm_finish 24,1,1 × 1024 + 0"}},
		{200, 768, []string{"rmsnorm 200,1,1 × 96 + 0", "rmsnorm_backward 200,1,1 × 96 + 0",
			"rmsnorm_finish 24,1,1 × 1024 + 0"}},
		{4096, 2048, []string{"rmsnorm 4096,1,1 × 256 + 0", "rmsnorm_backward 2048,1,1 × 256 + 0",
			"rmsnorm_finish 64,1,1 × 1024 + 0"}},
	} {
		d, drv := fakeDevice(t)
		x, w, rstd := act(d, c.rows, c.cols), act(d, 1, c.cols), stat(d, 1, c.rows)
		d.RMSNorm(act(d, c.rows, c.cols), rstd, tensor.Tensor{}, x, tensor.Tensor{}, w, 1e-5)
		d.RMSNormBackward(act(d, c.rows, c.cols), stat(d, 1, c.cols), act(d, c.rows, c.cols), x, w, rstd)
		var got []string
		for _, l := range drv.Launches {
			got = append(got, geometry(l))
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%d×%d launched %q, want %q", c.rows, c.cols, got, c.want)
		}
	}
}
