package devicetest

import (
	"math"

	"antiphase/device"
	"antiphase/tensor"
)

// probsCase: rows row … row+n−1 of the last query head of the last sequence against key head 0.
func probsCase(b, t, d, row, n int, logits bool) *Case {
	cs := newCase("B=%d,T=%d,D=%d,row=%d,rows=%d,logits=%v", b, t, d, row, n, logits)
	o := []option{product}
	if row+n < t {
		o = append(o, anyRows)
	}
	if logits {
		o = append(o, floor(1))
	}
	out := cs.out("out", stat, n, t, o...)
	q := cs.in("q", act, b*t, 3*d)
	k := cs.in("k", act, b*t, 2*d)
	p := device.Probs{T: t, D: d, Seq: b - 1, Row: row, QHead: 2, KHead: 0, Scale: 1 / math.Sqrt(float64(d)),
		Logits: logits}
	return cs.call(func(dev device.Device, x []tensor.Tensor) { dev.AttentionProbs(x[out], x[q], x[k], p) })
}

func probsCases() (all []*Case) {
	for _, s := range [][5]int{{1, 1, 8, 0, 1}, {2, 7, 16, 0, 7}, {1, 65, 24, 30, 11}, {3, 129, 40, 128, 1},
		{1, 64, 128, 0, 64}} {
		all = append(all, probsCase(s[0], s[1], s[2], s[3], s[4], false), probsCase(s[0], s[1], s[2], s[3], s[4], true))
	}
	return all
}

func probsBench() []*Case { return []*Case{probsCase(1, 512, 64, 0, 512, false)} }
