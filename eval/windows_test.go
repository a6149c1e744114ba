package eval

import (
	"strings"
	"testing"

	"antiphase/device/ref"
	"antiphase/layer"
)

// The losses of a text are its own, whatever stands beside it and in which order, also with one scale per sequence.
func TestLossesOfTextsTogether(t *testing.T) {
	texts := []string{strings.Repeat("long text ", 5), "a", "some text", "", "shorter", "other", "texts"}
	for _, low := range []layer.Lowbit{{}, {Logits: 6, Per: layer.PerTensor}} {
		s := subject(t, ref.New(), "diff", 16)
		if err := s.SetLowbit(low); err != nil {
			t.Fatal(err)
		}
		got, err := s.Losses(t.Context(), texts)
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range texts {
			alone, err := s.Losses(t.Context(), []string{text})
			if err != nil || len(alone[0]) != len(got[i]) {
				t.Fatalf("%q: %d tokens, alone %d, %v", text, len(got[i]), len(alone[0]), err)
			}
			for k, x := range alone[0] {
				if !near(got[i][k].Loss, x.Loss, 1e-6) || got[i][k].ID != x.ID || got[i][k].Position != x.Position {
					t.Errorf("%+v: %q, token %d: %+v, alone %+v", low, text, k, got[i][k], x)
				}
			}
		}
	}
}

// What was kept of a prompt is another model's once an intervention is made, or taken back.
func TestInterventionsForgetPrompts(t *testing.T) {
	ask := func(s *Subject) float64 {
		t.Helper()
		got, err := s.Loglikelihood(t.Context(), []Continuation{{"the same prompt", " answer"}})
		if err != nil {
			t.Fatal(err)
		}
		return got[0].LogProb
	}
	zero := layer.Intervention{Layers: []int{0}, Heads: []int{1}, Knockout: true}
	s, fresh := subject(t, ref.New(), "diff", 64), subject(t, ref.New(), "diff", 64)
	plain := ask(s)
	for _, x := range []*Subject{s, fresh} {
		if err := x.Intervene(zero); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := ask(s), ask(fresh); got != want || got == plain {
		t.Errorf("%g after a prompt was kept, %g otherwise, %g without the intervention", got, want, plain)
	}
	if err := s.Intervene(); err != nil || ask(s) != plain {
		t.Errorf("%g after the intervention, want %g, %v", ask(s), plain, err)
	}
}
