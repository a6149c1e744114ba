package cuda

import (
	"bytes"
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"antiphase/device"
	"antiphase/internal/cu"
	"antiphase/tensor"
)

// tiledCase is one shape with its tensors.
type tiledCase struct {
	attnCall
	d *Device
}

// fill writes the same numbers to a tensor each time it is called with the same seed.
func fill(d *Device, x tensor.Tensor, seed uint64, mean, deviation float64) tensor.Tensor {
	r, v := rand.New(rand.NewPCG(seed, 7)), make([]float32, x.Len())
	for i := range v {
		v[i] = float32(mean + deviation*r.NormFloat64())
	}
	device.WriteFloats(d, x, v)
	return x
}

// newTiledCase draws b sequences of t rows, four heads in two groups, with documents and an affine norm. extra columns
// behind each query row force the general kernels.
func newTiledCase(d *Device, s attnShape, b, t, extra int) *tiledCase {
	n, h, g := b*t, 4, 2
	c := &tiledCase{d: d}
	c.AttnShape = device.AttnShape{B: b, T: t, Heads: h, Groups: g, D: s.d, DV: s.dv,
		Scale: 1 / math.Sqrt(float64(s.d))}
	c.maps, c.keys, c.weight = s.maps, s.keys, true
	c.norm = device.HeadNorm{On: true, Weight: fill(d, act(d, 1, s.dv), 1, 1, 0.3), Eps: 1e-5, Scale: 0.8}
	qw := h * s.maps * s.d
	c.q = fill(d, on(d, tensor.BF16, n, qw, qw+extra), 2, 0, 1)
	c.k, c.v = fill(d, act(d, n, g*s.keys*s.d), 3, 0, 1), fill(d, act(d, n, g*s.dv), 4, 0, 1)
	c.out, c.raw, c.lse, c.rstd = act(d, n, h*s.dv), act(d, n, h*s.dv), stat(d, n, h*s.maps), stat(d, n, h)
	c.dout, c.dnorm = fill(d, act(d, n, h*s.dv), 5, 0, 1), stat(d, 1, s.dv)
	c.dq, c.dk, c.dv = act(d, n, qw), act(d, n, g*s.keys*s.d), act(d, n, g*s.dv)
	if s.maps == 2 {
		c.lam, c.eachLam = fill(d, stat(d, n, h), 6, 0.5, 0.1), true
		c.out2, c.dlam = act(d, n, h*s.dv), stat(d, n, h)
	}
	starts, r := make([]int32, n), rand.New(rand.NewPCG(9, 9))
	for i := range starts {
		if i%t > 0 {
			starts[i] = starts[i-1]
			if r.IntN(t/3+1) == 0 {
				starts[i] = int32(i % t)
			}
		}
	}
	c.start = ints(d, n)
	device.WriteI32(d, c.start, starts)
	return c
}

// results are forward's and backward's outputs by name.
func (c *tiledCase) results() map[string]tensor.Tensor {
	all := map[string]tensor.Tensor{"out": c.out, "raw": c.raw, "lse": c.lse, "rstd": c.rstd, "dq": c.dq, "dk": c.dk,
		"dv": c.dv, "dnorm": c.dnorm}
	if c.maps == 2 {
		all["out2"], all["dlam"] = c.out2, c.dlam
	}
	return all
}

// litter fills scratch memory with NaN, as other ops may leave it.
func litter(d *Device) {
	const size = 1 << 24
	b := cu.Block{Addr: d.scratch(size), Rows: 1, Width: size, Pitch: size}
	d.fail(d.now().Upload(b, bytes.Repeat([]byte{0xff}, size)))
}

// run does forward and backward and reads the results.
func (c *tiledCase) run(t *testing.T) map[string][]float64 {
	t.Helper()
	c.d.Zero(c.dnorm)
	litter(c.d)
	c.d.attend(&c.attnCall)
	c.d.attendBackward(&c.attnCall)
	if err := c.d.Sync(); err != nil {
		t.Fatal(err)
	}
	all := map[string][]float64{}
	for name, x := range c.results() {
		all[name] = make([]float64, x.Len())
		device.ReadFloats(c.d, all[name], x)
	}
	return all
}

// free gives the tensors back.
func (c *tiledCase) free() {
	for _, x := range append([]tensor.Tensor{c.norm.Weight, c.q, c.k, c.v, c.dout, c.start}, c.lam) {
		if x.Ok() {
			c.d.Free(x.Buf)
		}
	}
	for _, x := range c.results() {
		c.d.Free(x.Buf)
	}
}

// tiledAgrees wants the tiled kernels' results within bf16's error of the general kernels', which share no code with
// them, and the same bits from a second run.
func tiledAgrees(t *testing.T, d *Device, s attnShape, b, rows int) {
	t.Helper()
	fast, slow := newTiledCase(d, s, b, rows, 0), newTiledCase(d, s, b, rows, 3)
	if _, _, ok := fast.tiled(); !ok {
		t.Fatalf("%+v has no tiled kernels", s)
	}
	if _, _, ok := slow.tiled(); ok {
		t.Fatalf("%+v on odd rows is tiled", s)
	}
	got, want := fast.run(t), slow.run(t)
	for name, w := range want {
		diff, size := 0.0, 0.0
		for i := range w {
			diff += (got[name][i] - w[i]) * (got[name][i] - w[i])
			size += w[i] * w[i]
		}
		if e := math.Sqrt(diff / size); !(e < 1e-2) {
			t.Errorf("%+v, T=%d: %s is off by %.2g of its size", s, rows, name, e)
		}
	}
	before := map[string][]byte{}
	for name, x := range fast.results() {
		before[name] = make([]byte, tensor.Bytes(x.Type, x.Rows, x.Cols))
		d.Read(before[name], x)
	}
	fast.run(t)
	for name, x := range fast.results() {
		again := make([]byte, len(before[name]))
		if d.Read(again, x); !bytes.Equal(again, before[name]) {
			t.Errorf("%+v, T=%d: %s has other bits in a second run", s, rows, name)
		}
	}
	fast.free()
	slow.free()
}

// tiledShapes are all shapes in one order.
func tiledShapes() []attnShape {
	var all []attnShape
	for s := range attnShapes {
		all = append(all, s)
	}
	sort.Slice(all, func(i, j int) bool {
		a, b := all[i], all[j]
		return a.maps*1000000+a.keys*100000+a.d*300+a.dv < b.maps*1000000+b.keys*100000+b.d*300+b.dv
	})
	return all
}

// TestAttnTiled runs every tiled shape on a GPU, at lengths of many tiles with a rest.
func TestAttnTiled(t *testing.T) {
	d := gpu(t, nil)
	defer wgmma(d, false)()
	for _, s := range tiledShapes() {
		tiledAgrees(t, d, s, 2, 1000)
		tiledAgrees(t, d, s, 1, 130)
	}
}
