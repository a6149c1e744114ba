package task

import "testing"

// Worked by hand.
func TestOverlap(t *testing.T) {
	if got := normalText("The U.S.  of A, an Apple!"); got != "us of apple" {
		t.Errorf("normal text %q", got)
	}
	for _, c := range []struct {
		a, b string
		want float64
	}{
		{"the cat sat", "a cat sat down", 2 * 2.0 / 5}, // cat sat / cat sat down
		{"cat cat cat", "cat", 2 * 1.0 / 4},            // each word as often as in both
		{"dog", "cat", 0}, {"", "", 1}, {"x", "", 0}, {"Yes.", "yes", 1},
	} {
		if got := wordF1(c.a, c.b); !near(got, c.want, 1e-12) {
			t.Errorf("F1 of %q and %q: %g, want %g", c.a, c.b, got, c.want)
		}
	}
	for _, c := range []struct {
		a, b string
		want float64
	}{
		{"police killed the gunman", "police kill the gunman", 2 * 3.0 / 8},
		{"the gunman kill police", "police kill the gunman", 2 * 2.0 / 8},
		{"a b c d e", "a x c y e z", 2 * 3.0 / 11},
		{"", "a", 0}, {"same words", "Same, words!", 1},
	} {
		if got := rougeL(c.a, c.b); !near(got, c.want, 1e-12) {
			t.Errorf("ROUGE-L of %q and %q: %g, want %g", c.a, c.b, got, c.want)
		}
		if x, y := rougeL(c.a, c.b), rougeL(c.b, c.a); x != y {
			t.Errorf("ROUGE-L of %q and %q: %g and %g", c.a, c.b, x, y)
		}
	}
	const source = "Anna went to the old mill by the river. Tom stayed at home."
	for text, want := range map[string]float64{
		"the old mill by the sea":         5.0 / 6, // "the old mill by the"
		"Tom stayed at home":              1,
		"home at stayed Tom":              0,
		"mill":                            1, // short ones must be there whole
		"mill house":                      0,
		"":                                0,
		"Anna went to sea, Tom stayed at": 6.0 / 7,
		"went to the old went to the old": 1,
		"to the old mill the old mill by": 1, // spans that overlap in the source
	} {
		if got := grounded(text, source); !near(got, want, 1e-12) {
			t.Errorf("%q is grounded by %g, want %g", text, got, want)
		}
	}
	// Two spans of the text overlap: "a b c d" and "c d e f" both stand in the source, "a b c d e f" does not. All six words do.
	if got := grounded("a b c d e f", "a b c d x c d e f"); got != 1 {
		t.Errorf("overlapping spans: grounded by %g, want 1", got)
	}
}
