package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strconv"
	"strings"

	"antiphase/eval"
)

// svg writes one drawing. Colours come from the page's style sheet by class, so that light and dark modes share one
// drawing. All text is escaped here and nowhere else.
type svg struct {
	b    strings.Builder
	w, h float64
}

// newSVG begins a drawing of w × h units that scales to its container; label is its accessible description.
func newSVG(w, h float64, label string) *svg {
	d := &svg{w: w, h: h}
	fmt.Fprintf(&d.b, `<svg viewBox="0 0 %s %s" role="img" aria-label="%s">`, num(w), num(h), escaped(label))
	return d
}

// done ends the drawing. The result is safe to insert unescaped: only this file wrote it.
func (d *svg) done() template.HTML { return template.HTML(d.b.String() + "</svg>") }

// num writes a coordinate with at most two decimals. A value that is not finite, from a diverged model, is drawn at 0.
func num(x float64) string {
	if !eval.Finite(x) {
		return "0"
	}
	return strconv.FormatFloat(math.Round(100*x)/100, 'f', -1, 64)
}

// rect draws a box with a tooltip, if tip is not empty.
func (d *svg) rect(class string, x, y, w, h float64, tip string) {
	fmt.Fprintf(&d.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"`, class, num(x), num(y), num(w), num(h))
	d.tip("rect", tip)
}

// cell is rect with an opacity: the intensity of a colour on any background.
func (d *svg) cell(class string, x, y, w, h, strength float64, tip string) {
	fmt.Fprintf(&d.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s" fill-opacity="%s"`,
		class, num(x), num(y), num(w), num(h), num(strength))
	d.tip("rect", tip)
}

func (d *svg) circle(class string, x, y, r float64, tip string) {
	fmt.Fprintf(&d.b, `<circle class="%s" cx="%s" cy="%s" r="%s"`, class, num(x), num(y), num(r))
	d.tip("circle", tip)
}

func (d *svg) tip(element, tip string) {
	if tip == "" {
		d.b.WriteString("/>")
		return
	}
	fmt.Fprintf(&d.b, "><title>%s</title></%s>", escaped(tip), element)
}

func (d *svg) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&d.b, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, num(x1), num(y1), num(x2), num(y2))
}

// path joins points; fewer than two draw nothing.
func (d *svg) path(class string, points [][2]float64) {
	if len(points) < 2 {
		return
	}
	fmt.Fprintf(&d.b, `<polyline class="%s" points="`, class)
	for i, p := range points {
		if i > 0 {
			d.b.WriteByte(' ')
		}
		d.b.WriteString(num(p[0]) + "," + num(p[1]))
	}
	d.b.WriteString(`"/>`)
}

// area fills the band between the lowest and the highest values, clipped to the frame.
func (d *svg) area(class string, x, y scale, band [][3]float64) {
	if len(band) < 2 {
		return
	}
	fmt.Fprintf(&d.b, `<polygon class="%s" points="`, class)
	at := func(u, v float64) { d.b.WriteString(num(x.at(u)) + "," + num(y.at(min(max(v, y.lo), y.hi))) + " ") }
	for _, b := range band {
		at(b[0], b[2])
	}
	for i := len(band) - 1; i >= 0; i-- {
		at(band[i][0], band[i][1])
	}
	d.b.WriteString(`"/>`)
}

// text writes a label; class holds the anchor: "end", "mid" or none for the start.
func (d *svg) text(class string, x, y float64, s string) {
	fmt.Fprintf(&d.b, `<text class="%s" x="%s" y="%s">%s</text>`, class, num(x), num(y), escaped(s))
}

// scale maps data to drawing.
type scale struct {
	lo, hi   float64 // data
	from, to float64 // drawing
	log      bool
	tens     bool // a logarithmic scale with ticks at 1, 2 and 5 times powers of ten
	whole    bool // ticks only at integers
}

func (s scale) at(x float64) float64 {
	lo, hi := s.lo, s.hi
	if s.log {
		x, lo, hi = math.Log2(x), math.Log2(lo), math.Log2(hi)
	}
	if hi == lo {
		return (s.from + s.to) / 2
	}
	return s.from + (x-lo)/(hi-lo)*(s.to-s.from)
}

// ticks are about n round values inside the scale; powers of two on a logarithmic one.
func (s scale) ticks(n int) []float64 {
	var out []float64
	if s.tens {
		return s.decimals(n)
	}
	if s.log {
		last := math.Floor(math.Log2(s.hi))
		step := max(1, math.Ceil(last/float64(n)))
		for e := math.Mod(last, step); e <= last; e += step {
			if x := math.Exp2(e); x >= s.lo {
				out = append(out, x)
			}
		}
		return out
	}
	step := roundStep((s.hi - s.lo) / float64(n))
	if s.whole {
		step = max(step, 1)
	}
	for k := math.Ceil(s.lo/step - 1e-9); k*step <= s.hi+1e-9*step; k++ {
		out = append(out, k*step)
	}
	return out
}

// decimals are 1, 2 and 5 times powers of ten; without 2 and 5 if those would be too many.
func (s scale) decimals(n int) []float64 {
	var out []float64
	for _, steps := range [][]float64{{1, 2, 5}, {1}} {
		out = out[:0]
		for e := math.Floor(math.Log10(s.lo)); e <= math.Log10(s.hi); e++ {
			for _, m := range steps {
				if x := m * math.Pow(10, e); x >= s.lo*(1-1e-9) && x <= s.hi*(1+1e-9) {
					out = append(out, x)
				}
			}
		}
		if len(out) <= 2*n {
			break
		}
	}
	return out
}

// roundStep is the next of 1, 2, 5 times a power of ten.
func roundStep(x float64) float64 {
	if !(x > 0) {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 2, 5} {
		if m*p >= x*(1-1e-9) {
			return m * p
		}
	}
	return 10 * p
}

// texts formats the scale's ticks.
func (s scale) texts(ticks []float64) []string {
	if !s.tens {
		return tickText(ticks)
	}
	out := make([]string, len(ticks))
	for i, x := range ticks {
		out[i] = short(x)
	}
	return out
}

// tickText writes ticks with as many decimals as their step needs.
func tickText(ticks []float64) []string {
	decimals := 0
	if len(ticks) > 1 {
		decimals = max(0, -int(math.Floor(math.Log10(ticks[1]-ticks[0])+1e-9)))
	}
	out := make([]string, len(ticks))
	for i, x := range ticks {
		switch {
		case x >= 1e9 && math.Mod(x, 1e8) == 0:
			out[i] = strconv.FormatFloat(x/1e9, 'f', -1, 64) + "B"
		case x >= 1e6 && math.Mod(x, 1e5) == 0:
			out[i] = strconv.FormatFloat(x/1e6, 'f', -1, 64) + "M"
		case x >= 1e4 && math.Mod(x, 1e3) == 0:
			out[i] = strconv.FormatFloat(x/1e3, 'f', -1, 64) + "k"
		default:
			out[i] = show("%."+strconv.Itoa(decimals)+"f", x+0) // x+0 has no sign where x is −0
		}
	}
	return out
}

// escaped is text for a page: a model may write control characters, which HTML does not allow.
func escaped(s string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return '\uFFFD'
		}
		return r
	}, s))
}
