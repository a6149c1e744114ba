package cpu

import (
	"math/rand/v2"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// Behind each product of a step the pool knows the weight of the next one, in every precision, from the second step on;
// what is given back is forgotten.
func TestTrail(t *testing.T) {
	for _, p := range []Precision{FP32, BF16, Int8} {
		d := New(Options{Threads: 2, Precision: p})
		defer d.Close()
		r := rand.New(rand.NewPCG(3, 3))
		x, y := randomTensor(d, r, 1, 64), device.Empty(d, d.act, 1, 400)
		weights := []tensor.Tensor{randomTensor(d, r, 400, 64), randomTensor(d, r, 400, 64),
			randomTensor(d, r, 400, 64)}
		var seen [3][3]span
		for step := range seen {
			for i, w := range weights {
				d.MatMul(y, x, w, device.MatMul{TransB: true})
				seen[step][i] = d.pool.ahead
			}
		}
		if d.pool.turns == 0 { // without assembly few rows go the way of many
			continue
		}
		if seen[0][0] != (span{}) {
			t.Errorf("%v: the first product of all knows what comes next: %v", p, seen[0][0])
		}
		if seen[1] != seen[2] {
			t.Errorf("%v: weights ahead change from step to step: %v, then %v", p, seen[1], seen[2])
		}
		for i, s := range seen[1] {
			if s.n < 2 || s.size*s.n < 400*64 || s == seen[1][(i+1)%3] {
				t.Errorf("%v: ahead of product %d is %v, of the next one %v", p, i, s, seen[1][(i+1)%3])
			}
		}
		for worker := range 2 {
			var e errand
			e.look(d.pool, worker)
			whole := d.pool.ahead
			from, to := shareOf(whole.n, worker, 2)
			if begin, end := whole.at+uintptr(from*whole.size), whole.at+uintptr(to*whole.size); e.at != begin ||
				e.end != end || e.end <= e.at {
				t.Errorf("%v: worker %d fetches %x … %x of %x … %x", p, worker, e.at, e.end, begin, end)
			}
		}
		d.Free(weights[1].Buf)
		d.MatMul(y, x, weights[0], device.MatMul{TransB: true})
		if d.pool.ahead != (span{}) {
			t.Errorf("%v: memory that was given back is fetched: %v", p, d.pool.ahead)
		}
	}
}
