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

// The rows of a tile are as many as fit, and at least one, for any width.
func TestTileRows(t *testing.T) {
	for _, c := range []struct{ T, cols, most, want int }{
		{1, 1, 64, 1}, {9, 9, 64, 9}, {63, 63, 64, 63}, {64, 64, 64, 64}, {65, 65, 64, 64}, {1 << 14, 1 << 14, 64, 64},
		{1<<14 + 1, 1<<14 + 1, 64, 63},
		{1 << 15, 1 << 15, 64, 32}, {1 << 20, 1 << 20, 64, 1}, {1<<20 + 1, 1<<20 + 1, 64, 1}, {1 << 22, 1 << 22, 64, 1},
		{5, 12, 5, 5}, {1 << 18, 12, 1 << 18, (1 << 20) / 12}, {3, 1 << 21, 3, 1}, {1 << 18, 4, 1 << 18, 1 << 18},
	} {
		if got := tileRows(c.T, c.cols, c.most); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// Bits and granularities on both sides of what is allowed, and which of them make rows depend on each other.
func TestLowbitBounds(t *testing.T) {
	for _, x := range []struct {
		q           Lowbit
		good, whole bool
	}{
		{Lowbit{}, true, false}, {Lowbit{Logits: 2, Per: PerRow}, true, false},
		{Lowbit{Logits: 16, Per: PerHead}, true, true}, {Lowbit{Logits: 8, Per: PerTensor}, true, true},
		{Lowbit{Logits: 1, Per: PerRow}, false, false}, {Lowbit{Logits: 17, Per: PerRow}, false, false},
		{Lowbit{Logits: 8}, false, true}, {Lowbit{Keys: 2}, true, false},
		{Lowbit{Values: 16, CachePer: PerRow}, true, false}, {Lowbit{Values: 4, CachePer: PerHead}, true, true},
		{Lowbit{Keys: 4, CachePer: PerTensor}, true, true},
		{Lowbit{Keys: 1}, false, false}, {Lowbit{Values: 17}, false, false}, {Lowbit{CachePer: "page"}, false, false},
		{Lowbit{CachePer: PerHead}, true, false},
		{Lowbit{Logits: 8, Per: "page"}, false, true},
	} {
		if err := x.q.Check(); (err == nil) != x.good || x.q.Whole() != x.whole {
			t.Errorf("%+v: %v, whole %v", x.q, err, x.q.Whole())
		}
	}
}

// Rows that are quantised together share the scale of their granularity and no other, by definition, for every bit
// width.
func TestQuantiseByDefinition(t *testing.T) {
	const rows, heads, head = 3, 2, 4
	for _, per := range append(slices.Clone(granularities), "") {
		for bits := 2; bits <= 16; bits++ {
			x := make([]float64, rows*heads*head)
			for i := range x {
				x[i] = math.Sin(float64(3*i+1)) * float64(1+i%5) * math.Pow(3, float64(i/(heads*head)))
			}
			want := slices.Clone(x)
			for i := range want {
				r, h := i/(heads*head), i%(heads*head)/head
				top := 0.0
				for j, v := range x {
					sameRow, sameHead := j/(heads*head) == r, j%(heads*head)/head == h
					if per == PerTensor || per == PerHead && sameHead || (per == PerRow || per == "") &&
						sameRow && sameHead {
						top = max(top, math.Abs(v))
					}
				}
				s := top / float64(int(1)<<(bits-1)-1)
				want[i] = s * math.RoundToEven(x[i]/s)
			}
			quantiseRows(x, heads*head, head, bits, per)
			for i := range x {
				if !(math.Abs(x[i]-want[i]) <= 1e-12) {
					t.Fatalf("%q, %d bits: entry %d is %g, want %g", per, bits, i, x[i], want[i])
				}
			}
		}
	}
	for _, top := range []float64{0, math.Inf(1), math.NaN()} {
		x := []float64{0, 1, math.Inf(1)}
		if quantise(x, 4, top); x[0] != 0 || x[1] != 1 || !math.IsInf(x[2], 1) {
			t.Errorf("a scale of %g changes %v", top, x)
		}
	}
}

// A part of a parameter, by rows and by columns: what is taken, where it lies, and that memory and file agree on it.
func TestParamParts(t *testing.T) {
	const rows, cols = 6, 10
	whole := make([]float32, rows*cols)
	for i := range whole {
		whole[i] = float32(i + 1)
	}
	for name, x := range map[string]struct {
		byCol bool
		runs  []Run
	}{"whole": {}, "rows": {false, []Run{{2, 4}}}, "runs of rows": {false, []Run{{0, 1}, {3, 5}}},
		"columns": {true, []Run{{5, 10}}}, "runs of columns": {true, []Run{{1, 3}, {6, 9}}}} {
		d := ref.New()
		ps := NewParamSet()
		first := ps.Add(Param{Name: "first", Kind: Matrix, Rows: 3, Cols: 5})
		p := ps.Add(Param{Name: name, Kind: Matrix, Rows: rows, Cols: cols})
		if x.runs != nil {
			p.keep(x.byCol, x.runs...)
		}
		var want []float32
		inside := func(i int) bool {
			return x.runs == nil || slices.ContainsFunc(x.runs, func(r Run) bool { return i >= r.From && i < r.To })
		}
		for i, v := range whole {
			if at := i / cols; x.byCol {
				if inside(i % cols) {
					want = append(want, v)
				}
			} else if inside(at) {
				want = append(want, v)
			}
		}
		if r, c := p.Whole(); r != rows || c != cols || p.Split() != (x.runs != nil) {
			t.Errorf("%s: %d × %d, split %v", name, r, c, p.Split())
		}
		if got := p.Take(whole); !slices.Equal(got, want) || len(got) != p.Rows*p.Cols {
			t.Errorf("%s: takes %v, want %v", name, got, want)
		}
		ps.Alloc(d, Memory{Train: true})
		ps.Set(d, first, make([]float32, 15))
		ps.Set(d, p, want)
		got := make([]float32, len(want))
		if p.Read(d, got); !slices.Equal(got, want) {
			t.Errorf("%s: reads %v, want %v", name, got, want)
		}
		if p.W.Ld%8 != 0 || p.Room()%128 != 0 || p.Span() > p.Room() {
			t.Errorf("%s: rows %d apart, room %d for %d", name, p.W.Ld, p.Room(), p.Span())
		}
		packsEveryRun(t, p, want)
	}
}

// packsEveryRun wants every run of a parameter's flat memory to pack to its part of the values.
func packsEveryRun(t *testing.T, p *Param, want []float32) {
	t.Helper()
	flat := p.Spread(want)
	if len(flat) != p.Span() {
		t.Fatalf("%s: spread to %d, span %d", p.Name, len(flat), p.Span())
	}
	for from := range flat {
		for _, to := range []int{from + 1, min(from+7, len(flat)), len(flat)} {
			lo, hi := p.Packed(from), p.Packed(to)
			out := make([]float32, hi-lo)
			if p.Pack(out, flat[from:to], from); !slices.Equal(out, want[lo:hi]) {
				t.Fatalf("%s: %d to %d packs to %v, want %v", p.Name, from, to, out, want[lo:hi])
			}
		}
	}
	if p.Packed(0) != 0 || p.Packed(len(flat)) != len(want) {
		t.Errorf("%s: packed from %d to %d", p.Name, p.Packed(0), p.Packed(len(flat)))
	}
}

// Each kind of parameter is in the group with its decay and type: matrices decay, embeddings if asked, nothing else
// does; λ's vectors are in full precision. Masters are there where the weights are not exact, or asked for.
func TestGroups(t *testing.T) {
	for _, emb := range []bool{false, true} {
		for _, master := range []bool{false, true} {
			for _, types := range []device.Types{{Act: tensor.F32, Stat: tensor.F32},
				{Act: tensor.BF16, Stat: tensor.F32}} {
				d := ref.NewTypes(types)
				ps := NewParamSet()
				kinds := []Kind{Matrix, Embedding, Gain, Bias, LambdaKind, LambdaMatrix}
				for _, k := range kinds {
					ps.Add(Param{Name: fmt.Sprint("p", k), Kind: k, Rows: 1, Cols: 3})
				}
				ps.Alloc(d, Memory{Train: true, Master: master, DecayEmbeddings: emb})
				for _, k := range kinds {
					p := ps.Lookup(fmt.Sprint("p", k))
					if want := k == Matrix || k == Embedding && emb; p.group.Decay != want {
						t.Errorf("kind %v decays: %v", k, p.group.Decay)
					}
					want := types.Act
					if k == LambdaKind {
						want = types.Stat
					}
					if p.W.Type != want || p.G.Type != types.Stat {
						t.Errorf("kind %v is %v with gradients %v", k, p.W.Type, p.G.Type)
					}
					if has := master || want != types.Stat; p.Master.Ok() != has && k != LambdaKind {
						t.Errorf("kind %v, asked %v, types %v: master %v", k, master, types, p.Master.Ok())
					}
				}
			}
		}
	}
}
