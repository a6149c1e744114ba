package cu

import "testing"

// Both sides of every bound on tiles: what the copy engine takes and what it does not.
func TestTilesCheck(t *testing.T) {
	good := Tiles{Addr: 256, Dims: [4]int{64, 8, 4, 2}, Strides: [3]int{128, 1024, 4096}, Box: [4]int{64, 8, 1, 1}}
	for name, c := range map[string]struct {
		change func(*Tiles)
		ok     bool
	}{
		"good": {func(*Tiles) {}, true}, "no address": {func(x *Tiles) { x.Addr = 0 }, false},
		"address of 16": {func(x *Tiles) { x.Addr = 16 }, true},

		"address of 8": {func(x *Tiles) { x.Addr = 264 }, false},

		"box of 32": {func(x *Tiles) { x.Box[0] = 32 }, true}, "box of 16": {func(x *Tiles) { x.Box[0] = 16 }, false},
		"box of 128":         {func(x *Tiles) { x.Box[0] = 128 }, false},
		"no rows in a box":   {func(x *Tiles) { x.Box[1] = 0 }, false},
		"256 rows":           {func(x *Tiles) { x.Box[1] = 256 }, true},
		"257 rows":           {func(x *Tiles) { x.Box[1] = 257 }, false},
		"257 in the last":    {func(x *Tiles) { x.Box[3] = 257 }, false},
		"an empty dimension": {func(x *Tiles) { x.Dims[2] = 0 }, false},

		"one": {func(x *Tiles) { x.Dims[2] = 1 }, true}, "2³²": {func(x *Tiles) { x.Dims[3] = 1 << 32 }, true},
		"2³² and one":    {func(x *Tiles) { x.Dims[3] = 1<<32 + 1 }, false},
		"stride of 0":    {func(x *Tiles) { x.Strides[0] = 0 }, true},
		"stride below 0": {func(x *Tiles) { x.Strides[0] = -16 }, false},
		"stride of 8":    {func(x *Tiles) { x.Strides[2] = 4104 }, false},
		"2⁴⁰":            {func(x *Tiles) { x.Strides[1] = 1 << 40 }, false},
		"below 2⁴⁰":      {func(x *Tiles) { x.Strides[1] = 1<<40 - 16 }, true},
	} {
		x := good
		c.change(&x)
		if err := x.Check(); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
