package cuda

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"antiphase/device"
	"antiphase/internal/cu"
	"antiphase/tensor"
)

// prepareCase is a shape of what comes before the main kernels of a backward pass. extra is the number of columns
// behind each row that belong to others.
type prepareCase struct {
	maps, dv, t, pad, columns, extra int
	norm, weight, eachLam            bool
}

// prepareCases take each number of lanes, whole and with a rest, rows of 16 bytes and others, both orders of the
// statistics, and sequences that end within a warp's rows, a block's and the padded ones.
func prepareCases() (all []prepareCase) {
	lengths := [][3]int{{150, 192, 64}, {130, 256, 128}, {37, 37, 0}, {128, 128, 64}} // T, padded, columns
	for i, dv := range []int{20, 32, 40, 64, 96, 128, 100, 256, 192, 264, 512, 500} {
		n := lengths[i%len(lengths)]
		for maps := 1; maps <= 2; maps++ {
			for norm := range 2 {
				all = append(all, prepareCase{maps: maps, dv: dv, t: n[0], pad: n[1], columns: n[2],
					extra: []int{8, 0, 3}[(i+maps)%3], norm: norm == 1, weight: norm == 1 && (i+maps)%4 > 0,
					eachLam: i%3 > 0})
			}
		}
	}
	return all
}

// prepared is the case's call, two sequences of three heads, with NaN in all that it must not read.
type prepared struct {
	attnCall
	of   prepareCase
	room attnRoom
	d    *Device
	all  []tensor.Tensor
}

// tensor is rows of cols numbers, and NaN behind each row.
func (p *prepared) tensor(dt tensor.DType, rows, cols int, seed uint64, mean, deviation float64) tensor.Tensor {
	x := on(p.d, dt, rows, cols+p.of.extra, cols+p.of.extra)
	p.d.Write(x, bytes.Repeat([]byte{0xff}, tensor.Bytes(dt, rows, x.Ld)))
	p.all = append(p.all, x)
	return fill(p.d, x.Columns(0, cols), seed, mean, deviation)
}

func newPrepared(d *Device, c prepareCase) *prepared {
	const b, h = 2, 3
	p, n := &prepared{of: c, d: d}, b*c.t
	a := &p.attnCall
	a.AttnShape = device.AttnShape{B: b, T: c.t, Heads: h, Groups: h, D: 16, DV: c.dv}
	a.maps, a.weight, a.eachLam = c.maps, c.weight, c.eachLam
	a.dout, a.out = p.tensor(tensor.BF16, n, h*c.dv, 1, 0, 1), p.tensor(tensor.BF16, n, h*c.dv, 2, 0, 1)
	a.lse = p.tensor(tensor.F32, n, h*c.maps, 3, 4, 1)
	a.norm.Scale = 0.8
	if c.norm {
		a.norm.On, a.raw = true, p.tensor(tensor.BF16, n, h*c.dv, 4, 0, 1)
		a.rstd = p.tensor(tensor.F32, n, h, 5, 1, 0.2)
	}
	if c.weight {
		a.norm.Weight, a.dnorm = p.tensor(tensor.BF16, 1, c.dv, 6, 1, 0.3), p.tensor(tensor.F32, 1, c.dv, 7, 0, 1)
	}
	if c.maps == 2 {
		a.out2, a.dlam = p.tensor(tensor.BF16, n, h*c.dv, 8, 0, 1), p.tensor(tensor.F32, n, h, 9, 0, 1)
		a.lam = p.tensor(tensor.F32, 1, 1, 10, 0.5, 0)
		if c.eachLam {
			a.lam = p.tensor(tensor.F32, n, h, 10, 0.5, 0.1)
		}
	}
	p.room = a.room(c.pad, attnShape{maps: c.maps}.stats(), 0)
	p.room.columns = c.columns
	return p
}

// numbers are a tensor's, row after row.
func numbers(d *Device, x tensor.Tensor) []float64 {
	if !x.Ok() {
		return nil
	}
	v := make([]float64, x.Rows*x.Cols)
	device.ReadFloats(d, v, x)
	return v
}

// scratchFloats are those in scratch memory.
func scratchFloats(t *testing.T, d *Device, dt tensor.DType, at uint64, rows, cols int) []float64 {
	t.Helper()
	b := make([]byte, tensor.Bytes(dt, rows, cols))
	if err := d.drv.Download(b, cu.Block{Addr: uintptr(at), Rows: 1, Width: len(b), Pitch: len(b)}); err != nil {
		t.Fatal(err)
	}
	x := on(d, dt, rows, cols, cols)
	defer d.Free(x.Buf)
	d.Write(x, b)
	return numbers(d, x)
}

// stat is where the statistics hold kind k of a row, in the order that the room says.
func (r *attnRoom) stat(row, t, k int) int {
	if r.columns == 0 {
		return (row*r.pad+t)*r.stats + k
	}
	return (row*r.pad+t/r.columns*r.columns)*r.stats + k*r.columns + t%r.columns
}

// isNear reports whether x is want, up to a share of the numbers' size.
func isNear(x, want, size, share float64) bool {
	return x == want || math.Abs(x-want) <= share*size
}

// run launches the kernels on scratch memory full of NaN and compares all that they store with the definition.
func (p *prepared) run(t *testing.T) {
	t.Helper()
	litter(p.d)
	var before []float64
	if p.weight {
		before = numbers(p.d, p.dnorm)
	}
	m, _, _ := p.d.prepare(&p.attnCall, &p.room)
	if err := p.d.Sync(); err != nil {
		t.Fatal(err)
	}
	h := p.Heads
	r := prepareResults{prepared: p, t: t, lse: numbers(p.d, p.lse), lam: numbers(p.d, p.lam),
		dlam: numbers(p.d, p.dlam), stats: scratchFloats(t, p.d, tensor.F32, m.stats, p.B*h*p.of.pad, p.room.stats)}
	r.dout, r.raw, r.out2 = numbers(p.d, p.dout), numbers(p.d, p.out), numbers(p.d, p.out2)
	r.dw = make([]float64, p.DV)
	if p.norm.On {
		r.raw, r.rstd = numbers(p.d, p.raw), numbers(p.d, p.rstd)
		r.grad = scratchFloats(t, p.d, tensor.BF16, m.grad, p.B*p.T, h*p.DV)
	}
	if p.weight {
		r.w = numbers(p.d, p.norm.Weight)
	}
	for b := range p.B {
		for pos := range p.of.pad {
			for head := range h {
				r.row(b, pos, head)
			}
		}
	}
	if p.weight {
		for c, x := range numbers(p.d, p.dnorm) {
			if !isNear(x, before[c]+r.dw[c], math.Sqrt(float64(p.B*p.T*h)), 1e-4) {
				t.Errorf("%+v: gradient of weight %d is %g, want %g", p.of, c, x, before[c]+r.dw[c])
			}
		}
	}
}

// prepareResults are the numbers of one call.
type prepareResults struct {
	*prepared
	t                            *testing.T
	dout, raw, out2, grad, stats []float64
	lse, rstd, lam, dlam, w, dw  []float64
}

func (r *prepareResults) want(what string, x, want, size, share float64) {
	r.t.Helper()
	if !isNear(x, want, size, share) {
		r.t.Fatalf("%+v: %s is %g, want %g", r.of, what, x, want)
	}
}

// row checks one row of a head, or that a padded one has statistics that make its probabilities 0.
func (r *prepareResults) row(b, pos, h int) {
	r.t.Helper()
	name, kinds := fmt.Sprintf("row %d,%d,%d: ", b, pos, h), r.maps*2
	if r.maps == 2 {
		kinds = 5
	}
	want := make([]float64, kinds)
	size, at, n := 1.0, 0, b*r.T+pos
	if pos < r.T {
		at = (n*r.Heads + h) * r.DV
		d1, d2, fine, length := r.sums(name, n, h, at)
		size = length
		for i := range r.maps {
			want[i] = r.lse[(n*r.Heads+h)*r.maps+i] * math.Log2E
		}
		want[r.maps] = d1
		if r.maps == 2 {
			lam := r.lam[0]
			if r.eachLam {
				lam = r.lam[n*r.Heads+h]
			}
			want[2], want[3], want[4] = d1+lam*d2, d2, lam
			r.want(name+"dλ", r.dlam[n*r.Heads+h], -fine, size, 1e-5)
		}
	} else {
		for i := range r.maps {
			want[i] = math.Inf(1)
		}
	}
	for k, w := range want {
		r.want(fmt.Sprint(name, "kind ", k), r.stats[r.room.stat(b*r.Heads+h, pos, k)], w, size, 1e-5)
	}
	for k := kinds; r.of.columns == 0 && k < r.room.stats; k++ {
		r.want(fmt.Sprint(name, "kind ", k), r.stats[r.room.stat(b*r.Heads+h, pos, k)], 0, 0, 0)
	}
}

// sums are dO·raw, dO·Out2, the latter before dO is rounded, and a bound of their parts. It checks dO and adds to the
// weight's gradient.
func (r *prepareResults) sums(name string, n, h, at int) (d1, d2, fine, size float64) {
	r.t.Helper()
	gain, scale, mean := r.norm.Scale, 1.0, 0.0
	w := func(c int) float64 {
		if r.w == nil {
			return gain
		}
		return gain * r.w[c]
	}
	if r.grad != nil {
		scale = r.rstd[n*r.Heads+h]
		for c := range r.DV {
			up := r.dout[at+c] * r.raw[at+c] * scale
			r.dw[c] += gain * up
			mean += up * w(c) / float64(r.DV)
		}
	}
	for c := range r.DV {
		g, x := r.dout[at+c], r.dout[at+c]
		if r.grad != nil {
			x = scale*w(c)*x - mean*scale*scale*r.raw[at+c]
			g = r.grad[at+c]
			r.want(fmt.Sprint(name, "dO ", c), g, x, math.Abs(x)+1e-3, 1.0/250)
		}
		d1 += g * r.raw[at+c]
		size += math.Abs(g*r.raw[at+c]) + 1
		if r.maps == 2 {
			d2 += g * r.out2[at+c]
			fine += x * r.out2[at+c]
			size += math.Abs(g * r.out2[at+c])
		}
	}
	return d1, d2, fine, size
}

// preparesRight runs cases twice: an emulator's second launch takes another order.
func preparesRight(t *testing.T, d *Device, all []prepareCase) {
	t.Helper()
	for _, c := range all {
		p := newPrepared(d, c)
		p.run(t)
		p.run(t)
		for _, x := range p.all {
			d.Free(x.Buf)
		}
	}
}

// TestPrepare does so on a GPU.
func TestPrepare(t *testing.T) {
	preparesRight(t, gpu(t, nil), prepareCases())
}
