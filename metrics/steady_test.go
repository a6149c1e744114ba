package metrics

import "testing"

func TestSteady(t *testing.T) {
	var rows []Row
	for i := range 100 {
		r := Row{Step: i + 1, GradNorm: 1}
		switch {
		case i == 2:
			r.GradNorm = 50 // the beginning is not counted
		case i >= 20 && i < 23, i == 40:
			r.Warn = LossSpike
		case i == 60:
			r.GradNorm, r.Warn = 20, GradientSpike|LossSpike
		case i >= 90:
			r.GradNorm = 2 + float64(i-90)/10
		}
		rows = append(rows, r)
	}
	s := Steady(rows)
	if s.Steps != 100 || s.LossSpikes != 3 || s.GradSpikes != 1 || s.Largest != 20 || s.Middle != 1 || s.Late != 2.4 ||
		s.LateNoise < 0.3 || s.LateNoise > 0.4 {
		t.Errorf("%+v", s)
	}
}

// Runs too short for tenths: of n rows with the norms 1 to n, the middle, the last tenth and its noise by hand. Norms
// of zero have no noise.
func TestSteadyOfFewRows(t *testing.T) {
	for n, want := range map[int]Steadiness{
		1: {Middle: 1, Late: 1}, 2: {Middle: 1, Late: 2}, 5: {Middle: 3, Late: 5}, 9: {Middle: 5, Late: 9},
		10: {Middle: 5, Late: 10},
		11: {Middle: 5, Late: 10, LateNoise: 1. / 10}, 20: {Middle: 10, Late: 19, LateNoise: 1. / 19},
		110: {Middle: 55, Late: 105, LateNoise: 8. / 105},
	} {
		var rows, small, zero []Row
		for i := range n {
			rows = append(rows, Row{Step: i + 1, GradNorm: float64(i + 1)})
			small = append(small, Row{Step: i + 1, GradNorm: float64(i+1) / 1024})
			zero = append(zero, Row{Step: i + 1})
		}
		want.Steps, want.Largest = n, float64(n)
		if got := Steady(rows); got != want {
			t.Errorf("%d rows: %+v, want %+v", n, got, want)
		}
		want.Middle, want.Late, want.Largest = want.Middle/1024, want.Late/1024, want.Largest/1024
		if got := Steady(small); got != want {
			t.Errorf("%d rows of small norms: %+v, want %+v", n, got, want)
		}
		if got := Steady(zero); got != (Steadiness{Steps: n}) {
			t.Errorf("%d rows of zeros: %+v", n, got)
		}
	}
}

// Each part of a run by hand: the first tenth is left out of the largest, the middle tenth is rows 45 to 54 of 100, the
// last is 90 to 99; of ten values in order the deciles are the first, the fifth and the last.
func TestSteadyParts(t *testing.T) {
	rows := make([]Row, 100)
	for i := range rows {
		rows[i] = Row{Step: i + 1, GradNorm: 20}
		switch {
		case i < 10:
			rows[i].GradNorm = 90
		case i == 10:
			rows[i].GradNorm = 30
		case i >= 45 && i < 55:
			rows[i].GradNorm = float64(55 - i)
		case i >= 90:
			rows[i].GradNorm = float64(100 - i)
		}
	}
	if got, want := Steady(rows), (Steadiness{Steps: 100, Middle: 5, Late: 5, LateNoise: 9. / 5,
		Largest: 30}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, x := range []struct {
		warn          []Warning
		losses, grads int
	}{
		{[]Warning{LossSpike, LossSpike, 0, LossSpike}, 2, 0},
		{[]Warning{GradientSpike, LossSpike, GradientSpike | LossSpike}, 1, 2},
		{[]Warning{LambdaRange, LambdaRange | LossSpike, LossSpike}, 1, 0},
		{[]Warning{0, LossSpike | GradientSpike}, 1, 1},
	} {
		var list []Row
		for i, w := range x.warn {
			list = append(list, Row{Step: i + 1, Warn: w, GradNorm: 2})
		}
		if got := Steady(list); got.LossSpikes != x.losses || got.GradSpikes != x.grads || got.Middle != 2 ||
			got.Late != 2 || got.LateNoise != 0 || got.Largest != 2 {
			t.Errorf("%v: %+v", x.warn, got)
		}
	}
	long := make([]Row, 300) // of thirty values the third, the fifteenth and the twenty-eighth
	for i := range long {
		long[i] = Row{Step: i + 1, GradNorm: float64(1 + i*7%30)}
	}
	if got := Steady(long); got.Middle != 15 || got.Late != 15 || got.LateNoise != 25./15 {
		t.Errorf("300 rows: %+v", got)
	}
	if got := Steady(nil); got != (Steadiness{}) {
		t.Errorf("no rows: %+v", got)
	}
}
