package cpu

import (
	"antiphase/device"
	"antiphase/internal/simd"
	"antiphase/tensor"
)

// subtractHeadsTask is a − λ·a' of the two halves of each row's heads, or its gradient, if there is one. λ of row n and
// head h is lam[n·lamRow + h·lamHead].
type subtractHeadsTask struct {
	out, a          mat // a [N,2H·DV]; out or dout [N,H·DV]
	da, dlam        mat // of the gradient
	lam             []float32
	lamRow, lamHead int
	heads, dv, step int
	d               *machine
}

// SubtractHeads: out_h = a_h − λ_h·a_{H+h}.
func (d *attention) SubtractHeads(out, a, lam tensor.Tensor, heads int) {
	device.CheckSubtractHeads(out, a, lam, heads, d.Types())
	d.touch(out)
	d.subtract(subtractHeadsTask{out: matOf(out), a: matOf(a)}, lam, heads)
}

// SubtractHeadsBackward: da_h = dout_h, da_{H+h} = −λ_h·dout_h, dλ_h = −dout_h·a_{H+h}.
func (d *attention) SubtractHeadsBackward(da, dlam, dout, a, lam tensor.Tensor, heads int) {
	device.CheckSubtractHeadsBackward(da, dlam, dout, a, lam, heads, d.Types())
	d.touch(da, dlam)
	d.subtract(subtractHeadsTask{out: matOf(dout), a: matOf(a), da: matOf(da), dlam: matOf(dlam)}, lam, heads)
}

// subtract runs a task whose matrices are set.
func (d *attention) subtract(t subtractHeadsTask, lam tensor.Tensor, heads int) {
	t.lam, t.heads, t.dv, t.step, t.d = f32(lam), heads, t.out.cols/heads, rowsPerTile(t.a.cols), d.machine
	if lam.Len() > 1 {
		t.lamRow, t.lamHead = lam.Ld, 1
	}
	d.reserve(2 * t.dv)
	d.subtractHeads = t
	d.run((t.out.rows+t.step-1)/t.step, &d.subtractHeads)
}

func (t *subtractHeadsTask) tile(i, worker int) {
	buf := t.d.buf(worker, 2*t.dv)
	for n := i * t.step; n < min((i+1)*t.step, t.out.rows); n++ {
		for h := range t.heads {
			lam := t.lam[n*t.lamRow+h*t.lamHead]
			if t.dlam.ok() {
				t.gradient(n, h, lam, buf[:t.dv], buf[t.dv:])
			} else {
				t.head(n, h, lam, buf[:t.dv], buf[t.dv:])
			}
		}
	}
}

// head is out_h of row n.
func (t *subtractHeadsTask) head(n, h int, lam float32, x, y []float32) {
	c0, c1, w := h*t.dv, (h+1)*t.dv, t.out.cols
	out := t.out.place(n, c0, c1, x)
	copy(out, t.a.read(n, c0, c1, x))
	simd.Axpy(out, -lam, t.a.read(n, w+c0, w+c1, y))
	t.out.store(n, c0, c1, out)
}

// gradient is da_h, da_{H+h} and dλ_h of row n.
func (t *subtractHeadsTask) gradient(n, h int, lam float32, x, y []float32) {
	c0, c1, w := h*t.dv, (h+1)*t.dv, t.out.cols
	dout := t.out.read(n, c0, c1, x)
	t.dlam.piece(n, h, h+1)[0] = -simd.Dot(dout, t.a.read(n, w+c0, w+c1, y))
	if t.da.h != nil {
		copy(t.da.half(n, c0, c1), t.out.half(n, c0, c1))
	} else {
		copy(t.da.piece(n, c0, c1), dout)
	}
	second := t.da.place(n, w+c0, w+c1, x)
	copy(second, dout)
	simd.Scale(second, -lam)
	t.da.store(n, w+c0, w+c1, second)
}
