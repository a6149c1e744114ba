package lab

import (
	"context"
	"math"
	"slices"
	"testing"

	"antiphase/device/ref"
	"antiphase/layer"
	"antiphase/model/modeltest"
)

// Every intervention of a file is one: it changes the loss of the prompt. A second list adds to the outcomes of the
// first, and nothing that fails is stored.
func TestTryAgain(t *testing.T) {
	ctx := context.Background()
	for _, arch := range []string{"transformer", "diff", "diff2"} {
		m := network(t, ref.New(), arch)
		s := Subject{arch, m, prompt(6), spell}
		plain := ask(t, m, Query{IDs: s.IDs}).Loss
		list := Interventions(m.Config, true)
		var f File
		for i, v := range list {
			if err := f.Try(ctx, s, []layer.Intervention{v}); err != nil || len(f.Outcomes) != i+1 {
				t.Fatalf("%s: %d outcomes after %d lists, %v", arch, len(f.Outcomes), i+1, err)
			}
			if got := f.Outcomes[v.String()].Loss; got == plain {
				t.Errorf("%s: %s leaves the loss of %g", arch, v, plain)
			}
			if v.Knockout != (len(v.Heads) == 1) {
				t.Errorf("%s: %s of %d heads", arch, v, len(v.Heads))
			}
		}
		for name, bad := range map[string]Subject{
			"no prompt": {arch, m, nil, spell}, "an unknown token": {arch, m, []int32{1, 40}, spell},
		} {
			if bad.IDs != nil && f.Try(ctx, bad, list[:1]) == nil {
				t.Errorf("%s: %s has outcomes", arch, name)
			}
			if err := f.Add(ctx, bad, 1<<20); err == nil || len(f.Models)+len(f.Looks) != 0 {
				t.Errorf("%s: %s is added (%v)", arch, name, err)
			}
		}
		if err := f.Try(ctx, s, []layer.Intervention{{Layers: []int{3}}}); err == nil || len(f.Outcomes) != len(list) {
			t.Errorf("%s: a layer too many: %v, %d outcomes of %d", arch, err, len(f.Outcomes), len(list))
		}
	}
}

// λ that does not depend on the token is shown to the bit, not as the rounded mean of equal numbers.
func TestLambdaIsExact(t *testing.T) {
	m := network(t, ref.New(), "diff")
	one := ask(t, m, Query{IDs: prompt(1)})
	for _, T := range []int{3, 7, 33, 49} {
		for i, h := range ask(t, m, Query{IDs: prompt(T)}).Shown {
			if h.Lambda != one.Shown[i].Lambda || h.Lambdas != nil || h.Lambda == 0 {
				t.Errorf("%d tokens: λ of %d.%d is %v, alone %v", T, h.Layer, h.Head, h.Lambda, one.Shown[i].Lambda)
			}
		}
	}
}

// λ of the first layer depends on the token alone, where it depends on one: a text that ends with the token it begins
// with has one for each all the same, equal at both ends.
func TestLambdaOfEveryToken(t *testing.T) {
	m := network(t, ref.New(), "diff2")
	for _, ids := range [][]int32{{5, 9, 5}, {5, 9, 9, 5}, {5, 5, 9, 5}, {5, 9}} {
		for _, h := range ask(t, m, Query{IDs: ids, Layers: []int{0}}).Shown {
			if len(h.Lambdas) != len(ids) {
				t.Fatalf("%v: head %d has %d, want %d", ids, h.Head, len(h.Lambdas), len(ids))
			}
			mean := 0.0
			for i, id := range ids {
				mean += float64(h.Lambdas[i]) / float64(len(ids))
				if first := slices.Index(ids, id); h.Lambdas[i] != h.Lambdas[first] {
					t.Errorf("%v: head %d, token %d has %g, token %d %g", ids, h.Head, i, h.Lambdas[i], first,
						h.Lambdas[first])
				}
			}
			if !(math.Abs(h.Lambda-mean) <= 1e-6) {
				t.Errorf("%v: head %d: the mean is %g, want %g", ids, h.Head, h.Lambda, mean)
			}
		}
	}
}

// A look rests after so many entries of maps, two for each of a difference, and after so many logits.
func TestRestsByWork(t *testing.T) {
	c := modeltest.Tiny("diff", 1<<16, 300)
	c.Layers = 1
	m := modeltest.New(t, processor(t), c, layer.Memory{}, 11)
	rests := func(q Query) (n int) {
		if err := q.Complete(m.Config); err != nil {
			t.Fatal(err)
		}
		if _, err := Look(context.Background(), m, &q, spell, func() { n++ }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	ids := prompt(300) // 90,000 entries per map, 360,000 for the four heads; a piece has 262,144
	least := rests(Query{IDs: ids})
	for _, x := range []struct {
		q    Query
		want int
	}{
		{Query{Maps: []string{A2}, Heads: []int{0, 1}}, 0}, {Query{Maps: []string{Diff}, Heads: []int{0, 1}}, 1},
		{Query{Maps: []string{A1, A2, Diff}}, 5}, {Query{Next: upTo(3), Top: 1}, 0}, {Query{Next: upTo(11), Top: 1}, 2},
	} {
		x.q.IDs = ids
		if got := rests(x.q) - least; got != x.want {
			t.Errorf("%v of heads %v, %d next: %d rests, want %d", x.q.Maps, x.q.Heads, len(x.q.Next), got, x.want)
		}
	}
}
