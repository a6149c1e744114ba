package devicetest

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/tensor"
)

// Products is an optional property of a device besides its Types: MatMul, attention and Classify round the operands of
// their products to a coarser dtype than Act (bf16 units behind fp32 tensors). Its products are then held to that
// dtype's tolerance. A device without it multiplies in Act.
type Products interface{ Products() tensor.DType }

// factors draws every argument's content; if the device rounds the operands of its products, Act values are rounded to
// that dtype first. The comparison then measures the products' own error, as on a device whose tensors have that dtype.
func (c *Case) factors(d device.Device) [][]float64 {
	t := d.Types()
	if p, ok := d.(Products); ok {
		t.Act = p.Products()
	}
	return c.values(t)
}

// conform checks d against the contract on one case.
func (c *Case) conform(t *testing.T, d, oracle device.Device) {
	v := c.factors(d)
	truth := c.place(oracle, v, false).call(t)
	defer truth.free()
	for _, strided := range []bool{false, true} {
		p := c.place(d, v, strided).call(t)
		p.untouched(t)
		c.compare(t, p, truth)
		if t.Failed() {
			t.Fatalf("with strided = %v", strided)
		}
		p.free()
	}
	first := c.place(d, v, false).call(t).bits()
	c.sameBits(t, c.place(d, v, false).call(t).bits(), first, "a second run")
	if c.units > 1 {
		c.pieces(t, d, v, first)
		apart(t, c, d, v, first)
	}
	c.wrongShapes(t, d, v)
}

// tolerance is the largest error that is right, relative to the scale of the result. With u the unit roundoff:
//
//	F64   1e-12  ref against itself, and a margin
//	F32   1e-5   160u (u = 2^-24): sums of up to a thousand terms err by √n·u, and a few ops stand in a row
//	BF16  2e-2    10u (u = 2^-9): fp32 sums, rounding of the result, of P or dS before a product, and of what
//	              forward kept, each u, and twice that for what cancels between the two maps
func tolerance(d tensor.DType) float64 {
	switch d {
	case tensor.F64:
		return 1e-12
	case tensor.F32:
		return 1e-5
	}
	return 2e-2
}

// tolerance is that of the argument's dtype, or of a coarser one which the op passes through.
func (c *Case) tolerance(a *arg, d device.Device) float64 {
	if a.exact {
		return 0
	}
	tol := tolerance(a.dtype(d.Types()))
	if a.loose {
		tol = max(tol, tolerance(d.Types().Act))
	}
	if a.coarse != tensor.Invalid {
		tol = max(tol, tolerance(a.coarse))
	}
	if p, ok := d.(Products); ok && a.product {
		tol = max(tol, tolerance(p.Products()))
	}
	return c.slack * tol
}

// compare checks every output against the oracle's: |got − want| ≤ tolerance·scale, where scale is the largest of the
// row's maximum, the tensor's root mean square (rows are alike, a narrow one may be small by chance) and the floor.
func (c *Case) compare(t *testing.T, p, truth *placed) {
	t.Helper()
	for i := range c.args {
		a := &c.args[i]
		if a.role != out && a.role != acc {
			continue
		}
		got := decode(p.x[i].Type, p.content(i))
		want := decode(truth.x[i].Type, truth.content(i))
		if a.exact { // as the dtype holds it
			want = decode(p.x[i].Type, encode(p.x[i].Type, want))
		}
		close(t, fmt.Sprintf("%s %v", a.name, p.x[i]), got, want, a.cols, c.tolerance(a, p.d), a.floor)
	}
}

// close is compare for one output of rows of cols elements.
func close(t *testing.T, what string, got, want []float64, cols int, tol, floor float64) {
	t.Helper()
	square := 0.0
	for _, w := range want {
		square += w * w
	}
	least := max(floor, math.Sqrt(square/float64(max(1, len(want)))))
	for r := 0; r*cols < len(want); r++ {
		scale := least
		for _, w := range want[r*cols : (r+1)*cols] {
			scale = max(scale, math.Abs(w))
		}
		for j := range cols {
			g, w := got[r*cols+j], want[r*cols+j]
			if err := math.Abs(g - w); !(err <= tol*scale) && g != w {
				t.Errorf("%s at [%d,%d]: %v, want %v: off by %.3g, allowed %.3g", what, r, j, g, w, err, tol*scale)
				return
			}
		}
	}
}

// sameBits fails where two runs differ in a bit of an output.
func (c *Case) sameBits(t *testing.T, got, want [][]byte, what string) {
	t.Helper()
	for i := range want {
		if !bytes.Equal(got[i], want[i]) {
			t.Errorf("%s: %s: %s differs in its bits", c.name, what, c.args[i].name)
		}
	}
}

// pieces runs the case unit by unit, or in three uneven parts if there are very many, and requires the bits of the
// whole.
func (c *Case) pieces(t *testing.T, d device.Device, v [][]float64, whole [][]byte) {
	t.Helper()
	cuts := []int{0, 1, (c.units + 1) / 2, c.units}
	if c.units <= 40 {
		cuts = cuts[:1]
		for u := range c.units {
			cuts = append(cuts, u+1)
		}
	}
	p := c.place(d, v, false)
	for i := range cuts[1:] {
		x := make([]tensor.Tensor, len(p.x))
		for j := range x {
			x[j] = part(p.x[j], &c.args[j], cuts[i], cuts[i+1])
		}
		c.bind(x)(d)
	}
	p.sync(t)
	got := p.bits()
	for i := range c.args {
		if c.args[i].perRow == 0 && c.args[i].perCol == 0 {
			got[i] = whole[i] // a sum over all rows: its order may depend on the division
		}
	}
	c.sameBits(t, got, whole, fmt.Sprintf("in %d pieces", len(cuts)-1))
}

// part is the view of units [from, to) of a divided argument, or all of one that is not.
func part(x tensor.Tensor, a *arg, from, to int) tensor.Tensor {
	switch {
	case a.perRow > 0:
		return x.RowRange(from*a.perRow, to*a.perRow)
	case a.perCol > 0:
		return x.Columns(from*a.perCol, to*a.perCol)
	}
	return x
}

// wrongShapes gives each argument an extra row or column or a wrong dtype, and requires a panic that shows it.
func (c *Case) wrongShapes(t *testing.T, d device.Device, v [][]float64) {
	t.Helper()
	p := c.place(d, v, false)
	defer p.free()
	for i := 1; i < len(c.args); i++ {
		a, x := &c.args[i], p.x[i]
		if !a.anyRows {
			y := x
			y.Rows++
			c.mustPanic(t, p, i, y)
		}
		if !a.anyCols {
			y := x
			y.Cols++
			y.Ld = max(y.Ld, y.Cols)
			c.mustPanic(t, p, i, y)
		}
		if !a.anyType {
			y := x
			y.Type = tensor.I32
			if a.kind == ints {
				y.Type = tensor.F32
			}
			c.mustPanic(t, p, i, y)
		}
	}
}

// mustPanic calls the op with argument i replaced.
func (c *Case) mustPanic(t *testing.T, p *placed, i int, wrong tensor.Tensor) {
	t.Helper()
	x := append([]tensor.Tensor(nil), p.x...)
	x[i] = wrong
	text := func() (text string) {
		defer func() {
			if r := recover(); r != nil {
				text = fmt.Sprint(r)
			}
		}()
		c.bind(x)(p.d)
		return ""
	}()
	if text == "" {
		t.Errorf("%s %v instead of %v: no panic", c.args[i].name, wrong, p.x[i])
	} else if !strings.Contains(text, wrong.String()) {
		t.Errorf("%s %v instead of %v: the panic does not show it: %s", c.args[i].name, wrong, p.x[i], text)
	}
}

// faulty runs a case with a fault that the next Sync tells, once. What is written is what ref writes.
func (c *Case) faulty(t *testing.T, d device.Device) {
	t.Helper()
	v, oracle := c.factors(d), ref.New()
	truth, p := c.place(oracle, v, false), c.place(d, v, true)
	for _, x := range []*placed{truth, p} {
		if c.bind(x.x)(x.d); x.d.Sync() == nil {
			t.Errorf("%s: gave no fault", c.name)
		}
		if err := x.d.Sync(); err != nil {
			t.Errorf("%s: the fault was told twice: %v", c.name, err)
		}
	}
	p.untouched(t)
	c.compare(t, p, truth)
	p.free()
	truth.free()
}

// fused runs a case with the named arguments as adjacent columns of one tensor, as a fused projection and its gradient
// hold them, and compares with ref. Their byte ranges overlap although they share no element.
func (c *Case) fused(t *testing.T, d, oracle device.Device, names ...string) {
	v := c.factors(d)
	truth := c.place(oracle, v, false).call(t)
	p := c.place(d, v, false)
	apart := p.x
	p.x = append([]tensor.Tensor(nil), apart...)
	rows, cols, at := 0, 0, map[string]int{}
	for i := 1; i < len(c.args); i++ {
		if slices.Contains(names, c.args[i].name) {
			at[c.args[i].name] = i
			rows, cols = apart[i].Rows, cols+apart[i].Cols
		}
	}
	joint, from := device.Empty(d, d.Types().Act, rows, cols), 0
	for _, name := range names {
		i := at[name]
		p.x[i] = joint.Columns(from, from+apart[i].Cols)
		from += apart[i].Cols
		d.Copy(p.x[i], apart[i])
	}
	c.compare(t, p.call(t), truth)
	d.Free(joint.Buf)
	p.free()
	truth.free()
}
