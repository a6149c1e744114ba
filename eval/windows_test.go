package eval

import (
	"strings"
	"testing"

	"antiphase/device/ref"
)

// The losses of a text are its own, whatever stands beside it and in which order.
func TestLossesOfTextsTogether(t *testing.T) {
	s := subject(t, ref.New(), "diff", 16)
	texts := []string{strings.Repeat("long text ", 5), "a", "some text", "", "shorter"}
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
				t.Errorf("%q, token %d: %+v, alone %+v", text, k, got[i][k], x)
			}
		}
	}
}
