package infer

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"antiphase/device"
	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/model/modeltest"
	"antiphase/tensor"
)

// counter counts the rows that are embedded: those run through the network, and those gathered for their logits.
type counter struct {
	device.Device
	rows int
}

func (c *counter) Embed(x, table, ids tensor.Tensor) {
	c.rows += ids.Cols
	c.Device.Embed(x, table, ids)
}

// randomWalks share a head of tokens, then one of a few middles, and end on their own.
func randomWalks(g *rand.Rand, n, head, middle, tail int) []Walk {
	draw := func(n int) []int32 {
		out := make([]int32, n)
		for i := range out {
			out[i] = int32(g.IntN(50))
		}
		return out
	}
	begin := draw(head)
	middles := [][]int32{draw(middle), draw(middle), draw(middle + 1)}
	var out []Walk
	for range n {
		ids := slices.Concat(begin, middles[g.IntN(3)], draw(1+g.IntN(tail)))
		out = append(out, Walk{IDs: ids, From: 1 + g.IntN(len(ids)-1)})
	}
	return out
}

// Every wanted row is shown once, with the logits that the whole sequence alone has.
func TestShared(t *testing.T) {
	onArchs(t, func(t *testing.T, m *model.Model) {
		m = build(t, m.Device(), modeltest.Tiny(m.Config.Arch, 50, 200))
		s := NewShared(m)
		g := rand.New(rand.NewPCG(4, 4))
		for _, c := range [][4]int{{9, 0, 5, 4}, {14, 70, 9, 20}, {1, 40, 3, 5}, {6, 100, 2, 3}} {
			walks := randomWalks(g, c[0], c[1], c[2], c[3])
			seen := map[[2]int]float64{}
			err := s.Run(context.Background(), walks, 3, func(i, at int, logits []float32) (int32, bool) {
				if _, again := seen[[2]int{i, at}]; again {
					t.Errorf("row %d of walk %d was shown twice", at, i)
				}
				seen[[2]int{i, at}] = logSoftmax(logits, walks[i].IDs[at])
				return 0, false
			})
			if err != nil {
				t.Fatal(err)
			}
			rows := 0
			for i, w := range walks {
				logits := make([]float32, len(w.IDs)*50)
				if err := m.Logits(&model.Batch{B: 1, T: len(w.IDs), IDs: w.IDs}, logits); err != nil {
					t.Fatal(err)
				}
				for at := w.From; at < len(w.IDs); at++ {
					rows++
					want := logSoftmax(logits[(at-1)*50:at*50], w.IDs[at])
					if got, ok := seen[[2]int{i, at}]; !ok || !(math.Abs(got-want) <= 2e-4) {
						t.Fatalf("case %v: walk %d, token %d: %g, want %g", c, i, at, got, want)
					}
				}
			}
			if rows != len(seen) {
				t.Errorf("%d rows shown, %d wanted", len(seen), rows)
			}
		}
		s.Free()
	})
}

// A walk that continues the one before it in its slot has the logits that it has alone: the key of the earlier walk's
// last token, which was never run, is computed.
func TestSharedContinues(t *testing.T) {
	onArchs(t, func(t *testing.T, m *model.Model) {
		m = build(t, m.Device(), modeltest.Tiny(m.Config.Arch, 50, 200))
		g := rand.New(rand.NewPCG(5, 5))
		ids := make([]int32, 40)
		for i := range ids {
			ids[i] = int32(g.IntN(50))
		}
		// Each from beyond the one before.
		walks := []Walk{{IDs: ids[:20], From: 12}, {IDs: ids[:25], From: 22}, {IDs: ids, From: 30}}
		whole := make([]float32, len(ids)*50)
		if err := m.Logits(&model.Batch{B: 1, T: len(ids), IDs: ids}, whole); err != nil {
			t.Fatal(err)
		}
		s := NewShared(m)
		defer s.Free()
		err := s.Run(context.Background(), walks, 1, func(i, at int, logits []float32) (int32, bool) {
			want := logSoftmax(whole[(at-1)*50:at*50], ids[at])
			if got := logSoftmax(logits, ids[at]); !(math.Abs(got-want) <= 2e-4) {
				t.Errorf("walk %d, token %d: %g, want %g", i, at, got, want)
			}
			return 0, false
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// A shared prefix is computed once, also across calls.
func TestSharedShares(t *testing.T) {
	dev := &counter{Device: ref.New()}
	s := NewShared(build(t, dev, modeltest.Tiny("diff", 50, 400)))
	slots := 3
	g := rand.New(rand.NewPCG(1, 1))
	ids := make([]int32, 300)
	for i := range ids {
		ids[i] = int32(g.IntN(50))
	}
	ask := func(head, n int) int {
		var walks []Walk
		for k := range n {
			w := append(slices.Clone(ids[:head]), int32(k), 7, 8)
			walks = append(walks, Walk{IDs: w, From: head + 2})
		}
		dev.rows = 0
		if err := s.Run(context.Background(), walks, slots,
			func(int, int, []float32) (int32, bool) { return 0, false }); err != nil {
			t.Fatal(err)
		}
		return dev.rows
	}
	// Head of 96 whole-page tokens once; then per slot the 4 tokens after it once, and 2 rows and 1 gathered row for
	// each of 20.
	if got := ask(100, 20); got > 96+3*4+20*3 {
		t.Errorf("20 questions behind 100 tokens took %d rows", got)
	}
	// 288 of 300 tokens are whole pages; at least the first 96 of them are there already, unless the cache had to grow.
	ask(300, 20)
	if got := ask(300, 20); got > 3*12+20*3 {
		t.Errorf("asking again took %d rows", got)
	}
	// All in one slot: nothing but what is new.
	slots = 1
	if got := ask(300, 20); got > 12+20*3 {
		t.Errorf("one slot took %d rows", got)
	}
}

// A vocabulary as large as can be wanted does not make the host hold all logits at once.
func TestSharedBoundsLogits(t *testing.T) {
	const vocab = 1 << 20
	c, err := model.Config{Arch: "transformer", Vocab: vocab, Context: 32, Layers: 1, Dim: 2, Heads: 1,
		HeadDim: 2}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.New(ref.New(), c, layer.Memory{})
	if err != nil {
		t.Fatal(err)
	}
	f := NewShared(m)
	defer f.Free()
	var held []int // rows that the host holds when each is shown
	ids := []int32{1, 2, 3, 4, 5, 6, 7}
	err = f.Run(context.Background(), []Walk{{IDs: ids, From: 1}}, 4, func(_, _ int, logits []float32) (int32, bool) {
		held = append(held, len(f.logits)/vocab)
		return 0, false
	})
	if most := sharedLogits / vocab; err != nil || !slices.Equal(held, []int{most, most, most, most, 2, 2}) {
		t.Errorf("rows shown with %v, want at most %d at a time, %v", held, most, err)
	}
}

// logSoftmax is log softmax(row)[id].
func logSoftmax(row []float32, id int32) float64 {
	sum := 0.0
	for _, x := range row {
		sum += math.Exp(float64(x))
	}
	return float64(row[id]) - math.Log(sum)
}
