package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"antiphase/device"
	"antiphase/tensor"
)

// clocked is a device whose clock advances by half a millisecond with every product. It keeps the products that ran
// under the clock, and counts the others.
type clocked struct {
	device.Device
	coarse bool // the clock shows whole milliseconds
	timing bool
	timed  []string
	where  map[string]bool // weights of the timed products
	other  int
	zero   bool // a factor of a timed product was zero
}

func (d *clocked) Time(f func()) (float64, error) {
	before := len(d.timed)
	d.timing = true
	f()
	d.timing = false
	ms := float64(len(d.timed)-before) / 2
	if d.coarse {
		ms = math.Floor(ms)
	}
	return ms, nil
}

func (d *clocked) MatMul(c, a, b tensor.Tensor, op device.MatMul) {
	d.note(fmt.Sprintf("%d×%d, %v", c.Rows, c.Cols, op), a, b)
	d.Device.MatMul(c, a, b, op)
}

func (d *clocked) Classify(c *device.Classifier) {
	d.note(fmt.Sprintf("%d×%d, scale 1/%g", c.X.Rows, c.W.Rows, math.Round(1/c.Scale)), c.X, c.W)
	d.Device.Classify(c)
}

func (d *clocked) note(what string, a, b tensor.Tensor) {
	if !d.timing {
		d.other++
		return
	}
	d.timed = append(d.timed, what)
	d.where[fmt.Sprintf("%p %d", b.Buf, b.Off)] = true
	for _, x := range []tensor.Tensor{a, b} {
		v := make([]float32, x.Rows*x.Cols)
		device.ReadFloats(d.Device, v, x)
		d.zero = d.zero || v[0] == 0 || v[len(v)-1] == 0
	}
}

// A row of a product measures that product and no other, of noise: once to build kernels, then as many at a time as two
// milliseconds need. Products of few rows go through copies of the matrix, each multiplied once before.
func TestProductsThatAreTimed(t *testing.T) {
	c := quick(t)
	d := &clocked{Device: c.Device, where: map[string]bool{}}
	c.Device, c.Warmup, c.Reps = d, 1, 2
	next := 0
	wants := []string{
		"6×9, MatMul c = a·bᵀ", "6×7, MatMul c = a·b", "9×7, MatMul c = aᵀ·b", "9×7, MatMul c += aᵀ·b",
		"6×9, scale 1/6",
		"3×9, MatMul c = a·bᵀ",
	}
	emit := func(r Row) {
		want := wants[next]
		next++
		for _, got := range d.timed {
			if got != want {
				t.Errorf("%s ran %s, want %s", r.Name, got, want)
			}
		}
		if n := 1 + 5 + 3*5; len(d.timed) != n || r.Value != 0.5 || r.Low != 0.5 || r.High != 0.5 || d.zero {
			t.Errorf("%s: %d products, want %d, of %g ms; zeros %v", r.Name, len(d.timed), n, r.Value, d.zero)
		}
		if places := map[bool]int{true: len(d.timed), false: 1}[next == 6]; len(d.where) != places {
			t.Errorf("%s: %d matrices, want %d", r.Name, len(d.where), places)
		}
		d.timed, d.where = nil, map[string]bool{}
	}
	g := &gemm{Config: c, ctx: context.Background(), opt: GemmOptions{Tokens: 6}, emit: emit}
	g.product, g.bytes = &c.Product, &c.Bandwidth
	c.defaults()
	w := weight{"W", 9, 7}
	if err := errors.Join(g.training(w), g.classifier(w)); err != nil || d.other != 0 {
		t.Errorf("%v, %d products outside", err, d.other)
	}
	if err := g.decoding(w, 3); err != nil || next != 6 || d.other != 1024 {
		t.Errorf("%v, %d rows, %d products outside", err, next, d.other)
	}
}

// A clock that does not move during one product, as clocks of some systems do, sees many of them.
func TestCoarseClock(t *testing.T) {
	c := quick(t)
	d := &clocked{Device: c.Device, where: map[string]bool{}, coarse: true}
	c.Device, c.Warmup, c.Reps = d, 1, 2
	rows := 0
	emit := func(r Row) {
		rows++
		if r.Value != 0.4 || !(r.Rate > 0) || math.IsInf(r.Rate, 0) { // five take 2.5 ms
			t.Errorf("%s: %g ms, %g %s", r.Name, r.Value, r.Rate, r.RateUnit)
		}
	}
	if err := c.Products(t.Context(), []Shape{{2, 3, 5}}, emit); err != nil || rows != 4 {
		t.Errorf("%d rows, %v", rows, err)
	}
}

// unsteady is a device that fails at its nth wait.
type unsteady struct {
	device.Device
	left int
}

var errUnsteady = errors.New("the device fell off the bus")

func (d *unsteady) Sync() error {
	if d.left--; d.left == 0 {
		return errors.Join(errUnsteady, d.Device.Sync())
	}
	return d.Device.Sync()
}

// A failing device fails the benchmark, at whichever wait it does, and no row of it is reported afterwards.
func TestFailingDevices(t *testing.T) {
	ctx, nano := context.Background(), Geometry{Size: "nano", Arch: "diff", Layers: 1, Vocab: 64}
	for name, run := range map[string]func(*Config, func(Row)) error{
		"train": func(c *Config, emit func(Row)) error {
			_, err := c.Train(ctx, TrainOptions{Geometry: nano, Seq: 4, Batch: 1, Ops: true})
			return err
		},
		"forward": func(c *Config, emit func(Row)) error {
			_, err := c.Train(ctx, TrainOptions{Geometry: nano, Seq: 4, Batch: 1, Forward: true})
			return err
		},
		"products": func(c *Config, emit func(Row)) error { return c.Products(ctx, []Shape{{2, 4, 4}}, emit) },
		"attention": func(c *Config, emit func(Row)) error {
			return c.Attention(ctx, AttentionOptions{Arch: "diff", Dim: 16, Head: 4, Seq: 4, Tokens: 4}, emit)
		},
		"decode": func(c *Config, emit func(Row)) error {
			return c.Decode(ctx, DecodeOptions{Geometry: nano, Batch: []int{1}, Prompt: 3}, emit)
		},
	} {
		c := quick(t)
		c.Warmup, c.Reps = 1, 1
		below, n := c.Device, 1
		for ; ; n++ {
			d := &unsteady{below, n}
			c.Device = d
			after := 0
			err := run(c, func(Row) {
				if d.left <= 0 {
					after++
				}
			})
			if d.left > 0 {
				break
			}
			if !errors.Is(err, errUnsteady) || after > 0 {
				t.Errorf("%s: wait %d failed: %v, %d rows after it", name, n, err, after)
			}
		}
		if n < 3 {
			t.Errorf("%s waited %d times", name, n-1)
		}
	}
}

// A chunk of a prompt is a step of its own, by default of as many rows as the CPU's engine takes. One prompt is
// computed unless more are asked for.
func TestChunksOfPrompts(t *testing.T) {
	for given, steps := range map[[2]int]float64{{12, 0}: 1, {12, 3}: 4, {12, 6}: 2, {12, 12}: 1, {513, 0}: 2,
		{513, 513}: 1} {
		prompt, chunk := given[0], given[1]
		c := quick(t)
		c.Warmup, c.Reps = 1, 1
		o := DecodeOptions{Geometry: Geometry{Size: "nano", Arch: "transformer", Layers: 1}, Prompt: prompt,
			Chunk: chunk, Ops: true}
		var rows []Row
		if err := c.Decode(context.Background(), o, func(r Row) { rows = append(rows, r) }); err != nil ||
			len(rows) != 1 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		calls := 0.0
		for _, op := range rows[0].Ops {
			if op.Op == "CacheWrite" {
				calls += op.Calls
			}
		}
		if calls != steps || rows[0].Shape["batch"] != 1 {
			t.Errorf("%d tokens in chunks of %d: %g steps of %v prompts, want %g", prompt, chunk, calls,
				rows[0].Shape["batch"], steps)
		}
	}
}

// Steps that give no numbers are an error that says what they gave.
func TestDivergedSteps(t *testing.T) {
	c := quick(t)
	c.Warmup, c.Reps = 1, 4
	r, err := TrainOptions{Geometry: Geometry{Size: "nano", Arch: "diff"}, Seq: 8, Batch: 1}.recipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Optim.LR, r.Optim.Warmup = 1e38, 0
	row := Row{Name: "x", Shape: map[string]any{}}
	err = c.trainFree(context.Background(), &row, r, &c.Product)
	if err == nil || !strings.HasPrefix(err.Error(),
		"bench: x: after 5 steps the loss is NaN and the gradient's norm ") {
		t.Error(err)
	}
	want := "head: heads of 12 (values of 24) do not divide the width of nano, 32"
	if err := (Geometry{Size: "nano", Arch: "diff", Head: 12}).Check(); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
