package devicetest

import (
	"bytes"
	"math"
	"testing"

	"antiphase/device"
)

// apart runs a case with NaN in every second unit's inputs, then in those of the others, and requires the bits of the
// whole in the units between them: a unit that is not finite is no concern of its neighbours.
func apart(t *testing.T, c *Case, d device.Device, v [][]float64, whole [][]byte) {
	t.Helper()
	for odd := range 2 {
		spoiled := make([][]float64, len(v))
		for i := range v {
			spoiled[i] = append([]float64(nil), v[i]...)
			if a := &c.args[i]; a.kind != ints && a.divided() {
				for e := range spoiled[i] {
					if a.unitOf(e)%2 == odd {
						spoiled[i][e] = math.NaN()
					}
				}
			}
		}
		for i, got := range c.place(d, spoiled, false).call(t).bits() {
			if a := &c.args[i]; got != nil && a.divided() && a.differ(got, whole[i], 1-odd) {
				t.Errorf("%s: %s differs in its bits beside units of NaN", c.name, a.name)
			}
		}
	}
}

func (a *arg) divided() bool { return a.perRow > 0 || a.perCol > 0 }

// unitOf is the unit of element e of a divided argument.
func (a *arg) unitOf(e int) int {
	if a.perRow > 0 {
		return e / a.cols / a.perRow
	}
	return e % a.cols / a.perCol
}

// differ reports whether two contents differ in a unit that is odd, or in one that is not.
func (a *arg) differ(x, y []byte, odd int) bool {
	n := a.rows * a.cols
	for e := range n {
		from, to := e*len(x)/n, (e+1)*len(x)/n
		if a.unitOf(e)%2 == odd && !bytes.Equal(x[from:to], y[from:to]) {
			return true
		}
	}
	return false
}
