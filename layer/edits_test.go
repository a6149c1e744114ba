package layer

import "testing"

// Of any two interventions on a head: factors of λ multiply, the last second map counts, a knockout stays, and other
// heads are as they were.
func TestEditsCombine(t *testing.T) {
	half, zero, two := 0.5, 0.0, 2.0
	var all []Intervention
	for _, lambda := range []*float64{nil, &half, &zero, &two} {
		for _, second := range []Second{SecondAsIs, SecondShuffled, SecondAveraged} {
			for _, knockout := range []bool{false, true} {
				for _, heads := range [][]int{nil, {1}} {
					all = append(all, Intervention{Lambda: lambda, Second: second, Seed: uint64(len(all)), Knockout: knockout, Heads: heads})
				}
			}
		}
	}
	for _, a := range all {
		for _, b := range all {
			got := edits{{lambda: 1}, {lambda: 1}}
			got.apply(a)
			got.apply(b)
			for h := range got {
				want := edit{lambda: 1}
				for _, v := range []Intervention{a, b} {
					if v.Heads != nil && h != 1 {
						continue
					}
					if v.Lambda != nil {
						want.lambda *= *v.Lambda
					}
					if v.Second != SecondAsIs {
						want.second, want.seed = v.Second, v.Seed
					}
					if v.Knockout {
						want.knockout = true
					}
				}
				if got[h] != want {
					t.Fatalf("%v then %v, head %d: %+v, want %+v", a, b, h, got[h], want)
				}
			}
		}
	}
}
