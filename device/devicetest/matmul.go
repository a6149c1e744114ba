package devicetest

import (
	"math"

	"antiphase/device"
	"antiphase/tensor"
)

func matmulCase(m, n, k int, to kind, op device.MatMul) *Case {
	cs := newCase("%v,%v,%d×%d×%d", op, to, m, n, k)
	cs.flops = 2 * float64(m) * float64(n) * float64(k)
	write := cs.out
	if op.Accumulate {
		write = cs.acc
	}
	// A row of c depends on a row of a, alone or in a batch; for a column of aᵀ the contract does not require this.
	var alone []option
	ar, ac, br, bc := m, k, k, n
	if op.TransA {
		ar, ac = k, m
	} else {
		alone = []option{perRow(1)}
	}
	if op.TransB {
		br, bc = n, k
	}
	c := write("c", to, m, n, append(alone, floor(math.Sqrt(float64(k))), product)...)
	a := cs.in("a", act, ar, ac, alone...)
	b := cs.in("b", act, br, bc)
	return cs.call(func(d device.Device, x []tensor.Tensor) { d.MatMul(x[c], x[a], x[b], op) })
}

func matmulCases() (all []*Case) {
	sizes := [][3]int{{1, 1, 1}, {1, 7, 13}, {5, 1, 64}, {7, 13, 1}, {3, 5, 0}, {1, 129, 200},
		{4, 64, 96}, {8, 33, 257}, {64, 64, 64}, {17, 40, 300}, {65, 129, 24}, {128, 96, 33}, {200, 130, 257}}
	for i, s := range sizes {
		for trans := range 4 {
			for _, add := range []bool{false, true} {
				to := act
				if (i+trans)%2 == 0 {
					to = stat
				}
				op := device.MatMul{TransA: trans&1 != 0, TransB: trans&2 != 0, Accumulate: add}
				all = append(all, matmulCase(s[0], s[1], s[2], to, op))
			}
		}
	}
	return all
}

func matmulBench() (all []*Case) {
	for _, m := range []int{1, 8, 512} {
		all = append(all, matmulCase(m, 2048, 768, act, device.MatMul{TransB: true}))
	}
	return append(all, matmulCase(512, 768, 2048, act, device.MatMul{}),
		matmulCase(2048, 768, 512, stat, device.MatMul{TransA: true, Accumulate: true}))
}
