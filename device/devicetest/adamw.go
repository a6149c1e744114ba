package devicetest

import (
	"fmt"
	"math"
	"testing"

	"antiphase/device"
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
	rate, sq := cs.in("Rate", stat, 1, 3, given(0.01, 1-0.9*0.9, 1-0.95*0.95)), cs.in("GradSq", stat, 1, 1, given(s.gradSq))
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
	return all
}

// adamwExtra: W is its master rounded once, to its dtype or to bf16 values.
func adamwExtra(t *testing.T, d device.Device) {
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

func adamwBench() []*Case {
	return []*Case{adamwCase(adamwSpec{n: 1 << 20, kind: act, master: true, maxNorm: 1, gradSq: 9})}
}
