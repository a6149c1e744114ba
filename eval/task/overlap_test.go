package task

import (
	"slices"
	"strings"
	"testing"
)

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
	// Two spans of the text overlap: "a b c d" and "c d e f" both stand in the source, "a b c d e f" does not. All six
	// words do.
	if got := grounded("a b c d e f", "a b c d x c d e f"); got != 1 {
		t.Errorf("overlapping spans: grounded by %g, want 1", got)
	}
}

// shared counts the words of x that y has too, each as often as both have it.
func shared(x, y []string) (n int) {
	rest := slices.Clone(y)
	for _, w := range x {
		if k := slices.Index(rest, w); k >= 0 {
			rest = slices.Delete(rest, k, k+1)
			n++
		}
	}
	return n
}

// subsequence is the length of the longest of all subsequences of x that y has too.
func subsequence(x, y []string) (longest int) {
	for set := range 1 << len(x) {
		var some []string
		for k, w := range x {
			if set>>k&1 == 1 {
				some = append(some, w)
			}
		}
		if inOrder(some, y) {
			longest = max(longest, len(some))
		}
	}
	return longest
}

// inOrder says whether all has the words of some, in their order.
func inOrder(some, all []string) bool {
	for _, w := range all {
		if len(some) > 0 && w == some[0] {
			some = some[1:]
		}
	}
	return len(some) == 0
}

// inSpans counts the words of x that lie in a span of three or more, or in x whole, that y has too.
func inSpans(x, y []string) (n int) {
	covered := make([]bool, len(x))
	for from := range x {
		for to := from + min(3, len(x)); to <= len(x); to++ {
			if strings.Contains(" "+strings.Join(y, " ")+" ", " "+strings.Join(x[from:to], " ")+" ") {
				for k := from; k < to; k++ {
					covered[k] = true
				}
			}
		}
	}
	for _, c := range covered {
		n += int(truth(c))
	}
	return n
}

// Of all texts of up to five words of three, against plain definitions: the longest of all subsequences that both have,
// words counted one by one, and every span of the source.
func TestOverlapByDefinition(t *testing.T) {
	texts := [][]string{{}}
	for i := 0; i < len(texts) && len(texts[i]) < 5; i++ {
		for _, w := range []string{"b", "é", "7"} {
			texts = append(texts, append(slices.Clone(texts[i]), w))
		}
	}
	for i, x := range texts {
		y := texts[(7*i+len(texts)/2)%len(texts)]
		both, common, in := shared(x, y), subsequence(x, y), inSpans(x, y)
		a, b := strings.Join(x, ", "), strings.ToUpper(strings.Join(y, " "))+"."
		f, rouge, ground := 2*float64(both)/float64(max(1, len(x)+len(y))),
			2*float64(common)/float64(max(1, len(x)+len(y))), float64(in)/float64(max(1, len(x)))
		if len(x)+len(y) == 0 {
			f = 1
		}
		if !near(wordF1(a, b), f, 1e-12) || !near(rougeL(a, b), rouge, 1e-12) || !near(grounded(a, b), ground, 1e-12) {
			t.Errorf("%q and %q: F1 %g, ROUGE-L %g, grounded %g; want %g, %g, %g", a, b, wordF1(a, b), rougeL(a, b),
				grounded(a, b), f, rouge, ground)
		}
	}
}
