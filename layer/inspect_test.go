package layer_test

import (
	"math"
	"sync/atomic"
	"testing"

	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/model/modeltest"
	"antiphase/tensor"
)

// comparing reads every map of a batch in all ways that there are.
type comparing struct {
	t      *testing.T
	layers int
	silent map[[2]int]bool // knocked-out heads, by layer and head
	edited bool            // second maps are not those of their logits
}

func (c *comparing) Hidden(int, tensor.Tensor) {}

// counted is a device that counts what is allocated on it.
type counted struct {
	device.Device
	live int
}

func (d *counted) Alloc(n int) *tensor.Buffer { d.live++; return d.Device.Alloc(n) }
func (d *counted) Free(b *tensor.Buffer)      { d.live--; d.Device.Free(b) }

func (c *comparing) Attention(v layer.View) {
	c.layers++
	r := &reading{comparing: c, v: v, rows: v.RowReader(v.Shape.T), tiles: v.TileReader()}
	defer r.rows.Free()
	defer r.tiles.Free()
	for seq := range v.Shape.B {
		for h := range v.Shape.Heads {
			maps := make([][][]float64, v.Maps) // map, row
			for m := range v.Maps {
				maps[m] = r.byRows(h, m, seq)
				r.byTiles(h, m, seq, maps[m])
				r.logits(h, m, seq, maps[m])
			}
			r.scores(h, seq, maps)
		}
	}
}

// reading is one layer in both readers.
type reading struct {
	*comparing
	v     layer.View
	rows  *layer.RowReader
	tiles *layer.TileReader
}

func (r *reading) near(what string, head, seq, row int, got, want []float64) {
	r.t.Helper()
	for s := range want {
		if !(math.Abs(got[s]-want[s]) <= 1e-6) {
			r.t.Fatalf("%s of layer %d, head %d, sequence %d, row %d: %v, want %v", what, r.v.Layer, head, seq,
				row, got, want)
		}
	}
}

// byRows gives the rows of a map; each sums to one and sees nothing behind it.
func (r *reading) byRows(h, m, seq int) (rows [][]float64) {
	for row := range r.v.Shape.T {
		p := append([]float64(nil), r.rows.Map(h, m, seq, row, false)...)
		sum := 0.0
		for s, x := range p {
			if sum += x; s > row && x != 0 {
				r.t.Fatalf("row %d sees position %d", row, s)
			}
		}
		if !(math.Abs(sum-1) <= 1e-5) {
			r.t.Fatalf("row %d of map %d sums to %g", row, m, sum)
		}
		rows = append(rows, p)
	}
	return rows
}

// byTiles wants the same rows from tiles, each once, also from workers.
func (r *reading) byTiles(h, m, seq int, rows [][]float64) {
	seen, each := make([]int, len(rows)), make([]atomic.Int32, len(rows))
	r.tiles.Map(h, m, seq, false, func(row int, p []float64) {
		seen[row]++
		r.near("tile", h, seq, row, p, rows[row][:row+1])
	})
	r.tiles.Each(h, m, seq, false, func(_, row int, p []float64) {
		each[row].Add(1)
		r.near("tile of a worker", h, seq, row, p, rows[row][:row+1])
	})
	for row := range rows {
		if seen[row] != 1 || each[row].Load() != 1 {
			r.t.Fatalf("row %d comes %d times, from workers %d times", row, seen[row], each[row].Load())
		}
	}
}

// logits wants the same logits in both readers; their softmax is the map.
func (r *reading) logits(h, m, seq int, rows [][]float64) {
	logits := make([][]float64, len(rows))
	r.tiles.Map(h, m, seq, true, func(row int, p []float64) { logits[row] = append(logits[row], p...) })
	for row := range rows {
		r.near("logits", h, seq, row, logits[row],
			append([]float64(nil), r.rows.Map(h, m, seq, row, true)[:row+1]...))
		if m == 1 && r.edited {
			continue
		}
		sum, soft := 0.0, make([]float64, row+1)
		for s, x := range logits[row] {
			soft[s] = math.Exp(x)
			sum += soft[s]
		}
		for s := range soft {
			soft[s] /= sum
		}
		r.near("softmax", h, seq, row, soft, rows[row][:row+1])
	}
}

// scores wants A1 − λ·A2 in both readers, or zeros of a knocked-out head, and one λ.
func (r *reading) scores(h, seq int, maps [][][]float64) {
	T := r.v.Shape.T
	want := func(row int) []float64 {
		out := append([]float64(nil), maps[0][row]...)
		if r.silent[[2]int{r.v.Layer, h}] {
			clear(out)
		} else if r.v.Maps == 2 {
			for s, x := range maps[1][row] {
				out[s] -= r.rows.Lambda(seq*T+row, h) * x
			}
		}
		return out
	}
	for row := range T {
		r.near("scores", h, seq, row, r.rows.Scores(h, seq, row), want(row))
	}
	scored := 0
	r.tiles.Scores(h, seq, func(row int, p []float64, lam float64) {
		scored++
		r.near("scores of a tile", h, seq, row, p, want(row)[:row+1])
		if lam != r.rows.Lambda(seq*T+row, h) || lam != r.tiles.Lambda(seq*T+row, h) {
			r.t.Fatalf("λ of row %d is %g", row, lam)
		}
	})
	if scored != T {
		r.t.Errorf("%d of %d rows have scores", scored, T)
	}
}

// Maps, logits, scores and λ of every sequence of a batch are the same in rows, tiles and by several workers, for every
// architecture.
func TestReadersAgree(t *testing.T) {
	host := cpu.New(cpu.Options{Threads: 2, Precision: cpu.FP32})
	defer host.Close()
	for _, a := range layer.Archs() {
		for _, d := range []*counted{{Device: ref.New()}, {Device: host}} {
			m := modeltest.New(t, d, modeltest.Tiny(a.Name, 20, 16), layer.Memory{}, 5)
			b := &model.Batch{B: 3, T: 9, IDs: make([]int32, 27)}
			for i := range b.IDs {
				b.IDs[i] = int32(i * 7 % 20)
			}
			c := &comparing{t: t}
			if err := m.Look(b, c, nil, nil); err != nil || c.layers != 2 {
				t.Fatalf("%s: %d layers, %v", a.Name, c.layers, err)
			}
			if m.Free(); d.live != 0 {
				t.Errorf("%s: %d allocations are left", a.Name, d.live)
			}
		}
	}
}

// Sequences of several tiles and workers have the same maps in every reader: also the rows after the first tile.
func TestReadersAgreeOnTiles(t *testing.T) {
	for _, arch := range []string{"transformer", "diff2"} {
		c := modeltest.Tiny(arch, 20, 150)
		c.Layers, c.Heads, c.KVHeads = 1, 2, 1
		m := modeltest.New(t, ref.New(), c, layer.Memory{}, 5)
		b := &model.Batch{B: 2, T: 140, IDs: make([]int32, 280)}
		for i := range b.IDs {
			b.IDs[i] = int32(i * i % 20)
		}
		seen := &comparing{t: t}
		if err := m.Look(b, seen, nil, nil); err != nil || seen.layers != 1 {
			t.Fatalf("%s: %d layers, %v", arch, seen.layers, err)
		}
		m.Free()
	}
}

// Readers agree on the maps of heads under any intervention, and the scores of a knocked-out head are zero in each.
func TestReadersAgreeOnEdits(t *testing.T) {
	none, half := 0.0, 0.5
	for _, a := range layer.Archs() {
		m := modeltest.New(t, ref.New(), modeltest.Tiny(a.Name, 20, 16), layer.Memory{}, 5)
		lists := [][]layer.Intervention{{{Knockout: true, Layers: []int{1}, Heads: []int{0}}}, {{Knockout: true}}}
		if a.Maps == 2 {
			for _, second := range []layer.Second{layer.SecondAsIs, layer.SecondShuffled, layer.SecondAveraged} {
				for _, lambda := range []*float64{nil, &none, &half} {
					lists = append(lists, []layer.Intervention{{Second: second, Lambda: lambda, Seed: 3},
						{Knockout: true, Layers: []int{0}, Heads: []int{1}}})
				}
			}
		}
		b := &model.Batch{B: 2, T: 7, IDs: make([]int32, 14)}
		for i := range b.IDs {
			b.IDs[i] = int32(i * 7 % 20)
		}
		for _, list := range lists {
			c := &comparing{t: t, silent: map[[2]int]bool{}, edited: list[0].Second != layer.SecondAsIs}
			last := list[len(list)-1] // of the heads it names, or of all
			for l := range m.Config.Layers {
				for h := range m.Config.Heads {
					c.silent[[2]int{l, h}] = last.Layers == nil || last.Layers[0] == l && last.Heads[0] == h
				}
			}
			if err := m.Intervene(list...); err != nil {
				t.Fatalf("%s: %+v: %v", a.Name, list, err)
			}
			if err := m.Look(b, c, nil, nil); err != nil || c.layers != 2 {
				t.Fatalf("%s: %d layers, %v", a.Name, c.layers, err)
			}
		}
		m.Free()
	}
}

// explaining computes the output of every head from its maps, λ and values.
type explaining struct {
	t      *testing.T
	d      device.Device
	edited bool // second maps are replaced, which the output before the norm does not show
	normed bool // the output has a norm besides
}

// softmax checks that a map's logits are those of its probabilities before interventions.
func (e explaining) softmax(v layer.View, r *layer.RowReader, raw tensor.Tensor, h, m, seq, row int) {
	e.t.Helper()
	v.Rows(raw, h, m, seq, row, false)
	want := make([]float64, raw.Len())
	device.ReadFloats(e.d, want, raw)
	logits, sum := r.Map(h, m, seq, row, true)[:row+1], 0.0
	for _, x := range logits {
		sum += math.Exp(x)
	}
	for i, x := range logits {
		if !(math.Abs(math.Exp(x)/sum-want[i]) <= 1e-6) {
			e.t.Fatalf("layer %d, head %d, map %d, row %d: the logit %g of %g", v.Layer, h, m, row, x, want[i])
		}
	}
}

func (e explaining) Hidden(int, tensor.Tensor) {}

func (e explaining) Attention(v layer.View) {
	read := func(x tensor.Tensor) []float64 {
		out := make([]float64, x.Len())
		device.ReadFloats(e.d, out, x)
		return out
	}
	s := v.Shape
	values, out, context := read(v.V), read(v.Out), read(v.Context)
	r, raw := v.RowReader(s.T), device.Empty(e.d, e.d.Types().Stat, 1, s.T)
	defer r.Free()
	defer e.d.Free(raw.Buf)
	for row := range s.B * s.T {
		seq := row / s.T
		for h := range s.Heads {
			want := make([]float64, s.DV)
			silent := true
			for _, x := range r.Scores(h, seq, row%s.T) {
				silent = silent && x == 0
			}
			for m := 0; m < v.Maps && !silent; m++ {
				e.softmax(v, r, raw, h, m, seq, row%s.T)
				w := 1.0
				if m == 1 {
					w = -r.Lambda(row, h)
				}
				for i, x := range r.Map(h, m, seq, row%s.T, false) {
					for c, y := range values[((seq*s.T+i)*s.Groups+v.Group(h, m))*s.DV:][:s.DV] {
						want[c] += w * x * y
					}
				}
			}
			at := (row*s.Heads + h) * s.DV
			for c, x := range want {
				if !e.normed && !(math.Abs(out[at+c]-x) <= 1e-6) || !silent && !e.edited &&
					!(math.Abs(context[at+c]-x) <= 1e-6) {
					e.t.Fatalf("layer %d, row %d, head %d: output %g, before the norm %g, its maps give %g", v.Layer,
						row, h, out[at+c], context[at+c], x)
				}
			}
		}
	}
}

// The maps, λ and values that a layer shows are those that make its heads' outputs, also under interventions.
func TestMapsExplainOutputs(t *testing.T) {
	half := 0.5
	for _, a := range layer.Archs() {
		c := modeltest.Tiny(a.Name, 20, 16)
		c.HeadNorm, c.Heads, c.KVHeads = layer.HeadNormOff, 4, 2
		normed := c
		normed.HeadNorm = layer.HeadNormAffine
		variants := []model.Config{c, normed}
		if a.Variants {
			across := c
			across.Pairing = layer.PairingAcross
			variants = append(variants, across)
		}
		for _, c := range variants {
			d := ref.New()
			m := modeltest.New(t, d, c, layer.Memory{}, 5)
			lists := [][]layer.Intervention{nil, {{Knockout: true, Layers: []int{1}, Heads: []int{2}}}}
			if a.Maps == 2 {
				lists = append(lists, []layer.Intervention{{Lambda: &half, Heads: []int{0, 3}}},
					[]layer.Intervention{{Second: layer.SecondShuffled, Seed: 3}},
					[]layer.Intervention{{Second: layer.SecondAveraged, Heads: []int{1}},
						{Knockout: true, Heads: []int{3}}})
			}
			for _, list := range lists {
				if err := m.Intervene(list...); err != nil {
					t.Fatal(err)
				}
				b := &model.Batch{B: 2, T: 7, IDs: []int32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}}
				if err := m.Inspect(b, explaining{t, d, len(list) > 0 && list[0].Second != layer.SecondAsIs,
					c.HeadNorm != layer.HeadNormOff}); err != nil {
					t.Fatal(err)
				}
			}
			m.Free()
		}
	}
}
