package layer

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/tensor"
)

// Flat memory holds every element of a parameter once: what is spread and packed again, in pieces of any length, is as
// it was.
func TestSpreadAndPack(t *testing.T) {
	for _, p := range []Param{{Rows: 1, Cols: 5}, {Rows: 3, Cols: 8}, {Rows: 3, Cols: 5}, {Rows: 4, Cols: 9},
		{Rows: 2, Cols: 1}, {Rows: 1, Cols: 130}} {
		x := make([]float32, p.Rows*p.Cols)
		for i := range x {
			x[i] = float32(i + 1)
		}
		flat := p.Spread(x)
		if len(flat) != p.Span() || p.Room() < p.Span() || p.Room()%128 != 0 || p.Room()-p.Span() >= 128 ||
			p.Rows > 1 && p.stride()%8 != 0 {
			t.Fatalf("%d×%d: %d elements, span %d, room %d", p.Rows, p.Cols, len(flat), p.Span(), p.Room())
		}
		own := 0
		for i := range len(flat) + 1 {
			if got := p.Packed(i); got != own {
				t.Fatalf("%d×%d: %d own elements before %d, want %d", p.Rows, p.Cols, got, i, own)
			}
			if i < len(flat) && flat[i] != 0 {
				own++
			}
		}
		for piece := 1; piece <= len(flat); piece++ {
			got := make([]float32, len(x))
			for from := 0; from < len(flat); from += piece {
				to := min(from+piece, len(flat))
				p.Pack(got[p.Packed(from):p.Packed(to)], flat[from:to:to], from)
			}
			if !slices.Equal(got, x) {
				t.Fatalf("%d×%d in pieces of %d: %v", p.Rows, p.Cols, piece, got)
			}
		}
	}
}

// Parts of a parameter that ranks keep, by rows and by columns, in several runs, are together the whole.
func TestTake(t *testing.T) {
	const rows, cols = 6, 4
	whole := make([]float32, rows*cols)
	for i := range whole {
		whole[i] = float32(i)
	}
	for _, byCol := range []bool{false, true} {
		p := Param{Rows: rows, Cols: cols, Kind: Matrix}
		if p.Split() || !slices.Equal(p.Take(whole), whole) {
			t.Error("a parameter that is not split gives other values")
		}
		p.keep(byCol, Run{0, 1}, Run{2, 4})
		r, c := p.Whole()
		var want []float32
		for i := range rows {
			for j := range cols {
				if k := map[bool]int{false: i, true: j}[byCol]; k == 0 || k == 2 || k == 3 {
					want = append(want, whole[i*cols+j])
				}
			}
		}
		if got := p.Take(whole); !slices.Equal(got, want) || r != rows || c != cols ||
			len(want) != p.Rows*p.Cols || !p.Split() {
			t.Errorf("by columns %v: %d×%d %v, want %v", byCol, p.Rows, p.Cols, got, want)
		}
		if got := p.Shape(); !slices.Equal(got, []int{rows, cols}) {
			t.Errorf("shape %v", got)
		}
	}
}

// oneOfEachKind is a set with a parameter of every kind that memory distinguishes.
func oneOfEachKind(t *testing.T) *ParamSet {
	t.Helper()
	ps := NewParamSet()
	ps.Under("a", func() {
		ps.Add(Param{Name: "m", Kind: Matrix, Rows: 3, Cols: 5, Std: 1})
		ps.Under("b", func() { ps.Add(Param{Name: "e", Kind: Embedding, Rows: 4, Cols: 5, Std: 0.5}) })
	})
	ps.Add(Param{Name: "g", Kind: Gain, Rows: 1, Cols: 5, Const: 1})
	ps.Add(Param{Name: "l", Kind: LambdaKind, Rows: 1, Cols: 3, Std: 0.1})
	ps.Add(Param{Name: "k", Kind: LambdaMatrix, Rows: 2, Cols: 3, Std: 0.1})
	if ps.Count() != 15+20+5+3+6 || ps.Lookup("a.b.e") == nil || ps.Lookup("a.m") == nil ||
		ps.Lookup("g") == nil || ps.Lookup("e") != nil {
		t.Fatalf("%d scalars", ps.Count())
	}
	return ps
}

// Which parameters decay, which have masters, and what each device keeps of a value: with masters all of it.
func TestParamMemory(t *testing.T) {
	for _, d := range []*counting{{Device: ref.New()},
		{Device: ref.NewTypes(device.Types{Act: tensor.F32, Stat: tensor.F32})},
		{Device: ref.NewTypes(device.Types{Act: tensor.BF16, Stat: tensor.F32})}} {
		for _, m := range []Memory{{}, {Train: true}, {Train: true, Master: true},
			{Train: true, DecayEmbeddings: true, Multiple: 384}} {
			ps := oneOfEachKind(t)
			ps.Alloc(d, m)
			for _, g := range ps.Groups {
				groupMemory(t, d, m, g)
				for _, p := range g.Params {
					if want := p.Name == "a.m" || p.Name == "a.b.e" && m.DecayEmbeddings; g.Decay != want {
						t.Errorf("%s decays: %v", p.Name, g.Decay)
					}
					valueMemory(t, d, m, ps, p)
				}
			}
			if m.Train && m.Master {
				roundedMemory(t, d, ps)
			}
			if ps.Free(d); len(ps.Groups) != 0 || d.live != 0 {
				t.Errorf("%+v: %d allocations are left", m, d.live)
			}
		}
	}
}

// groupMemory wants a group's room to be the least that is allowed, and its masters in halves where they can be.
func groupMemory(t *testing.T, d device.Device, m Memory, g *Group) {
	t.Helper()
	room := 0
	for _, p := range g.Params {
		room += p.Room()
	}
	if n := max(m.Multiple, 1); g.W.Cols%n != 0 || g.W.Cols < room || g.W.Cols-room >= n {
		t.Errorf("a group of %d for %d, want the least multiple of %d", g.W.Cols, room, n)
	}
	if half := g.W.Type == tensor.BF16 && d.Types().Stat == tensor.F32; g.Master.Ok() &&
		(g.Master.Type == tensor.I16) != half {
		t.Errorf("masters of %s are %s", g.W.Type, g.Master.Type)
	}
}

// valueMemory wants a gradient and a master where they belong, and a value read as it was set where there is room.
func valueMemory(t *testing.T, d device.Device, m Memory, ps *ParamSet, p *Param) {
	t.Helper()
	if p.G.Ok() != m.Train || m.Train && p.G.Type != d.Types().Stat {
		t.Errorf("%+v: gradient of %s", m, p.Name)
	}
	if want := m.Train && p.W.Type != d.Types().Stat || m.Train && m.Master &&
		p.Kind != LambdaKind; p.Master.Ok() != want {
		t.Errorf("%+v: %s has a master: %v", m, p.Name, !want)
	}
	x, y := make([]float32, p.Rows*p.Cols), make([]float32, p.Rows*p.Cols)
	for i := range x {
		x[i] = 1 + float32(i+1)/4096 // more bits than bf16 has
	}
	ps.Set(d, p, x)
	p.Read(d, y)
	exact := p.Master.Ok() || p.W.Type != tensor.BF16
	if slices.Equal(x, y) != exact {
		t.Errorf("%+v: %s is read exactly: %v", m, p.Name, !exact)
	}
}

// roundedMemory wants weights rounded to bf16, those of λ excepted, and masters as they were.
func roundedMemory(t *testing.T, d device.Device, ps *ParamSet) {
	t.Helper()
	ps.Round(d)
	for _, p := range ps.List {
		w, y := make([]float32, p.Rows*p.Cols), make([]float32, p.Rows*p.Cols)
		device.ReadFloats(d, w, p.W)
		p.Read(d, y)
		rounded := math.Float32bits(w[0])<<16 == 0
		if rounded != (p.Kind != LambdaKind) || y[0] != 1+1./4096 {
			t.Errorf("%s is rounded: %v, its master %g", p.Name, rounded, y[0])
		}
	}
}

// counting is a device that counts what is allocated on it.
type counting struct {
	device.Device
	live int
}

func (d *counting) Alloc(n int) *tensor.Buffer { d.live++; return d.Device.Alloc(n) }
func (d *counting) Free(b *tensor.Buffer)      { d.live--; d.Device.Free(b) }

// What a fresh pass adds into is cleared, what it overwrites is left.
func TestZeroSums(t *testing.T) {
	d := ref.New()
	for mask := range 8 {
		ps := NewParamSet()
		for i := range 3 {
			p := ps.Add(Param{Name: fmt.Sprint(i), Kind: Matrix, Rows: 2, Cols: 3})
			p.product = mask>>i&1 == 1
		}
		ps.Add(Param{Name: "e", Kind: Embedding, Rows: 2, Cols: 3}).product = true
		ps.Alloc(d, Memory{Train: true, DecayEmbeddings: mask&1 == 1})
		for _, p := range ps.List {
			device.WriteFloats(d, p.G, []float64{1, 2, 3, 4, 5, 6})
		}
		ps.ZeroSums(d)
		for _, p := range ps.List {
			left := p.product && p.Kind == Matrix
			if got := readAll(d, p.G); got[0] != 0 != left || got[5] != 0 != left {
				t.Errorf("%03b: %s has %v", mask, p.Name, got)
			}
		}
		ps.ZeroGrad(d)
		for _, p := range ps.List {
			if got := readAll(d, p.G); got[0] != 0 || got[5] != 0 {
				t.Errorf("%s has %v", p.Name, got)
			}
		}
		ps.Free(d)
	}
}

// Files state vectors with one dimension and everything else with two, whatever their sizes and ranks.
func TestShapes(t *testing.T) {
	for kind, vector := range map[Kind]bool{Matrix: false, Embedding: false, Gain: true, Bias: true, LambdaKind: true,
		LambdaMatrix: false} {
		p := Param{Kind: kind, Rows: 1, Cols: 6}
		want := []int{1, 6}
		if vector {
			want = []int{6}
		}
		if got := p.Shape(); !slices.Equal(got, want) {
			t.Errorf("kind %d: shape %v, want %v", kind, got, want)
		}
		if p.keep(true, Run{2, 4}); !slices.Equal(p.Shape(), want) {
			t.Errorf("kind %d: shape %v of a part, want %v", kind, p.Shape(), want)
		}
	}
}

// Values that masters elsewhere must know reach them, and the weights are what the optimiser's first update expects.
func TestMastersElsewhere(t *testing.T) {
	for _, d := range []device.Device{ref.New(), ref.NewTypes(device.Types{Act: tensor.F32, Stat: tensor.F32}),
		ref.NewTypes(device.Types{Act: tensor.BF16, Stat: tensor.F32})} {
		ps := NewParamSet()
		p := ps.Add(Param{Name: "m", Kind: Matrix, Rows: 2, Cols: 3})
		ps.Alloc(d, Memory{Train: true, Master: true, Elsewhere: true})
		x := []float32{1 + 1./4096, 2, 3, 4, 5 + 1./64, 6} // one in the middle between two numbers of bf16
		ps.Set(d, p, x)                                    // nobody listens yet
		var kept []float32
		ps.Keep(func(q *Param, x []float32) {
			if q == p {
				kept = append(kept, x...)
			}
		})
		ps.Set(d, p, x)
		ps.Round(d)
		w := make([]float32, 6)
		device.ReadFloats(d, w, p.W)
		middle := float32(5) // the even one; the upper half of a split number is the one further from zero
		if d.Types().Act == tensor.BF16 {
			middle = 5 + 1./32
		}
		if !slices.Equal(kept, x) || p.Master.Ok() || w[0] != 1 || w[1] != 2 || w[4] != middle || w[5] != 6 {
			t.Errorf("kept %v, weights %v, master %v", kept, w, p.Master.Ok())
		}
		ps.Free(d)
	}
}
