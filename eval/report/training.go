package report

import "antiphase/eval"

// Loss during training.
func init() { register(20, trainingSection) }

func trainingSection(p *Page) (section, error) {
	s := section{Title: "While training", Lead: "Points are held-out text, the faint lines the training batches. " +
		"Nats per token; the first steps lie above the frame."}
	var list []series
	var shownPoints [][][2]float64
	last := 0
	for i, t := range p.Training {
		x := series{name: t.Model, class: sideClass(i), format: "%.3f", dots: true}
		for _, c := range t.Curve {
			at := float64(c.Step)
			last = max(last, c.Step)
			if eval.Finite(c.Loss) {
				x.faint = append(x.faint, [2]float64{at, c.Loss})
			}
			if c.Valid != nil {
				x.line = append(x.line, [2]float64{at, *c.Valid})
			}
		}
		x.faint = thin(x.faint, 240)
		if len(x.line) == 0 {
			x.line, x.faint, x.dots = x.faint, nil, false
		}
		list = append(list, x)
	}
	if last == 0 {
		return s, nil
	}
	for _, x := range list {
		shownPoints = append(shownPoints, after(x.faint, float64(last)/10), after(x.line, float64(last)/10))
	}
	lo, hi := extent(shownPoints...)
	s.Figures = append(s.Figures, lineFigure("training", "Loss by training step", "", "training step", "nats per token",
		scale{lo: 0, hi: float64(last), whole: true}, scale{lo: lo, hi: hi}, list))
	return s, nil
}

// after keeps points at or beyond x.
func after(points [][2]float64, x float64) [][2]float64 {
	for len(points) > 0 && points[0][0] < x {
		points = points[1:]
	}
	return points
}

// thin averages adjacent points until at most n are left.
func thin(points [][2]float64, n int) [][2]float64 {
	if len(points) <= n {
		return points
	}
	out := make([][2]float64, n)
	for i := range out {
		part := points[i*len(points)/n : (i+1)*len(points)/n]
		for _, p := range part {
			out[i][0] += p[0] / float64(len(part))
			out[i][1] += p[1] / float64(len(part))
		}
	}
	return out
}
