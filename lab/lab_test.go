package lab

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"antiphase/device"
	"antiphase/device/cpu"
	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/model/modeltest"
)

// network is a tiny random model on a device.
func network(t testing.TB, d device.Device, arch string) *model.Model {
	t.Helper()
	c := modeltest.Tiny(arch, 40, 64)
	c.Layers = 3
	return modeltest.New(t, d, c, layer.Memory{}, 11)
}

func processor(t testing.TB) device.Device {
	d := cpu.New(cpu.Options{Threads: 2, Precision: cpu.FP32})
	t.Cleanup(func() { d.Close() })
	return d
}

func prompt(n int) []int32 {
	r := rand.New(rand.NewPCG(5, 6))
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(r.IntN(40))
	}
	return out
}

func spell(id int32) string { return string(rune('a' + id%26)) }

// ask completes and runs a query.
func ask(t testing.TB, m *model.Model, q Query) *Reply {
	t.Helper()
	if err := q.Complete(m.Config); err != nil {
		t.Fatal(err)
	}
	r, err := Look(context.Background(), m, &q, spell, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// mapsOf are all maps that an architecture has.
func mapsOf(arch string) []string {
	if arch == "transformer" {
		return []string{A1}
	}
	return []string{A1, A2, Diff}
}

// TestMapsEqualTheOracle: maps, rows, λ, losses and next tokens on the processor are those of the float64 oracle to
// 1e-5.
func TestMapsEqualTheOracle(t *testing.T) {
	for _, a := range layer.Archs() {
		ids := prompt(33)
		next := []int{32, 0, 15}
		fast := ask(
			t,
			network(t, processor(t), a.Name),
			Query{IDs: ids, Maps: mapsOf(a.Name), Rows: []int{0, 32, 7}, Next: next, Top: 5},
		)
		exact := network(t, ref.New(), a.Name)
		p := &fullMaps{rows: map[string][][]float64{}, lam: map[string][]float64{}}
		logits := map[int][]float64{}
		b := &model.Batch{B: 1, T: 33, IDs: ids}
		if err := exact.Look(b, p, next, func(i int, row []float32) { logits[i] = logSoftmax(row) }); err != nil {
			t.Fatal(err)
		}
		if len(fast.Shown) != 12 || fast.Tile != 1 || fast.Maps != a.Maps || len(fast.Tokens) != 33 {
			t.Fatalf("%s: %d heads, tile %d, %d maps", a.Name, len(fast.Shown), fast.Tile, fast.Maps)
		}
		for _, h := range fast.Shown {
			checkHead(t, a.Name, h, p)
		}
		for i, n := range fast.Next {
			if n.Token != next[i] || len(n.Top) != 5 {
				t.Fatalf("%s: next %+v", a.Name, n)
			}
			for k, top := range n.Top {
				if !(math.Abs(*top.Logprob-logits[n.Token][top.ID]) <= 1e-5) ||
					k > 0 && *top.Logprob > *n.Top[k-1].Logprob {
					t.Errorf(
						"%s: token %d, %d: %v, want %v",
						a.Name,
						n.Token,
						top.ID,
						*top.Logprob,
						logits[n.Token][top.ID],
					)
				}
			}
		}
	}
}

// TestFirstLayerByHand recomputes the maps of the first layer with plain loops over the weights: embedding, norm,
// projection, rotation, softmax. Nothing of layer or device takes part.
func TestFirstLayerByHand(t *testing.T) {
	for _, a := range layer.Archs() {
		arch := a.Name
		m := network(t, processor(t), arch)
		ids := prompt(9)
		r := ask(t, m, Query{IDs: ids, Layers: []int{0}, Maps: mapsOf(arch)})
		for _, h := range r.Shown {
			for k, name := range mapsOf(arch)[:min(2, len(mapsOf(arch)))] {
				if !close32(h.Maps[name], handMap(m, ids, h.Head, k)) {
					t.Errorf("%s: head %d, map %s differs from plain loops", arch, h.Head, name)
				}
			}
			for i, x := range h.Maps[Diff] {
				row := int((math.Sqrt(float64(8*i+1)) - 1) / 2)
				lam := h.Lambda
				if h.Lambdas != nil {
					lam = float64(h.Lambdas[row])
				}
				if want := float64(h.Maps[A1][i]) - lam*float64(h.Maps[A2][i]); !(math.Abs(float64(x)-want) <= 1e-6) {
					t.Fatalf("%s: entry %d of the difference is %v, want %v", arch, i, x, want)
				}
			}
		}
	}
}

// TestTiles: a tile's entry is summed over keys and averaged over queries, so rows keep their sums; exact rows stay
// exact.
func TestTiles(t *testing.T) {
	m := network(t, processor(t), "diff")
	for T := 1; T <= 40; T++ {
		for _, size := range []int{1, 2, 7, 16, 40} {
			fine := ask(t, m, Query{IDs: prompt(T), Layers: []int{1}, Heads: []int{2}, Maps: []string{A1}})
			coarse := ask(
				t,
				m,
				Query{
					IDs:    prompt(T),
					Layers: []int{1},
					Heads:  []int{2},
					Maps:   []string{A1},
					Size:   size,
					Rows:   []int{T - 1},
				},
			)
			k := (T + size - 1) / size
			n := (T + k - 1) / k
			got := coarse.Shown[0].Maps[A1]
			if coarse.Tile != k || len(got) != n*(n+1)/2 || len(coarse.Shown[0].Rows[0].Maps[A1]) != T {
				t.Fatalf("T %d size %d: tile %d, %d entries", T, size, coarse.Tile, len(got))
			}
			at := 0
			for I := range n {
				for J := range I + 1 {
					want, rows := 0.0, 0
					for i := I * k; i < min(T, (I+1)*k); i++ {
						rows++
						for j := J * k; j <= min(i, (J+1)*k-1); j++ {
							want += float64(fine.Shown[0].Maps[A1][i*(i+1)/2+j])
						}
					}
					if !(math.Abs(float64(got[at])-want/float64(rows)) <= 1e-6) {
						t.Fatalf("T %d size %d: tile %d,%d is %v, want %v", T, size, I, J, got[at], want/float64(rows))
					}
					at++
				}
			}
		}
	}
}

// TestNothingChangedIsThePlainOutput: interventions that change nothing, and those of an earlier query, leave no bit
// different.
func TestNothingChangedIsThePlainOutput(t *testing.T) {
	one, half := 1.0, 0.5
	for _, a := range layer.Archs() {
		if a.Maps < 2 {
			continue
		}
		arch := a.Name
		m := network(t, processor(t), arch)
		q := Query{IDs: prompt(20), Maps: mapsOf(arch), Next: []int{19}, Top: 40}
		plain := ask(t, m, q)
		logits := make([]float32, 20*m.Config.Vocab)
		if err := m.Logits(&model.Batch{B: 1, T: 20, IDs: q.IDs}, logits); err != nil {
			t.Fatal(err)
		}
		want := newTopper(40, spell).of(logits[19*m.Config.Vocab:])
		if !reflect.DeepEqual(plain.Next[0].Top, want) {
			t.Errorf("%s: the next token's distribution is not that of Logits", arch)
		}
		q.Interventions = []layer.Intervention{
			{Lambda: &half, Layers: []int{0}},
			{Knockout: true, Layers: []int{1}, Heads: []int{3}},
			{Second: layer.SecondShuffled, Layers: []int{2}},
		}
		changed := ask(t, m, q)
		if changed.Loss == plain.Loss || reflect.DeepEqual(changed.Next, plain.Next) {
			t.Errorf("%s: interventions changed nothing", arch)
		}
		if reflect.DeepEqual(changed.Shown[8].Maps[A2], plain.Shown[8].Maps[A2]) {
			t.Errorf("%s: the shuffled map is shown as it was", arch)
		}
		if got := changed.Shown[0].Lambda / plain.Shown[0].Lambda; !(math.Abs(got-0.5) <= 1e-6) {
			t.Errorf("%s: λ is shown %v times as trained, want 0.5", arch, got)
		}
		for _, list := range [][]layer.Intervention{nil, {{Lambda: &one}}, {{}}} {
			q.Interventions = list
			if again := ask(t, m, q); !reflect.DeepEqual(again, plain) {
				t.Errorf("%s: %v is not the plain output to the bit", arch, list)
			}
		}
	}
}

// TestCostIsWhatIsSent counts the numbers of replies.
func TestCostIsWhatIsSent(t *testing.T) {
	m := network(t, processor(t), "diff2")
	for _, q := range []Query{{}, {Size: 5}, {Maps: []string{A2}, Rows: []int{3, 9}},
		{Maps: []string{A1, A2, Diff}, Rows: []int{0, 16, 4}, Size: 7},
		{Maps: []string{A1, Diff}, Layers: []int{1}, Heads: []int{0, 2}, Next: []int{1, 2}, Top: 3},
		{Next: []int{5}, Top: 2}} {
		q.IDs = prompt(17)
		r := ask(t, m, q)
		count := 0
		for _, h := range r.Shown {
			count += len(h.Lambdas)
			for _, f := range h.Maps {
				count += len(f)
			}
			for _, row := range h.Rows {
				for _, f := range row.Maps {
					count += len(f)
				}
			}
		}
		for _, n := range r.Next {
			count += 2 * len(n.Top)
		}
		if count != r.Cells {
			t.Errorf("%+v: %d numbers, priced at %d", q, count, r.Cells)
		}
	}
}

// TestQueriesThatCannotBe names the field of each.
func TestQueriesThatCannotBe(t *testing.T) {
	half := 0.5
	for _, c := range []struct {
		field, arch string
		q           Query
	}{
		{"prompt", "diff", Query{IDs: []int32{}}},
		{"layers", "diff", Query{Layers: []int{3}}}, {"layers", "diff", Query{Layers: []int{-1}}},
		{"layers", "diff", Query{Layers: []int{0, 0}}},
		{"heads", "diff", Query{Heads: []int{4}}}, {"rows", "diff", Query{Rows: []int{5}}},
		{"next", "diff", Query{Next: []int{5}}}, {"next", "diff", Query{Next: []int{1, 1}}},
		{"maps", "diff", Query{Maps: []string{"a3"}}}, {"maps", "diff", Query{Maps: []string{A1, A1}}},
		{"maps", "transformer", Query{Maps: []string{A2}}}, {"maps", "transformer", Query{Maps: []string{Diff}}},
		{"interventions", "transformer", Query{Interventions: []layer.Intervention{{Lambda: &half}}}},
		{"interventions", "diff", Query{Interventions: []layer.Intervention{{Layers: []int{3}}}}},
		{"interventions", "diff", Query{Interventions: []layer.Intervention{{Heads: []int{1, 1}}}}},
		{"interventions", "diff", Query{Interventions: []layer.Intervention{{Second: "sorted"}}}},
		{"interventions", "diff", Query{Interventions: make([]layer.Intervention, maxInterventions+1)}},
	} {
		if c.q.IDs == nil {
			c.q.IDs = prompt(5)
		}
		m := network(t, ref.New(), c.arch)
		err := c.q.Complete(m.Config)
		if f, ok := err.(*FieldError); !ok || f.Field != c.field {
			t.Errorf("%s: %v", c.field, err)
		}
	}
}

// leaving is a context that ends after it was asked a few times.
type leaving struct {
	context.Context
	asked, after int
}

// Err implements context.Context.
func (c *leaving) Err() error {
	if c.asked++; c.asked > c.after {
		return context.Canceled
	}
	return nil
}

// TestLookEndsWithItsCaller: when the caller has left, no further head is read, and the interventions are undone.
func TestLookEndsWithItsCaller(t *testing.T) {
	m := network(t, processor(t), "diff")
	q := Query{IDs: prompt(20), Maps: mapsOf("diff")}
	plain := ask(t, m, q)
	half := 0.5
	gone := q
	gone.Interventions = []layer.Intervention{{Lambda: &half}}
	if err := gone.Complete(m.Config); err != nil {
		t.Fatal(err)
	}
	ctx := &leaving{Context: context.Background(), after: 2}
	if r, err := Look(ctx, m, &gone, spell, nil); err == nil {
		t.Fatalf("%d heads were read for nobody", len(r.Shown))
	}
	if most := 2 + m.Config.Layers + 2; ctx.asked > most {
		t.Errorf("asked %d times, want at most %d: heads of a layer were read further", ctx.asked, most)
	}
	if again := ask(t, m, q); !reflect.DeepEqual(again, plain) {
		t.Error("the interventions outlived the call")
	}
}
