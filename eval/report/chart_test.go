package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Error bars are those of their own points and stay inside the frame, whatever points have no value or lie above or
// below it.
func TestWhiskers(t *testing.T) {
	found := regexp.MustCompile(`<line class="whisker" x1="([^"]*)" y1="([^"]*)" x2="([^"]*)" y2="([^"]*)"/>`)
	rng := rand.New(rand.NewPCG(3, 4))
	drawn, all := 0, []float64{0.5, 0.5, 0.1, 0.9, -0.2, 1.3, math.NaN(), math.Inf(1)} // those in the frame more often
	for range 300 {
		s := series{name: "a", class: "s0", dots: true}
		for i := range 7 {
			v := all[rng.IntN(len(all))]
			if i == 6 {
				v = 0.5 // a line that ends above the frame is not drawn
			}
			s.line, s.err = append(s.line, [2]float64{float64(i), v}),
				append(s.err, []float64{0, 0.1, 0.3, 2}[rng.IntN(4)])
		}
		x, y := scale{lo: 0, hi: 6, from: 40, to: chartWidth - 8 - labelRoom([]series{s})},
			scale{lo: 0, hi: 1, from: chartHeight - 36, to: 14}
		var want []string
		for i, p := range s.line {
			switch v, e := p[1], s.err[i]; {
			case math.IsNaN(v) || math.IsInf(v, 0): // dropped
			case v > 1:
				want = nil // the line begins after its last point above the frame
			case e > 0:
				low, high := min(max(v-e, 0), 1), min(max(v+e, 0), 1)
				want = append(want, fmt.Sprint([]string{num(x.at(p[0])), num(y.at(low)), num(x.at(p[0])),
					num(y.at(high))}))
			}
		}
		var got []string
		given := slices.Clone(s.line)
		for _, m := range found.FindAllStringSubmatch(string(lineChart("", "", scale{lo: 0, hi: 6}, scale{lo: 0, hi: 1},
			[]series{s})), -1) {
			got = append(got, fmt.Sprint(m[1:]))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("points %v with errors %v have the bars\n%v, want\n%v", given, s.err, got, want)
		}
		drawn += len(got)
	}
	if drawn < 500 {
		t.Errorf("only %d bars", drawn)
	}
}

// A chart by hand: its frame is 40 to 427.6 by 234 to 14, since the longest label takes 6 · 7.4 units. Faint lines and
// bands lie below the lines, a reference is dashed, bare dots have neither line nor label, and labels stand at the
// ends.
func TestLineChart(t *testing.T) {
	list := []series{
		{name: "a", class: "s0", dots: true, format: "%.2f", line: [][2]float64{{0, 0}, {5, 0.5}, {10, 1}},
			faint: [][2]float64{{0, 1}, {10, 0}}, band: [][3]float64{{0, 0.25, 0.5}, {10, 0.5, 2}}},
		{name: "floor", class: "quiet", dashed: true, line: [][2]float64{{0, 0.25}, {10, 0.25}}},
		{name: "c", class: "s1", dots: true, bare: true, line: [][2]float64{{5, 0.75}}},
	}
	svg := string(lineChart("what it shows", "steps", scale{lo: 0, hi: 10}, scale{lo: 0, hi: 1}, list))
	for element, want := range map[string][]string{
		"polyline": {"s0 faint 40,14 427.6,234", "s0 line 40,234 233.8,124 427.6,14", "reference 40,179 427.6,179"},
		"polygon":  {"s0 band 40,124 427.6,14 427.6,124 40,179 "},
		"circle":   {"s0 dot 40 234 2.6", "s0 dot 233.8 124 2.6", "s0 dot 427.6 14 2.6", "s1 dot 233.8 69 2.6"},
	} {
		if got := shapes(svg, element); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", element, got, want)
		}
	}
	for class, want := range map[string][]string{"s0 name": {"a 1.00"}, "quiet name": {"floor"}, "s1 name": nil,
		"axis mid": {"steps"}, "tick end": {"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"},
		"tick mid": {"0", "2", "4", "6", "8", "10"}} {
		if got := labels(svg, class); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", class, got, want)
		}
	}
	if got := slices.Concat(places(svg, "s0 name"), places(svg, "quiet name"),
		places(svg, "axis mid")); !slices.Equal(got, []string{"434.6 18", "434.6 183", "233.8 266"}) {
		t.Errorf("labels at %q", got)
	}
	for _, want := range []string{`viewBox="0 0 480 270"`, `aria-label="what it shows"`,
		"<title>a: 0.5000 at 5</title>", "<title>c: 0.7500 at 5</title>"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in %s", want, svg)
		}
	}
	x, y := around([]series{{line: [][2]float64{{2, 1}, {8, 3}}}, {line: [][2]float64{{4, math.NaN()}, {9, 2}}}})
	if x.lo != 2 || x.hi != 9 || !(math.Abs(y.lo-0.9) <= 1e-12) || !(math.Abs(y.hi-3.1) <= 1e-12) {
		t.Errorf("%+v, %+v", x, y)
	}
}
