package bench

import (
	"os"
	"path/filepath"
	"testing"
)

// Lengths from a file pass the check of a load and come in turn; what is no length is refused, with its place.
func TestLengthsOfAFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lengths")
	for text, good := range map[string]bool{"1": true, "3 1\n2": true, "0": false, "2 0": false, "-1": false,
		"x": false, "2 x": false, "": false, "1.5": false, "99999999999999999999": false} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := ParseLengths("@" + name)
		if (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
		if err == nil && (l.check("prompt") != nil || l.draw(nil, len(l.list)) != l.list[0]) {
			t.Errorf("%q: %v, then %d", text, l.check("prompt"), l.draw(nil, len(l.list)))
		}
	}
	for text, good := range map[string]bool{"1": true, "1..1": true, "2..9": true, "9..2": false, "0": false,
		"0..3": false, "..3": false, "3..": false, "x": false, "3..x": false, "x..3": false,
		"99999999999999999999": false, "1..99999999999999999999": false} {
		if _, err := ParseLengths(text); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// The table says how often rows were measured, again wherever either number changes.
func TestRepetitionsInWords(t *testing.T) {
	row := func(reps, warmup int) Row { return Row{Reps: reps, Warmup: warmup} }
	for want, rows := range map[string][]Row{
		"5 repetitions after 2 to warm up":                                 {row(5, 2), row(5, 2)},
		"5 repetitions after 2 to warm up, then 6 after 2":                 {row(5, 2), row(6, 2), row(6, 2)},
		"5 repetitions after 2 to warm up, then 5 after 3":                 {row(5, 2), row(5, 3)},
		"1 repetitions after 2 to warm up, then 3 after 4, then 1 after 2": {row(1, 2), row(3, 4), row(1, 2)},
	} {
		if got := repetitions(rows); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
