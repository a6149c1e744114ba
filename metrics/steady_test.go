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
	if s.Steps != 100 || s.LossSpikes != 3 || s.GradSpikes != 1 || s.Largest != 20 || s.Middle != 1 || s.Late != 2.4 || s.LateNoise < 0.3 || s.LateNoise > 0.4 {
		t.Errorf("%+v", s)
	}
	for n := range 12 { // any number of rows
		Steady(rows[:n])
	}
}
