package devicetest

import (
	"antiphase/device"
	"antiphase/tensor"
)

// vecs are λ's four vectors, small as training keeps them; the function picks them out of the case's tensors.
func vecs(add func(string, kind, int, int, ...option) int, prefix string, d int,
	s float64) func(x []tensor.Tensor) device.LambdaVecs {
	at := func(name string) int { return add(prefix+name, stat, 1, d, normal(0, s), floor(s)) }
	q1, k1, q2, k2 := at("q1"), at("k1"), at("q2"), at("k2")
	return func(x []tensor.Tensor) device.LambdaVecs {
		return device.LambdaVecs{Q1: x[q1], K1: x[k1], Q2: x[q2], K2: x[k2]}
	}
}

func lambdaCase(dim int) *Case {
	cs := newCase("forward,D=%d", dim)
	lam := cs.out("lam", stat, 1, 1, floor(1))
	v := vecs(cs.in, "", dim, 0.2)
	return cs.call(func(d device.Device, x []tensor.Tensor) { d.Lambda(x[lam], v(x), 0.8) })
}

func lambdaBackwardCase(dim, n, h int) *Case {
	cs := newCase("backward,D=%d,N=%d,H=%d", dim, n, h)
	g := vecs(cs.acc, "d", dim, 1)
	dlam := cs.in("dlam", stat, n, h, anyRows, anyCols)
	v := vecs(cs.in, "", dim, 0.2)
	return cs.call(func(d device.Device, x []tensor.Tensor) { d.LambdaBackward(g(x), x[dlam], v(x)) })
}

func lambdaCases() (all []*Case) {
	for _, dim := range []int{1, 7, 8, 24, 64, 128} {
		all = append(all, lambdaCase(dim), lambdaBackwardCase(dim, 1, 1), lambdaBackwardCase(dim, 129, 5))
	}
	return all
}

func lambdaBench() []*Case { return []*Case{lambdaCase(64), lambdaBackwardCase(64, 4096, 6)} }
