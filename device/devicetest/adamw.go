package devicetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"antiphase/device"
	"antiphase/internal/half"
	"antiphase/tensor"
)

// adamwSpec is a variant of the step.
type adamwSpec struct {
	n       int
	kind    kind // of W
	master  bool
	round   bool
	maxNorm float64
	gradSq  float64
}

func adamwCase(s adamwSpec) *Case {
	cs := newCase("n=%d,%v,master=%v,round=%v,max=%v,sq=%v", s.n, s.kind, s.master, s.round, s.maxNorm, s.gradSq)
	wopts := []option{dense}
	if s.round {
		wopts = append(wopts, rounded(tensor.BF16)) // a last bit more or less before a tie is a whole step after it
	}
	still := math.IsNaN(s.gradSq) || math.IsInf(s.gradSq, 0)
	if still {
		wopts = append(wopts, exact)
	}
	w := cs.acc("W", s.kind, 1, s.n, wopts...)
	state := []option{dense}
	if still {
		state = append(state, exact)
	}
	master := 0
	if s.master {
		master = cs.acc("Master", stat, 1, s.n, state...)
	}
	m, g := cs.acc("M", stat, 1, s.n, state...), cs.in("G", stat, 1, s.n, dense)
	v := cs.acc("V", stat, 1, s.n, append(state, uniform(0, 1))...)
	rate, sq := cs.in("Rate", stat, 1, 3, given(0.01, 1-0.9*0.9, 1-0.95*0.95)),
		cs.in("GradSq", stat, 1, 1, given(s.gradSq))
	cs.bind = func(x []tensor.Tensor) func(device.Device) {
		a := &device.AdamW{W: x[w], Master: x[master], M: x[m], V: x[v], G: x[g], Rate: x[rate], GradSq: x[sq],
			Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1, MaxNorm: s.maxNorm, RoundBF16: s.round}
		return func(d device.Device) { d.AdamW(a) }
	}
	return cs
}

func adamwCases() (all []*Case) {
	for _, n := range []int{1, 7, 1000, 4099} {
		all = append(all,
			adamwCase(adamwSpec{n: n, kind: act}),
			adamwCase(adamwSpec{n: n, kind: stat, maxNorm: 1, gradSq: 9}),
			adamwCase(adamwSpec{n: n, kind: act, master: true, maxNorm: 1, gradSq: 0.25}),
			adamwCase(adamwSpec{n: n, kind: act, master: true, round: true, maxNorm: 2, gradSq: 9}),
			adamwCase(adamwSpec{n: n, kind: act, master: true, gradSq: math.NaN()}),
			adamwCase(adamwSpec{n: n, kind: stat, maxNorm: 1, gradSq: math.Inf(1)}))
	}
	const tiles = 40001 // several of every device's
	return append(all, adamwCase(adamwSpec{n: tiles, kind: stat, maxNorm: 1, gradSq: 9}),
		adamwCase(adamwSpec{n: tiles, kind: act, master: true, round: true}))
}

// adamwExtra: W is its master rounded once, to its dtype or to bf16 values.
func adamwExtra(t *testing.T, d device.Device) {
	adamwSplit(t, d)
	for _, round := range []bool{false, true} {
		c := adamwCase(adamwSpec{n: 301, kind: act, master: true, round: round})
		p := c.place(d, c.values(d.Types()), false).call(t)
		to := d.Types().Act
		if round {
			to = tensor.BF16
		}
		w, master := decode(d.Types().Act, p.content(1)), decode(d.Types().Stat, p.content(2))
		close(t, fmt.Sprintf("W with RoundBF16=%v", round), w, decode(to, encode(to, master)), 301, 0, 0)
		p.free()
	}
}

// adamwSplit: parameters in halves are, bit for bit, what they are with a whole master, step after step.
func adamwSplit(t *testing.T, d device.Device) {
	if d.Types().Act != tensor.BF16 || d.Types().Stat != tensor.F32 {
		return // no halves there
	}
	const n = 1003
	r := rand.New(rand.NewPCG(3, 4))
	fresh := func(t tensor.DType) tensor.Tensor { return device.Empty(d, t, 1, n) }
	whole := device.AdamW{W: fresh(tensor.BF16), Master: fresh(tensor.F32), M: fresh(tensor.F32), V: fresh(tensor.F32),
		G: fresh(tensor.F32), Rate: device.Empty(d, tensor.F32, 1, 3), GradSq: device.Empty(d, tensor.F32, 1, 1),
		Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1, MaxNorm: 1}
	halves := whole
	halves.W, halves.Master, halves.M, halves.V = fresh(tensor.BF16), fresh(tensor.I16), fresh(tensor.F32),
		fresh(tensor.F32)
	x := make([]float32, n)
	draw := func() []float32 {
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		return x
	}
	device.WriteFloats(d, whole.Master, draw())
	device.WriteSplit(d, halves.W, halves.Master, x)
	device.WriteFloats(d, whole.Rate, []float32{0.01, 0.2, 0.1})
	device.WriteFloats(d, whole.GradSq, []float32{2})
	want, w := make([]float32, n), make([]float32, n)
	for step := range 4 {
		device.WriteFloats(d, whole.G, draw())
		d.AdamW(&whole)
		d.AdamW(&halves)
		device.ReadFloats(d, want, whole.Master)
		device.ReadSplit(d, x, halves.W, halves.Master)
		device.ReadFloats(d, w, halves.W)
		for i := range x {
			if upper, _ := half.Split(want[i]); x[i] != want[i] || w[i] != half.BF16ToF32(upper) {
				t.Fatalf("step %d, element %d: %x in halves (weight %x), %x whole", step, i, math.Float32bits(x[i]),
					math.Float32bits(w[i]), math.Float32bits(want[i]))
			}
		}
	}
	for _, x := range []tensor.Tensor{whole.W, whole.Master, whole.M, whole.V, whole.G, whole.Rate, whole.GradSq,
		halves.W, halves.Master, halves.M, halves.V} {
		d.Free(x.Buf)
	}
}

func adamwBench() []*Case {
	return []*Case{adamwCase(adamwSpec{n: 1 << 20, kind: act, master: true, maxNorm: 1, gradSq: 9})}
}
