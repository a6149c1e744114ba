package layer

import (
	"math"

	"antiphase/device"
)

// ValueNorms returns ‖v‖ of every position of a sequence, by group. Values are read a few rows at a time.
func (v View) ValueNorms(seq int) [][]float64 {
	out := make([][]float64, v.Shape.Groups)
	v.values(seq, func(_, group int, x []float64) {
		sum := 0.0
		for _, y := range x {
			sum += y * y
		}
		out[group] = append(out[group], math.Sqrt(sum))
	})
	return out
}

// values calls f with the value [DV] of every position and group of a sequence; it is valid during the call.
func (v View) values(seq int, f func(t, group int, x []float64)) {
	T, cols := v.Shape.T, v.V.Cols
	step := tileRows(T, cols, T)
	buf := make([]float64, step*cols)
	for t := 0; t < T; t += step {
		n := min(step, T-t)
		device.ReadFloats(v.dev, buf[:n*cols], v.V.RowRange(seq*T+t, seq*T+t+n))
		for i := range n {
			for g := range v.Shape.Groups {
				f(t+i, g, buf[i*cols+g*v.Shape.DV:][:v.Shape.DV])
			}
		}
	}
}
