package ref

import (
	"fmt"

	"antiphase/device"
	"antiphase/tensor"
)

// Rope rotates each pair (a,b) of each head by the angle of its row's position.
func (d *rowOps) Rope(x, table, pos tensor.Tensor, r device.Rope) {
	r.Check(x, table, pos, d.types)
	m, tab, half := load(x), load(table), r.Dim/2
	for n, p := range integers(pos) {
		if p < 0 || int(p) >= tab.rows {
			d.fail(fmt.Errorf("ref: Rope: position %d outside a table of %d", p, tab.rows))
			continue
		}
		for h := range r.Heads {
			head := m.head(n, h, r.Dim)
			for j := range half {
				cos, sin := tab.row(int(p))[j], tab.row(int(p))[half+j]
				if r.Inverse {
					sin = -sin
				}
				i, k := j, j+half
				if r.Interleaved {
					i, k = 2*j, 2*j+1
				}
				a, b := head[i], head[k]
				head[i], head[k] = a*cos-b*sin, a*sin+b*cos
			}
		}
	}
	store(x, m)
}
