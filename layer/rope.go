package layer

import (
	"math"

	"antiphase/device"
	"antiphase/tensor"
)

// Rope is the rotary embedding of one model: a table of cosines and sines by position, shared by all layers.
type Rope struct {
	Interleaved bool
	dim         int
	table       tensor.Tensor // Stat [positions, dim]: cos of dim/2 angles, then their sines
}

// Frequencies are the angles per position of the classic schedule: θ^(−2j/dim), j < dim/2.
func Frequencies(dim int, theta float64) []float64 {
	f := make([]float64, dim/2)
	for j := range f {
		f[j] = math.Pow(theta, -2*float64(j)/float64(dim))
	}
	return f
}

// NewRope tabulates positions × freq on the device, each value times scale (1 except for schemes that change the
// attention's temperature).
func NewRope(d device.Device, freq []float64, positions int, scale float64, interleaved bool) *Rope {
	const chunk = 4096 // positions held in host memory at a time
	half := len(freq)
	r := &Rope{Interleaved: interleaved, dim: 2 * half}
	r.table = device.Empty(d, d.Types().Stat, positions, 2*half)
	host := make([]float64, min(positions, chunk)*2*half)
	for at := 0; at < positions; at += chunk {
		n := min(positions-at, chunk)
		for p := range n {
			row := host[p*2*half:][:2*half]
			for j, f := range freq {
				sin, cos := math.Sincos(float64(at+p) * f)
				row[j], row[half+j] = scale*cos, scale*sin
			}
		}
		device.WriteFloats(d, r.table.RowRange(at, at+n), host[:n*2*half])
	}
	return r
}

// Free releases the table.
func (r *Rope) Free(d device.Device) { d.Free(r.table.Buf) }

// Rotate rotates every head of x [N, heads·dim] by its row's position; inverse rotates back.
func (r *Rope) Rotate(p *Pass, x tensor.Tensor, inverse bool) {
	p.Dev.Rope(x, r.table, p.Pos, device.Rope{Heads: x.Cols / r.dim, Dim: r.dim, Interleaved: r.Interleaved,
		Inverse: inverse})
}
