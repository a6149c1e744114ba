package model

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/tensor"
)

// Both sides of every bound of a batch and of its micro-batches.
func TestBatchBounds(t *testing.T) {
	c := configs(t)["diff/base"] // context 16, vocabulary 19
	m := newModel(t, ref.New(), c)
	ints := func(n int, x int32) []int32 { return slices.Repeat([]int32{x}, n) }
	for _, x := range []struct {
		b     Batch
		micro int
		good  bool
	}{
		{Batch{B: 1, T: 16, IDs: ints(16, 18), Targets: ints(16, 18)}, 1, true},
		{Batch{B: 1, T: 17, IDs: ints(17, 0)}, 1, false}, {Batch{B: 1, T: 1, IDs: ints(1, 19)}, 1, false},
		{Batch{B: 1, T: 1, IDs: ints(1, -1)}, 1, false},
		{Batch{B: 1, T: 1, IDs: ints(1, 0), Targets: ints(1, -1)}, 1, true},
		{Batch{B: 1, T: 1, IDs: ints(1, 0), Targets: ints(1, -2)}, 1, false},
		{Batch{B: 1, T: 1, IDs: ints(1, 0), Targets: ints(1, 19)}, 1, false},
		{Batch{B: 1, T: 2, IDs: ints(2, 0), Targets: ints(1, 0)}, 1, false},
		{Batch{B: 1, T: 2, IDs: ints(2, 0), Targets: []int32{}}, 1, false},
		{Batch{B: 1, T: 2, IDs: ints(2, 0), Starts: ints(1, 0)}, 1, false},
		{Batch{B: 1, T: 2, IDs: ints(2, 0), Starts: ints(2, 0)}, 1, true},
		{Batch{B: -1, T: -2, IDs: ints(2, 0)}, 1, false}, {Batch{B: 0, T: 2}, 1, false},
		{Batch{B: 1, T: 2, IDs: ints(1, 0)}, 1, false}, {Batch{B: 1, T: 2, IDs: ints(3, 0)}, 1, false},
		{Batch{B: 2, T: 0}, 1, false},
		{Batch{B: 4, T: 2, IDs: ints(8, 0)}, 2, true}, {Batch{B: 4, T: 2, IDs: ints(8, 0)}, 3, false},
		{Batch{B: 4, T: 2, IDs: ints(8, 0)}, 0, false}, {Batch{B: 4, T: 2, IDs: ints(8, 0)}, -2, false},
		{Batch{B: 4, T: 2, IDs: ints(8, 0)}, 8, false},
	} {
		var f Feed
		if err := m.Put(&f, &x.b, x.micro); (err == nil) != x.good {
			t.Errorf("%+v by %d: %v", x.b, x.micro, err)
		}
		f.Free()
	}
}

// look records each head's mean λ over all rows, layer by layer.
type look struct{ mean [][]float64 }

func (l *look) Hidden(int, tensor.Tensor) {}

func (l *look) Attention(v layer.View) {
	r := v.RowReader(v.Shape.T)
	defer r.Free()
	heads := make([]float64, v.Shape.Heads)
	for h := range heads {
		for row := range v.Shape.B * v.Shape.T {
			heads[h] += r.Lambda(row, h) / float64(v.Shape.B*v.Shape.T)
		}
	}
	l.mean = append(l.mean, heads)
}

// The λ that a model reports are the means over rows and heads of what its heads use, for every architecture, after
// each of several passes, and appended to what is there.
func TestLambdasAreWhatHeadsUse(t *testing.T) {
	for name, c := range configs(t) {
		m := newModel(t, ref.New(), c)
		for _, b := range []*Batch{{B: 2, T: 5, IDs: []int32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
			{B: 1, T: 3, IDs: []int32{11, 12, 13}}} {
			var l look
			if err := m.Look(b, &l, nil, nil); err != nil {
				t.Fatal(err)
			}
			got := m.Lambdas([]float64{42})
			if got[0] != 42 {
				t.Errorf("%s: %v was overwritten", name, got[0])
			}
			if mean, lo, hi := m.LambdaRange(nil); len(mean) > 0 {
				all := slices.Concat(l.mean...)
				if !(math.Abs(lo-slices.Min(all)) <= 1e-6) || !(math.Abs(hi-slices.Max(all)) <= 1e-6) {
					t.Errorf("%s: λ from %g to %g, want %g to %g", name, lo, hi, slices.Min(all), slices.Max(all))
				}
			}
			if a, _ := layer.LookupArch(c.Arch); a.Maps == 1 || c.LambdaForm == layer.LambdaNone { // nothing to report
				if len(got) != 1 {
					t.Errorf("%s: λ %v", name, got)
				}
				continue
			}
			for i, heads := range l.mean {
				want := 0.0
				for _, x := range heads {
					want += x / float64(len(heads))
				}
				if len(got) != 1+len(l.mean) || !(math.Abs(got[1+i]-want) <= 1e-6) {
					t.Errorf("%s: layer %d has λ %v, want %g", name, i, got[1:], want)
				}
			}
		}
		// A step of micro-batches reports those of its last one, here the first sequence of what was looked at.
		last := &Batch{B: 1, T: 5, IDs: []int32{1, 2, 3, 4, 5}}
		if err := m.Look(last, nil, nil, nil); err != nil {
			t.Fatal(err)
		}
		want := m.Lambdas(nil)
		var f Feed
		if err := m.Put(&f, &Batch{B: 2, T: 5, IDs: []int32{6, 7, 8, 9, 10, 1, 2, 3, 4, 5}, Targets: make([]int32, 10)},
			1); err != nil {
			t.Fatal(err)
		}
		m.Gradient(&f, 1, nil)
		if got := m.Lambdas(nil); far(got, want) > 1e-6 {
			t.Errorf("%s: λ %v after micro-batches, want %v", name, got, want)
		}
		f.Free()
		m.Free()
	}
}

// Ranks hold equal parts of what is split and all of the rest; the part's shapes are those of its configuration.
func TestPartCount(t *testing.T) {
	for _, a := range layer.Archs() {
		c, err := Config{Arch: a.Name, Vocab: 24, Context: 16, Layers: 2, Dim: 12, Heads: 4, KVHeads: 4, HeadDim: 4,
			FFN: 20}.Complete()
		if err != nil {
			t.Fatal(err)
		}
		for _, parts := range []int{1, 2, 4} {
			if c.CheckSplit(parts) != nil {
				continue
			}
			want := 0
			for _, p := range newNetwork(nil, c, layer.NewSplit(paper(parts)), nil).Params.List {
				rows, cols := p.Whole()
				if n := rows * cols; p.Split() {
					want += n / parts
				} else {
					want += n
				}
			}
			if got := c.PartCount(parts); got != want || parts == 1 && got != Table(c).Count() || parts > 1 &&
				got >= Table(c).Count() {
				t.Errorf("%s by %d: %d scalars, want %d of %d", a.Name, parts, got, want, Table(c).Count())
			}
			part := c.PartOf(parts)
			if part.Heads != 4/parts || part.KVHeads != 4/parts || part.FFN != 20/parts || part.Dim != 12 ||
				part.Vocab != 24 {
				t.Errorf("%s by %d: %+v", a.Name, parts, part)
			}
		}
	}
	c := configs(t)["diff/base"]
	c.Heads, c.KVHeads, c.FFN, c.Vocab = 4, 4, 20, 24
	for field, change := range map[string]func(c *Config){"heads": func(c *Config) { c.Heads = 3 },
		"kv_heads":                          func(c *Config) { c.KVHeads = 1 },
		"ffn = 21; a multiple such as 22":   func(c *Config) { c.FFN = 21 },
		"vocab = 19; a multiple such as 20": func(c *Config) { c.Vocab = 19 }} {
		x := c
		change(&x)
		if err := x.CheckSplit(2); err == nil || !strings.Contains(err.Error(), field) || x.CheckSplit(1) != nil {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// Adjacent gradients are summed as one, with what lies between them if it is less than a cache line's padding; others
// apart.
func TestJoin(t *testing.T) {
	a, b := &tensor.Buffer{}, &tensor.Buffer{}
	at := func(buf *tensor.Buffer, off, cols int) tensor.Tensor {
		return tensor.Tensor{Buf: buf, Type: tensor.F32, Off: 4 * off, Rows: 1, Cols: cols, Ld: cols}
	}
	for _, c := range []struct {
		list []tensor.Tensor
		want [][2]int // offset, columns
	}{
		{[]tensor.Tensor{at(a, 0, 10), at(a, 10, 5)}, [][2]int{{0, 15}}},
		{[]tensor.Tensor{at(a, 0, 10), at(a, 128, 5)}, [][2]int{{0, 133}}},
		{[]tensor.Tensor{at(a, 0, 10), at(a, 137, 5)}, [][2]int{{0, 142}}},
		{[]tensor.Tensor{at(a, 0, 10), at(a, 138, 5)}, [][2]int{{0, 10}, {138, 5}}},
		{[]tensor.Tensor{at(a, 0, 10), at(b, 10, 5)}, [][2]int{{0, 10}, {10, 5}}},
		{[]tensor.Tensor{at(a, 20, 10), at(a, 0, 5)}, [][2]int{{20, 10}, {0, 5}}},
		{[]tensor.Tensor{at(a, 0, 1), at(a, 1, 1), at(a, 2, 1)}, [][2]int{{0, 3}}},
	} {
		var got []tensor.Tensor
		for _, x := range c.list {
			got = join(got, x)
		}
		var places [][2]int
		for _, x := range got {
			places = append(places, [2]int{x.Off / 4, x.Cols})
		}
		if !slices.Equal(places, c.want) {
			t.Errorf("%v, want %v", places, c.want)
		}
	}
}

// The first failed message is the error of every later step, and nothing is sent after it, whichever fails.
func TestEachMessageFails(t *testing.T) {
	c := configs(t)["diff/base"]
	for fail := 1; fail <= 6; fail++ {
		m := newModel(t, ref.New(), c)
		lost, calls := errors.New("lost"), 0
		m.Lead(func([]int32) error {
			if calls++; calls == fail {
				return lost
			}
			return nil
		})
		cache := m.NewCache(4, 2, 1, 2) // 1
		cache.Assign(0, 0, 1)
		cache.Assign(0, 1, 0)
		cache.Commit() // 2
		var errs []error
		for pos := range int32(4) { // 3 to 6
			errs = append(errs, cache.Run(Rows{IDs: []int32{1}, Slots: []int32{0}, Pos: []int32{pos},
				Want: []int32{0}}))
		}
		for i, err := range errs {
			if want := i+3 >= fail; errors.Is(err, lost) != want {
				t.Errorf("message %d failed: step %d: %v", fail, i, err)
			}
		}
		if calls != fail {
			t.Errorf("message %d failed, %d were sent", fail, calls)
		}
		cache.Free()
		m.Free()
	}
}

// Attention that is computed on the host keeps documents apart as the device does: each has the losses that it has as a
// sequence of its own.
func TestHostAttentionIsolates(t *testing.T) {
	ids := []int32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	targets := []int32{2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	starts := []int32{0, 0, 0, 0, 4, 4, 4, 4, 4, 4}
	for _, name := range []string{"transformer/base", "diff/base", "diff2/grouped", "gda/base"} {
		c := configs(t)[name]
		m := newModel(t, ref.New(), c)
		changes := map[string]func() error{
			"plain":  func() error { return m.Intervene() },
			"lowbit": func() error { return m.SetLowbit(layer.Lowbit{Logits: 6, Per: layer.PerRow}) },
		}
		if a, _ := layer.LookupArch(c.Arch); a.Maps == 2 {
			changes["averaged"] = func() error {
				return errors.Join(m.SetLowbit(layer.Lowbit{}),
					m.Intervene(layer.Intervention{Second: layer.SecondAveraged}))
			}
		}
		for what, change := range changes {
			if err := change(); err != nil {
				t.Fatal(err)
			}
			score := func(from, to int, starts []int32) []float32 {
				t.Helper()
				if err := m.Score(&Batch{B: 1, T: to - from, IDs: ids[from:to], Targets: targets[from:to],
					Starts: starts}); err != nil {
					t.Fatal(err)
				}
				out := make([]float32, to-from)
				m.Losses(out)
				return out
			}
			together, apart := score(0, 10, starts), append(score(0, 4, nil), score(4, 10, nil)...)
			joined := score(0, 10, nil)
			for i := range together {
				if !(math.Abs(float64(together[i]-apart[i])) <= 1e-5) {
					t.Errorf("%s, %s: token %d has the loss %g, alone %g", name, what, i, together[i], apart[i])
				}
			}
			if slices.Equal(joined, together) {
				t.Errorf("%s, %s: isolation changes nothing", name, what)
			}
			if err := errors.Join(m.SetLowbit(layer.Lowbit{}), m.Intervene()); err != nil {
				t.Fatal(err)
			}
		}
		m.Free()
	}
}
