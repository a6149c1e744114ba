package eval

import "math"

// logProb is log softmax(row)[id] and the index of the largest entry.
func logProb(row []float32, id int32) (lp float64, best int32) {
	for i, x := range row {
		if x > row[best] {
			best = int32(i)
		}
	}
	top := float64(row[best])
	sum := 0.0
	for _, x := range row {
		sum += math.Exp(float64(x) - top)
	}
	return float64(row[id]) - top - math.Log(sum), best
}
