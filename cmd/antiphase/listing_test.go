package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// Long cells of the last columns continue on further lines; every word stays, in its column.
func TestListing(t *testing.T) {
	rows := [][]string{{"NAME", "MEASURES", ""}, {"é", "a bb ccc", "one two three four"}, {"long", "d", ""}}
	for width, want := range map[int]string{
		100: "NAME  MEASURES\né     a bb ccc  one two three four\nlong  d\n",
		27:  "NAME  MEASURES\né     a bb ccc  one two\n                three four\nlong  d\n",
		1: "NAME  MEASURES\né     a bb ccc  one\n                two\n                three\n" +
			"                four\nlong  d\n",
	} {
		var b bytes.Buffer
		if err := writeListing(&b, width, 2, rows); err != nil || b.String() != want {
			t.Errorf("%d columns (%v):\n%s\nwant\n%s", width, err, b.String(), want)
		}
	}
}

// Listings with descriptions fit 100 columns where there is no terminal, and as many as COLUMNS says.
func TestListingsFit(t *testing.T) {
	for _, args := range []string{"eval ls", "eval presets", "recipes --keys"} {
		for value, most := range map[string]int{"": 100, "x": 100, "140": 140} {
			t.Setenv("COLUMNS", value)
			code, out, errs := ran(t, strings.Fields(args)...)
			if code != 0 {
				t.Fatal(errs)
			}
			for line := range strings.Lines(out) {
				if n := utf8.RuneCountInString(line) - 1; n > most {
					t.Errorf("%s, COLUMNS=%s: %d columns: %s", args, value, n, line)
				}
			}
		}
	}
}
