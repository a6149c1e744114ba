package eval

import (
	"html/template"

	"antiphase/layer"
)

// lambdaByLayer draws the learned λ of the sides that have one, with the paper's λ_init for reference.
func lambdaByLayer(sides []Side) template.HTML {
	var list []series
	var shown [][][2]float64
	layers := 0
	for i, s := range sides {
		if len(s.Lambda) == 0 {
			continue
		}
		x := series{name: s.Name, class: sideClass(i), format: "%.2f", dots: true}
		for l, lam := range s.Lambda {
			x.line = append(x.line, [2]float64{float64(l + 1), lam})
		}
		list, shown = append(list, x), append(shown, x.line)
		layers = max(layers, len(s.Lambda))
	}
	if layers == 0 {
		return ""
	}
	x := series{name: "λ_init (paper)", class: "quiet", dashed: true}
	for l := range layers {
		x.line = append(x.line, [2]float64{float64(l + 1), layer.LambdaSchedule(l)})
	}
	list, shown = append(list, x), append(shown, x.line)
	lo, hi := extent(shown...)
	return lineChart("λ by layer", "layer", scale{lo: 1, hi: float64(layers), whole: true}, scale{lo: min(lo, 0), hi: max(hi, 1)}, list)
}
