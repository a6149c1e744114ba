package layer

import (
	"math"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/tensor"
)

// The table of angles by definition, cos(p·θ^(−2j/dim)) and sin, times its scale, at every position: also those beyond
// what the host holds at a time.
func TestRopeTable(t *testing.T) {
	d := ref.New()
	freq := Frequencies(6, 500)
	for j, want := range []float64{1, math.Pow(500, -1./3), math.Pow(500, -2./3)} {
		if !(math.Abs(freq[j]-want) <= 1e-15) {
			t.Errorf("frequency %d is %g, want %g", j, freq[j], want)
		}
	}
	for _, positions := range []int{1, 7, 4096, 4097, 9000} {
		r := NewRope(d, freq, positions, 1.25, false)
		if !r.table.Is(positions, 6) {
			t.Fatalf("%v", r.table)
		}
		all := make([]float64, positions*6)
		device.ReadFloats(d, all, r.table)
		for p := range positions {
			for j, f := range freq {
				cos, sin := 1.25*math.Cos(float64(p)*f), 1.25*math.Sin(float64(p)*f)
				if !(math.Abs(all[p*6+j]-cos) <= 1e-12) || !(math.Abs(all[p*6+3+j]-sin) <= 1e-12) {
					t.Fatalf("position %d of %d, pair %d: %g and %g, want %g and %g", p, positions, j, all[p*6+j],
						all[p*6+3+j], cos, sin)
				}
			}
		}
		r.Free(d)
	}
}

// Lengths of value vectors by position and group, of each sequence of a batch, also where they come in several reads.
func TestValueNorms(t *testing.T) {
	d := ref.New()
	for _, T := range []int{3, 2*tileEntries/4096 + 5} {
		const groups, dv = 2, 2048
		v := device.Empty(d, tensor.F64, 2*T, groups*dv)
		host := tensor.Host[float64](v)
		for i := range 2 * T * groups { // one element of each head's vector, and another
			host[i*dv], host[i*dv+dv-1] = 3*float64(i+1), 4*float64(i+1)
		}
		view := View{Shape: device.AttnShape{B: 2, T: T, Groups: groups, DV: dv}, V: v, dev: d}
		for seq := range 2 {
			got := view.ValueNorms(seq)
			if len(got) != groups || len(got[0]) != T {
				t.Fatalf("%d groups of %d positions", len(got), len(got[0]))
			}
			for g := range got {
				for p, x := range got[g] {
					if want := 5 * float64((seq*T+p)*groups+g+1); !(math.Abs(x-want) <= 1e-9*want) {
						t.Fatalf("sequence %d, position %d, group %d: %g, want %g", seq, p, g, x, want)
					}
				}
			}
		}
		d.Free(v.Buf)
	}
}
