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
					all = append(all, Intervention{Lambda: lambda, Second: second, Seed: uint64(len(all)),
						Knockout: knockout, Heads: heads})
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

// Interventions as they are shown: only what they change, and where.
func TestInterventionWords(t *testing.T) {
	half := 0.5
	for _, c := range []struct {
		v    Intervention
		want string
	}{
		{Intervention{}, "nothing"}, {Intervention{Seed: 7}, "nothing"},
		{Intervention{Knockout: true, Heads: []int{2}}, "knockout@H3"},
		{Intervention{Lambda: &half, Layers: []int{0, 2}, Heads: []int{1}}, "lambda=0.5@L1.3@H2"},
		{Intervention{Second: SecondShuffled, Seed: 7, Knockout: true}, "second=shuffled:7+knockout"},
		{Intervention{Second: SecondAveraged, Layers: []int{9}}, "second=averaged@L10"},
	} {
		if got := c.v.String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	for want, v := range map[string]Intervention{
		`intervention: second is "x", must be "shuffled" or "averaged"`: {Second: "x"},
		"intervention: head 4, counted from 0: there are 4":             {Heads: []int{4}},
		"intervention: layer 3, counted from 0: there are 3":            {Layers: []int{3}},
		"intervention: heads of the architecture transformer have one map and no λ; they can only be knocked out": {
			Lambda: &half},
	} {
		a := &diffArch
		if v.Lambda != nil {
			a = &plainArch
		}
		if err := CheckIntervention(v, a, 3, 4); err == nil || err.Error() != want {
			t.Errorf("%v: %v, want %s", v, err, want)
		}
	}
}
