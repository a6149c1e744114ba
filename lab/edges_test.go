package lab

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"antiphase/device/ref"
	"antiphase/model"
)

// The most likely tokens are those of a sorted list, the smaller id first among equals, whatever their number.
func TestTopIsTheSortedList(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		logits := make([]float32, 1+r.IntN(12))
		sum := 0.0
		for i := range logits {
			logits[i] = float32(r.IntN(4)) // many equals
			if r.IntN(6) == 0 {
				logits[i] = float32(math.Inf(-1))
			}
			sum += math.Exp(float64(logits[i]))
		}
		if sum == 0 {
			continue
		}
		ids := make([]int32, len(logits))
		for i := range ids {
			ids[i] = int32(i)
		}
		slices.SortStableFunc(ids, func(a, b int32) int {
			switch {
			case logits[a] > logits[b]:
				return -1
			case logits[a] < logits[b]:
				return 1
			}
			return 0
		})
		for n := range len(logits) + 3 {
			got := newTopper(n, spell).of(logits)
			if len(got) != min(n, len(logits)) {
				t.Fatalf("%d of %v: %d tokens", n, logits, len(got))
			}
			for i, x := range got {
				want := float64(logits[ids[i]]) - math.Log(sum)
				if x.ID != ids[i] || x.Text != spell(ids[i]) || !(math.Abs(*x.Logprob-want) <= 1e-9) &&
					!(math.IsInf(want, -1) && math.IsInf(*x.Logprob, -1)) {
					t.Fatalf("%v: token %d is %d with %g, want %d with %g", logits, i, x.ID, *x.Logprob, ids[i], want)
				}
			}
		}
	}
}

// Heads come by layer and head however they were asked for; rows and next tokens are each their own.
func TestUnsortedQuery(t *testing.T) {
	m := network(t, ref.New(), "diff2")
	sorted := ask(t, m, Query{IDs: prompt(9), Layers: []int{0, 2}, Heads: []int{1, 3}, Maps: []string{A1, Diff},
		Rows: []int{2, 7}, Next: []int{1, 8}, Top: 3})
	other := ask(t, m, Query{IDs: prompt(9), Layers: []int{2, 0}, Heads: []int{3, 1}, Maps: []string{Diff, A1},
		Rows: []int{7, 2}, Next: []int{8, 1}, Top: 3})
	if len(other.Shown) != 4 || len(other.Next) != 2 {
		t.Fatalf("%d heads, %d next", len(other.Shown), len(other.Next))
	}
	byToken := func(list []Next) map[int][]Token {
		out := map[int][]Token{}
		for _, n := range list {
			out[n.Token] = n.Top
		}
		return out
	}
	if !reflect.DeepEqual(byToken(sorted.Next), byToken(other.Next)) {
		t.Error("next tokens differ with their order")
	}
	for i, want := range sorted.Shown {
		got := other.Shown[i]
		if got.Layer != want.Layer || got.Head != want.Head || !reflect.DeepEqual(got.Maps, want.Maps) ||
			got.Lambda != want.Lambda || !reflect.DeepEqual(got.Lambdas, want.Lambdas) {
			t.Errorf("head %d is %d.%d, want %d.%d, or its maps differ", i, got.Layer, got.Head, want.Layer, want.Head)
		}
		for _, w := range want.Rows {
			at := slices.IndexFunc(got.Rows, func(r Row) bool { return r.Token == w.Token })
			if at < 0 || !reflect.DeepEqual(got.Rows[at], w) || len(w.Maps[A1]) != w.Token+1 {
				t.Errorf("row of token %d differs", w.Token)
			}
		}
	}
}

// Losses are those of a softmax of the logits, each at the token it is the loss of; a single token has none.
func TestLossesByHand(t *testing.T) {
	m := network(t, ref.New(), "diff")
	for _, T := range []int{1, 2, 7} {
		r := ask(t, m, Query{IDs: prompt(T)})
		v := m.Config.Vocab
		logits := make([]float32, T*v)
		if err := m.Logits(&model.Batch{B: 1, T: T, IDs: prompt(T)}, logits); err != nil {
			t.Fatal(err)
		}
		mean := 0.0
		for i, x := range r.Tokens {
			if x.ID != prompt(T)[i] || (x.Logprob == nil) != (i == 0) {
				t.Fatalf("token %d: %+v", i, x)
			}
			if i == 0 {
				continue
			}
			sum := 0.0
			for _, l := range logits[(i-1)*v : i*v] {
				sum += math.Exp(float64(l))
			}
			want := float64(logits[(i-1)*v+int(x.ID)]) - math.Log(sum)
			if !(math.Abs(*x.Logprob-want) <= 1e-5) {
				t.Errorf("token %d of %d has %g, want %g", i, T, *x.Logprob, want)
			}
			mean -= want / float64(T-1)
		}
		if !(math.Abs(r.Loss-mean) <= 1e-5) || len(r.Tokens) != T || r.Arch != "diff" || r.Layers != 3 ||
			r.Heads != 4 || r.Maps != 2 {
			t.Errorf("%d tokens: loss %g, want %g; %+v", T, r.Loss, mean, r.Arch)
		}
	}
}

// Entries are those of every map read, two for a difference, in each head of each layer.
func TestEntries(t *testing.T) {
	for _, c := range []struct {
		maps []string
		want int
	}{{nil, 0}, {[]string{A1}, 1}, {[]string{A1, A2}, 2}, {[]string{Diff}, 2}, {[]string{A1, A2, Diff}, 4}} {
		q := Query{IDs: prompt(10), Layers: []int{0, 1, 2}, Heads: []int{1, 3}, Maps: c.maps, Size: 5}
		if got := q.Cost().Entries; got != c.want*6*100 {
			t.Errorf("%v: %d entries, want %d", c.maps, got, c.want*6*100)
		}
	}
}

// Log-probabilities of large logits do not overflow, whichever is the largest, and sum to one.
func TestTopOfLargeLogits(t *testing.T) {
	for _, logits := range [][]float32{{1000, 998, -1000}, {-1000, 998, 1000}, {-2000, -1000, -1002}} {
		sum := 0.0
		for i, x := range newTopper(3, spell).of(logits) {
			sum += math.Exp(*x.Logprob)
			// −ln(1 + e^−2), and 2 less.
			if want := []float64{-0.126928, -2.126928}; i < 2 && !(math.Abs(*x.Logprob-want[i]) <= 1e-6) {
				t.Errorf("%v: %d has %g, want %g", logits, i, *x.Logprob, want[i])
			}
		}
		if !(math.Abs(sum-1) <= 1e-12) {
			t.Errorf("%v: probabilities sum to %g", logits, sum)
		}
	}
	q := Query{IDs: prompt(300)}
	if err := q.Complete(network(t, ref.New(), "diff").Config); err != nil || q.Size != 256 || len(q.Layers) != 3 ||
		len(q.Heads) != 4 {
		t.Errorf("%+v (%v)", q, err)
	}
}

// Text that is not whole numbers is refused, and so is a model that computes none.
func TestDamagedNumbers(t *testing.T) {
	for _, text := range []string{"AA==", "AACAPwA=", "AACAPwAA"} {
		var f Floats
		if err := f.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read as %v", text, f)
		}
	}
	var none Floats
	if err := none.UnmarshalText(nil); err != nil || len(none) != 0 {
		t.Errorf("nothing: %v, %v", none, err)
	}
	m := network(t, ref.New(), "diff")
	p := m.Params.List[0]
	x := make([]float32, p.Rows*p.Cols)
	for i := range x {
		x[i] = float32(math.NaN())
	}
	m.Params.Set(m.Device(), p, x)
	q := Query{IDs: prompt(4)}
	if err := q.Complete(m.Config); err != nil {
		t.Fatal(err)
	}
	if _, err := Look(context.Background(), m, &q, spell, nil); err == nil ||
		!strings.Contains(err.Error(), "the loss of token 1") {
		t.Errorf("a model of no numbers: %v", err)
	}
}
