package devicetest

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/tensor"
)

// Case is one op at one size: its tensors and the call. Tensors are identified by their index in x; index 0 is the
// absent tensor, so that the zero handle means absent.
type Case struct {
	name   string
	args   []arg
	bind   func(x []tensor.Tensor) func(device.Device) // prepares the call on these tensors
	derive func(v [][]float64)                         // computes inputs from inputs; may be nil
	units  int                                         // independent parts: rows or sequences
	flops  float64                                     // multiply-adds ×2
	touch  int                                         // elements that the call touches, if not all of its tensors
	unit   kind                                        // what these are
	slack  float64                                     // factor of the tolerance, 1 unless the case is ill-conditioned
}

// kind is the dtype of an argument relative to the device's.
type kind uint8

const (
	act kind = iota
	stat
	cached
	f32
	bf16
	ints
)

// String is the kind in a case's name.
func (k kind) String() string { return [...]string{"act", "stat", "cached", "f32", "bf16", "ints"}[k] }

// role is what the op does with an argument.
type role uint8

const (
	in      role = iota // read, and unchanged afterwards
	out                 // overwritten: holds NaN before
	acc                 // read and written: accumulated onto, or in place
	scratch             // may hold anything afterwards
)

type arg struct {
	name       string
	kind       kind
	role       role
	rows, cols int
	fill       func(r *rand.Rand, i int) float64 // element i; standard normal when nil
	floor      float64                           // scale of the comparison if the result itself is smaller
	coarse     tensor.DType                      // coarser dtype to whose values the result is rounded
	exact      bool                              // compared bit for bit
	product    bool                              // a product of Act values: as precise as the device's products
	loose      bool                              // result that passes through Act values in the op: as precise as Act
	dense      bool                              // must be dense
	anyRows    bool                              // one more row would also be valid
	anyCols    bool
	anyType    bool
	perRow     int // rows of one unit; 0 if not divided that way
	perCol     int // columns of one unit
}

// large are shapes of several tiles on every device: many rows, and rows that are longer than a tile.
var large = [][2]int{{260, 130}, {2, 20003}}

// edges are large and shapes without rows or without columns.
var edges = append([][2]int{{0, 7}, {3, 0}}, large...)

func newCase(format string, a ...any) *Case {
	return &Case{name: fmt.Sprintf(format, a...), args: make([]arg, 1), slack: 1}
}

// add appends an argument and returns its handle.
func (c *Case) add(name string, r role, k kind, rows, cols int, opts []option) int {
	a := arg{name: name, kind: k, role: r, rows: rows, cols: cols}
	for _, o := range opts {
		o(&a)
	}
	if a.perRow > 0 {
		c.units = rows / a.perRow
	}
	c.args = append(c.args, a)
	return len(c.args) - 1
}

func (c *Case) in(name string, k kind, rows, cols int, opts ...option) int {
	return c.add(name, in, k, rows, cols, opts)
}

func (c *Case) out(name string, k kind, rows, cols int, opts ...option) int {
	return c.add(name, out, k, rows, cols, opts)
}

func (c *Case) acc(name string, k kind, rows, cols int, opts ...option) int {
	return c.add(name, acc, k, rows, cols, opts)
}

// ints is an I32 input with these values.
func (c *Case) ints(name string, rows, cols int, v []int32, opts ...option) int {
	fill := func(a *arg) { a.fill = func(_ *rand.Rand, i int) float64 { return float64(v[i]) } }
	return c.add(name, in, ints, rows, cols, append(opts, fill))
}

// call sets the op for plain arguments and completes a case.
func (c *Case) call(do func(d device.Device, x []tensor.Tensor)) *Case {
	c.bind = func(x []tensor.Tensor) func(device.Device) {
		return func(d device.Device) { do(d, x) }
	}
	return c
}

// option refines an argument.
type option func(*arg)

func perRow(n int) option { return func(a *arg) { a.perRow = n } }
func perCol(n int) option { return func(a *arg) { a.perCol = n } }

// floor is the natural size of an argument's rounding errors, for results that may cancel to less.
func floor(f float64) option { return func(a *arg) { a.floor = f } }

// normal fills with deviation s around m.
func normal(m, s float64) option {
	return func(a *arg) { a.fill = func(r *rand.Rand, _ int) float64 { return m + s*r.NormFloat64() } }
}

// uniform fills evenly from lo to hi.
func uniform(lo, hi float64) option {
	return func(a *arg) { a.fill = func(r *rand.Rand, _ int) float64 { return lo + (hi-lo)*r.Float64() } }
}

// given fills with these values.
func given(v ...float64) option {
	return func(a *arg) { a.fill = func(_ *rand.Rand, i int) float64 { return v[i] } }
}

func rounded(d tensor.DType) option { return func(a *arg) { a.coarse = d } }

func exact(a *arg)   { a.exact = true }
func product(a *arg) { a.product = true }
func loose(a *arg)   { a.product, a.loose = true, true }
func dense(a *arg)   { a.dense = true }
func anyRows(a *arg) { a.anyRows = true }
func anyCols(a *arg) { a.anyCols = true }
func anyType(a *arg) { a.anyType = true }

// dtype is the argument's dtype on a device.
func (a *arg) dtype(t device.Types) tensor.DType {
	switch a.kind {
	case act:
		return t.Act
	case stat:
		return t.Stat
	case cached:
		return t.Cache
	case f32:
		return tensor.F32
	case bf16:
		return tensor.BF16
	}
	return tensor.I32
}

// from makes c derive inputs from forward: inputs of c that are outputs of forward, matched by name, get ref's results
// on the inputs that the two share.
func (c *Case) from(forward *Case) *Case {
	c.derive = func(v [][]float64) {
		shared := make([][]float64, len(forward.args))
		c.match(forward, func(i, j int) { shared[j] = v[i] })
		p := forward.place(ref.New(), shared, false)
		forward.bind(p.x)(p.d)
		c.match(forward, func(i, j int) {
			if forward.args[j].role == out {
				v[i] = decode(p.x[j].Type, p.content(j))
			}
		})
	}
	return c
}

// match visits the arguments that c and o have in common.
func (c *Case) match(o *Case, f func(i, j int)) {
	for i := 1; i < len(c.args); i++ {
		for j := 1; j < len(o.args); j++ {
			if c.args[i].name == o.args[j].name {
				f(i, j)
			}
		}
	}
}

// random is the case's own source, so that a case gives the same numbers whatever else runs.
func (c *Case) random() *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(c.name))
	return rand.New(rand.NewPCG(h.Sum64(), 1))
}

// values draws every argument's content, rounded to what the device's dtype can hold.
func (c *Case) values(t device.Types) [][]float64 {
	r, v := c.random(), make([][]float64, len(c.args))
	round := func() {
		for i := range c.args[1:] {
			d := c.args[i+1].dtype(t)
			v[i+1] = decode(d, encode(d, v[i+1]))
		}
	}
	for i := range c.args[1:] {
		a := &c.args[i+1]
		x := make([]float64, a.rows*a.cols)
		for j := range x {
			if a.fill != nil {
				x[j] = a.fill(r, j)
			} else {
				x[j] = r.NormFloat64()
			}
		}
		v[i+1] = x
	}
	round()
	if c.derive != nil {
		c.derive(v)
		round()
	}
	return v
}
