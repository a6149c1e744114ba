package eval

import "html/template"

// lossCurves draws training loss faintly and held-out loss as points. The frame leaves out the first steps, whose fall
// from the initial loss would press everything else flat.
func lossCurves(sides []Side) template.HTML {
	var list []series
	var shown [][][2]float64
	last := 0
	for i, s := range sides {
		x := series{name: s.Name, class: sideClass(i), format: "%.3f", dots: true}
		for _, p := range s.Curve {
			at := float64(p.Step)
			last = max(last, p.Step)
			if finite(p.Loss) {
				x.faint = append(x.faint, [2]float64{at, p.Loss})
			}
			if finite(p.Valid) {
				x.line = append(x.line, [2]float64{at, p.Valid})
			}
		}
		x.faint = thin(x.faint, 240)
		if len(x.line) == 0 {
			x.line, x.faint, x.dots = x.faint, nil, false
		}
		list = append(list, x)
	}
	if last == 0 {
		return ""
	}
	for _, x := range list {
		shown = append(shown, after(x.faint, float64(last)/10), after(x.line, float64(last)/10))
	}
	lo, hi := extent(shown...)
	return lineChart("loss by training step", "training step", scale{lo: 0, hi: float64(last), whole: true}, scale{lo: lo, hi: hi}, list)
}

// after keeps points behind x.
func after(points [][2]float64, x float64) [][2]float64 {
	for len(points) > 0 && points[0][0] < x {
		points = points[1:]
	}
	return points
}

// thin averages neighbours until at most n points are left.
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

// lossByPosition draws the mean loss of all tokens up to each position.
func lossByPosition(sides []Side) template.HTML {
	var list []series
	var shown [][][2]float64
	most := 1
	for i, s := range sides {
		x := series{name: s.Name, class: sideClass(i), format: "%.3f", dots: true}
		for _, p := range s.Loss.ByPosition {
			x.line = append(x.line, [2]float64{float64(p.Position), p.Loss})
			most = max(most, p.Position)
		}
		list, shown = append(list, x), append(shown, x.line)
	}
	if most == 1 {
		return ""
	}
	lo, hi := extent(shown...)
	return lineChart("mean loss up to a position", "tokens of context (log scale)", scale{lo: 1, hi: float64(most), log: true}, scale{lo: lo, hi: hi}, list)
}
