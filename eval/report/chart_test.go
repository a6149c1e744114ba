package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"
)

// Error bars are those of their own points and stay inside the frame, whatever points have no value or lie above or below it.
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
			s.line, s.err = append(s.line, [2]float64{float64(i), v}), append(s.err, []float64{0, 0.1, 0.3, 2}[rng.IntN(4)])
		}
		x, y := scale{lo: 0, hi: 6, from: 40, to: chartWidth - 8 - labelRoom([]series{s})}, scale{lo: 0, hi: 1, from: chartHeight - 36, to: 14}
		var want []string
		for i, p := range s.line {
			switch v, e := p[1], s.err[i]; {
			case math.IsNaN(v) || math.IsInf(v, 0): // dropped
			case v > 1:
				want = nil // the line begins after its last point above the frame
			case e > 0:
				low, high := min(max(v-e, 0), 1), min(max(v+e, 0), 1)
				want = append(want, fmt.Sprint([]string{num(x.at(p[0])), num(y.at(low)), num(x.at(p[0])), num(y.at(high))}))
			}
		}
		var got []string
		given := slices.Clone(s.line)
		for _, m := range found.FindAllStringSubmatch(string(lineChart("", "", scale{lo: 0, hi: 6}, scale{lo: 0, hi: 1}, []series{s})), -1) {
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
