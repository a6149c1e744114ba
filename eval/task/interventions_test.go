package task

import (
	"math"
	"strings"
	"testing"

	"antiphase/device/ref"
	"antiphase/eval"
	"antiphase/layer"
)

// Every architecture is asked what it has: a Transformer's heads can only be knocked out. What changes nothing has no
// effect, what changes something has one, and the model is the plain one afterwards.
func TestInterventions(t *testing.T) {
	set := map[string]string{"interventions.length": "180", "interventions.needles": "1", "interventions.pieces": "2",
		"interventions.samples": "1",
		"interventions.ways":    "lambda=1,lambda=0,second=shuffled:1,second=averaged,knockout@L1,lambda=2@L9"}
	for arch, r := range inside(t, "interventions", 240, set) {
		d := detail[InterventionsDetail](t, r)
		names := []string{"plain", "knockout@L1"}
		if a, _ := layer.LookupArch(arch); a.Maps == 2 {
			names = []string{"plain", "lambda=1", "lambda=0", "second=shuffled:1", "second=averaged", "knockout@L1"}
		}
		if len(d.Loss) != len(names) || len(d.Bound) != len(names) || len(d.KL) != len(names)-1 {
			t.Fatalf("%s: %+v", arch, d)
		}
		for i, v := range d.Loss {
			if v.Variant != names[i] || d.Bound[i].Variant != names[i] {
				t.Errorf("%s: variant %d is %s, want %s", arch, i, v.Variant, names[i])
			}
			if nothing := i == 0 || v.Variant == "lambda=1"; nothing != (v.Change.Value == 0) {
				t.Errorf("%s: %s changes the loss by %g", arch, v.Variant, v.Change.Value)
			}
			if i > 0 && (v.Variant == "lambda=1") != (d.KL[i-1].Score.Value == 0) || i > 0 &&
				d.KL[i-1].Score.Value < 0 {
				t.Errorf("%s: %s has a divergence of %g", arch, v.Variant, d.KL[i-1].Score.Value)
			}
		}
		if len(d.Heads) != 2 || len(d.Heads[0]) != 4 || d.Heads[1][2] == 0 {
			t.Errorf("%s: by head %v", arch, d.Heads)
		}
	}
}

func TestInterventionsLeaveTheModelPlain(t *testing.T) {
	s := subject(t, ref.New(), "diff2", 320)
	loss := func() float64 { return plainLoss(t, s) }
	before := loss()
	run(t, *lookup(t, "interventions"),
		eval.Options{Shots: -1, Limit: 2,
			Set: map[string]string{"interventions.length": "160", "interventions.needles": "1"}}, modelOf("m", s, 320))
	if after := loss(); after != before {
		t.Errorf("the loss was %g and is %g", before, after)
	}
}

func TestInterventionsRefuse(t *testing.T) {
	for set, want := range map[string]string{"ways=lambda=x": "factor", "ways=nonsense": "want nothing",
		"each=knockout@L1": "every head"} {
		key, value, _ := strings.Cut(set, "=")
		targets := []eval.Target{modelOf("a", subject(t, ref.New(), "diff", 320), 320)}
		_, err := eval.Run(t.Context(), targets, []eval.Task{*lookup(t, "interventions")},
			eval.Options{Shots: -1, Set: map[string]string{"interventions." + key: value}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", set, err)
		}
	}
}

// Against two distributions worked out by hand: P = (3/4, 1/4), Q = (1/2, 1/2).
func TestKL(t *testing.T) {
	want := 0.75*math.Log(1.5) + 0.25*math.Log(0.5)
	p, q := []float32{float32(math.Log(3)), 0, 5, 5}, []float32{1, 1, 2, 2}
	if got := klSum(p, q, 2); !near(got, want, 1e-7) {
		t.Errorf("%g, want %g", got, want)
	}
}
