package layer

import (
	"math"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/tensor"
)

func TestQuantise(t *testing.T) {
	// 3 bits: levels −3…3 of step 6/3 = 2; 1 and −5 lie between two levels and go to the even one.
	x := []float64{6, -6, 2.9, 3.1, 1, -5, 0}
	quantise(x, 3, absmax(x))
	for i, want := range []float64{6, -6, 2, 4, 0, -4, 0} {
		if x[i] != want {
			t.Errorf("entry %d: %g, want %g", i, x[i], want)
		}
	}
	for _, top := range []float64{0, math.Inf(1), math.NaN()} {
		y := []float64{1.5}
		if quantise(y, 4, top); y[0] != 1.5 {
			t.Errorf("with a largest of %g: %g", top, y[0])
		}
	}
}

// Which numbers of two tokens with two heads of width 2 share a scale: with 2 bits a number becomes −top, 0 or top.
func TestQuantiseRows(t *testing.T) {
	for per, want := range map[Granularity][]float64{
		PerTensor: {0, 0, 8, -8, 0, 0, 0, 8},
		PerHead:   {0, 0, 8, -8, 4, 0, 0, 8},
		PerRow:    {1, 1, 8, -8, 4, 0, 0, 5},
		"":        {1, 1, 8, -8, 4, 0, 0, 5},
	} {
		x := []float64{1, 0.9, 8, -5, 4, 1, 0, 5}
		quantiseRows(x, 4, 2, 2, per)
		for i := range want {
			if x[i] != want[i] {
				t.Errorf("per %q: %v, want %v", per, x, want)
				break
			}
		}
	}
}

// Keys have heads of width 2 here and values of 4, as in DIFF: each head, or each sequence, has a scale of its own.
func TestLowbitHeads(t *testing.T) {
	d := ref.New()
	p := &Pass{Dev: d, Arena: tensor.NewArena(d), B: 2, T: 1}
	twice := func(row []float64) []float64 { // the second sequence's numbers are ten times as large
		out := slices.Clone(row)
		for _, x := range row {
			out = append(out, 10*x)
		}
		return out
	}
	keys, values := []float64{3, -1, 0.5, 0.375}, []float64{1, 0.375, 8, -5, 2, 2, 0.5, 1}
	for per, want := range map[Granularity][2][]float64{
		PerTensor: {{3, 0, 0, 0}, {0, 0, 8, -8, 0, 0, 0, 0}},
		PerHead:   {{3, 0, 0.5, 0.5}, {0, 0, 8, -8, 2, 2, 0, 0}},
		PerRow:    {{3, 0, 0.5, 0.5}, {0, 0, 8, -8, 2, 2, 0, 0}},
	} {
		for _, q := range []Lowbit{{Keys: 2, CachePer: per}, {Values: 2, CachePer: per},
			{Keys: 2, Values: 2, CachePer: per}} {
			k, v := device.Empty(d, tensor.F32, 2, 4), device.Empty(d, tensor.F32, 2, 8)
			device.WriteFloats(d, k, twice(keys))
			device.WriteFloats(d, v, twice(values))
			(&lowbit{q}).keys(p, device.AttnShape{D: 2, DV: 4}, k, v)
			for _, x := range []struct {
				what        string
				bits        int
				got         []float64
				exact, want []float64
			}{{"keys", q.Keys, readAll(d, k), keys, want[0]}, {"values", q.Values, readAll(d, v), values, want[1]}} {
				if x.bits == 0 {
					x.want = x.exact
				}
				near(t, string(per)+" "+x.what, x.got, twice(x.want))
			}
		}
	}
}
