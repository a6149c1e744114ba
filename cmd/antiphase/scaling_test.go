package main

import (
	"strings"
	"testing"
)

// --at gives a number in any unit and selects the x of the curves; it may repeat --by but not contradict it.
func TestScalingPoint(t *testing.T) {
	for _, c := range []struct {
		at, by string // by is as given, "" for the default
		x      float64
		want   string // the x of the curves
		fault  string
	}{
		{"", "", 0, "parameters", ""},
		{"", "tokens", 0, "tokens", ""},
		{"tokens=160B", "", 160e9, "tokens", ""},
		{"tokens=160b", "tokens", 160e9, "tokens", ""},
		{"tokens=20M", "", 20e6, "tokens", ""},
		{"tokens=1.5k", "", 1500, "tokens", ""},
		{"tokens=2T", "", 2e12, "tokens", ""},
		{"tokens=7", "", 7, "tokens", ""},
		{"parameters=1.4B", "", 1.4e9, "parameters", ""},
		{"parameters=2e9", "parameters", 2e9, "parameters", ""},
		{"parameters=1B", "tokens", 0, "", "contradicts --by tokens"},
		{"tokens=1B", "parameters", 0, "", "contradicts --by parameters"},
		{"tokens", "", 0, "", "is not a point"},
		{"tokens=", "", 0, "", "is not a point"},
		{"steps=5", "", 0, "", "is not a point"},
		{"tokens=B", "", 0, "", "is not a number"},
		{"tokens=-1B", "", 0, "", "is not a number"},
		{"tokens=0", "", 0, "", "is not a number"},
		{"tokens=NaN", "", 0, "", "is not a number"},
		{"tokens=1e300T", "", 0, "", "is not a number"},
	} {
		f := scalingFlags{at: c.at, by: "parameters"}
		if c.by != "" {
			f.by, f.byGiven = c.by, true
		}
		x, err := f.point()
		switch {
		case c.fault != "":
			if err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("--at %q --by %q: error %v, want one with %q", c.at, c.by, err, c.fault)
			}
		case err != nil || x != c.x || f.by != c.want:
			t.Errorf("--at %q --by %q: %g by %s, %v; want %g by %s", c.at, c.by, x, f.by, err, c.x, c.want)
		}
	}
}
