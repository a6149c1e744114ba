package eval

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
func randomWalks(g *rand.Rand, n, head, middle, tail int) []walk {
	draw := func(n int) []int32 {
		out := make([]int32, n)
		for i := range out {
			out[i] = int32(g.IntN(256))
		}
		return out
	}
	begin := draw(head)
	middles := [][]int32{draw(middle), draw(middle), draw(middle + 1)}
	var out []walk
	for range n {
		ids := slices.Concat(begin, middles[g.IntN(3)], draw(1+g.IntN(tail)))
		out = append(out, walk{ids: ids, from: 1 + g.IntN(len(ids)-1)})
	}
	return out
}

// Every wanted row is shown once, with the logits that the whole sequence alone has.
func TestForest(t *testing.T) {
	onArchs(t, 200, func(t *testing.T, s *Subject) {
		g := rand.New(rand.NewPCG(4, 4))
		for _, c := range [][4]int{{9, 0, 5, 4}, {14, 70, 9, 20}, {1, 40, 3, 5}, {6, 100, 2, 3}} {
			walks := randomWalks(g, c[0], c[1], c[2], c[3])
			seen := map[[2]int]float64{}
			err := s.walk(context.Background(), walks, func(i, at int, logits []float32) (int32, bool) {
				if _, again := seen[[2]int{i, at}]; again {
					t.Errorf("row %d of walk %d was shown twice", at, i)
				}
				seen[[2]int{i, at}], _ = logProb(logits, walks[i].ids[at])
				return 0, false
			})
			if err != nil {
				t.Fatal(err)
			}
			rows := 0
			for i, w := range walks {
				lp := logSoftmax(t, s, w.ids)
				for at := w.from; at < len(w.ids); at++ {
					rows++
					if got, ok := seen[[2]int{i, at}]; !ok || !near(got, lp(at-1, w.ids[at]), 2e-4) {
						t.Fatalf("case %v: walk %d, token %d: %g, want %g", c, i, at, got, lp(at-1, w.ids[at]))
					}
				}
			}
			if rows != len(seen) {
				t.Errorf("%d rows shown, %d wanted", len(seen), rows)
			}
		}
		s.Close()
	})
}

// What sequences share is computed once, also from one call to the next.
func TestForestShares(t *testing.T) {
	dev := &counter{Device: ref.New()}
	s := subject(t, dev, "diff", 400)
	g := rand.New(rand.NewPCG(1, 1))
	ids := make([]int32, 300)
	for i := range ids {
		ids[i] = int32(g.IntN(256))
	}
	ask := func(head, n int) int {
		var walks []walk
		for k := range n {
			w := append(slices.Clone(ids[:head]), int32(k), 7, 8)
			walks = append(walks, walk{ids: w, from: head + 2})
		}
		dev.rows = 0
		if err := s.walk(context.Background(), walks, func(int, int, []float32) (int32, bool) { return 0, false }); err != nil {
			t.Fatal(err)
		}
		return dev.rows
	}
	// Head of 96 whole-page tokens once; then per slot the 4 tokens behind it once, and 2 rows and 1 gathered row for each of 20.
	if got := ask(100, 20); got > 96+3*4+20*3 {
		t.Errorf("20 questions behind 100 tokens took %d rows", got)
	}
	// 288 of 300 tokens are whole pages; at least the first 96 of them are there already, unless the cache had to grow.
	ask(300, 20)
	if got := ask(300, 20); got > 3*12+20*3 {
		t.Errorf("asking again took %d rows", got)
	}
	// All in one slot: nothing but what is new.
	s.Batch = 1
	if got := ask(300, 20); got > 12+20*3 {
		t.Errorf("one slot took %d rows", got)
	}
}

// A vocabulary as large as can be wanted does not make the host hold all logits at once.
func TestForestBoundsLogits(t *testing.T) {
	const vocab = 1 << 20
	c, err := model.Config{Arch: "transformer", Vocab: vocab, Context: 32, Layers: 1, Dim: 2, Heads: 1, HeadDim: 2}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.New(ref.New(), c, layer.Memory{})
	if err != nil {
		t.Fatal(err)
	}
	f := &forest{m: m}
	defer f.free()
	shown := 0
	ids := []int32{1, 2, 3, 4, 5, 6, 7}
	err = f.run(context.Background(), []walk{{ids: ids, from: 1}}, 4, func(_, _ int, logits []float32) (int32, bool) {
		shown++
		return 0, false
	})
	if err != nil || shown != 6 || cap(f.logits) > 2*forestLogits {
		t.Errorf("%d rows shown with room for %d logits, %v", shown, cap(f.logits), err)
	}
}

func TestTrie(t *testing.T) {
	root := newTrie()
	for i, ids := range [][]int32{{1, 2, 3}, {1, 2, 4}, {5}, {5, 6}, {1, 2, 3}} {
		root.add(ids, i)
	}
	logits := make([]float32, 8)
	logits[5], logits[1] = 1, 2
	logits[7] = 9 // not allowed
	id, n := root.step(logits)
	if id != 1 || n.leaves != 2 {
		t.Fatalf("took %d to %d options", id, n.leaves)
	}
	logits[4] = 3
	if _, n = n.step(logits); n.leaves != 2 { // only 2 follows
		t.Fatal("1 is followed by 2 alone")
	}
	if _, n = n.step(logits); n.leaves != 1 || n.option != 1 {
		t.Errorf("took option %d of %d", n.option, n.leaves)
	}
	logits[5] = 9
	if _, n = root.step(logits); n.leaves != 2 {
		t.Errorf("5 has %d options", n.leaves)
	}
	if _, n = n.step(logits); n.option != 3 || n.leaves != 1 {
		t.Errorf("an option inside another: %d of %d", n.option, n.leaves)
	}
}

// Under constraint the model takes, byte by byte, the likeliest that some option allows.
func TestChoose(t *testing.T) {
	onArchs(t, 96, func(t *testing.T, s *Subject) {
		options := []string{" apple", " apricot", " bear", " beard", " x"}
		var reqs []Choice
		for _, p := range []string{"Label:", "Text: some\nLabel:", "Text: other\nLabel:", ""} {
			reqs = append(reqs, Choice{p, options})
		}
		got, err := s.Choose(context.Background(), reqs)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range reqs {
			text, left := r.Prompt, slices.Clone(options)
			for n := 0; len(left) > 1; n++ {
				ids := s.encode(text)
				lp, best, at := logSoftmax(t, s, ids), math.Inf(-1), byte(0)
				for _, o := range left {
					if n < len(o) && lp(len(ids)-1, int32(o[n])) > best {
						best, at = lp(len(ids)-1, int32(o[n])), o[n]
					}
				}
				left = slices.DeleteFunc(left, func(o string) bool { return n >= len(o) || o[n] != at })
				text += string(at)
			}
			if options[got[i]] != left[0] {
				t.Errorf("%q: chose %q, want %q", r.Prompt, options[got[i]], left[0])
			}
		}
	})
}

func TestChooseFromFreeText(t *testing.T) {
	options := []string{" bear", " beard", " ox"}
	for text, want := range map[string]int{" bear": 0, "Beard and more": 1, "ox.": 2, "an ox": -1, "": -1} {
		if got := beginsWith(text, options); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
