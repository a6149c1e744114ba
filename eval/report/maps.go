package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"

	"antiphase/eval/task"
)

// One head at work: its maps over a prompt, and the prompt coloured by them.
func init() { register(55, mapsSection) }

func mapsSection(p *Page) (section, error) {
	s := section{Title: "One head at work", Lead: "The head of each model that looks most at the answer. Each row is " +
		"a token or word looking back; colour strength is the square root of the score, the same in all maps. " +
		"Beneath: the prompt, coloured by what the token that must answer takes from each word; the answer is " +
		"underlined."}
	e := p.evaluation()
	titles := titles(e)
	for _, q := range e.Of("maps") {
		models, err := detailsOf[task.MapExample](e, q.Question)
		if err != nil {
			return s, err
		}
		for i := range models {
			m := &models[i]
			x := &m.Detail
			if err := checkMaps(x); err != nil {
				return s, fmt.Errorf("%s: detail of maps: %w", m.Name, err)
			}
			note := fmt.Sprintf("layer %d, head %d", x.Layer, x.Head)
			if x.Lambda != 0 {
				note += show(", λ = %.3f", x.Lambda)
			}
			for k := range x.Maps {
				s.Figures = append(s.Figures, figure{ID: slug(fmt.Sprintf("map-%d %s %s", k, titles[q.Question],
					m.Name)), Title: m.Name + " " + x.Maps[k].Name, Note: note, Class: m.Class,
					SVG: mapChart(x, &x.Maps[k]), rows: mapRows(x, &x.Maps[k])})
			}
			s.Blocks = append(s.Blocks, template.HTML(`<p class="heat"><b class="`+m.Class+` ink">`+
				html.EscapeString(m.Name)+"</b>\n")+promptHeat(x)+"</p>")
		}
	}
	if s.Blocks != nil {
		s.Blocks = append([]template.HTML{`<div class="scale">` + scaleBar() + `</div>`}, s.Blocks...)
	}
	return s, nil
}

// checkMaps finds errors in a file that was edited by hand.
func checkMaps(x *task.MapExample) error {
	n := len(x.Units)
	if len(x.Maps) == 0 || n == 0 || x.Answer[0] < 0 || x.Answer[1] > n || x.Query < 0 || x.Query > n {
		return fmt.Errorf("%d maps of %d units", len(x.Maps), n)
	}
	for _, m := range x.Maps {
		if len(m.Rows) != n {
			return fmt.Errorf("map %s has %d rows for %d units", m.Name, len(m.Rows), n)
		}
		for i, r := range m.Rows {
			if len(r) > n {
				return fmt.Errorf("map %s has %d entries in row %d", m.Name, len(r), i)
			}
		}
	}
	return nil
}

// mapRows are the numbers of a map.
func mapRows(x *task.MapExample, m *task.Matrix) [][]string {
	out := [][]string{{"query", "key", "score"}}
	for i, r := range m.Rows {
		for j, v := range r {
			out = append(out, []string{x.Units[i], x.Units[j], value(v)})
		}
	}
	return out
}

// strength is the intensity of a score's colour: the square root makes scores of one percent visible, and one absolute
// scale makes all maps comparable.
func strength(x float64) float64 { return min(1, math.Sqrt(math.Abs(x))) }

// signClass is the colour of a score: warm above zero, cold below; zero has the page's background.
func signClass(x float64) string {
	if x < 0 {
		return "neg"
	}
	return "pos"
}

// visible is the smallest score that is drawn.
const visible = 5e-4

// mapChart draws one map: queries downwards, keys to the right, the answer's columns and the question's rows named.
func mapChart(x *task.MapExample, m *task.Matrix) template.HTML {
	const side, left, top = 300, 14, 4
	n := len(m.Rows)
	c := float64(side) / float64(max(n, 1))
	d := newSVG(left+side+4, top+side+22, fmt.Sprintf("map %s, layer %d, head %d", m.Name, x.Layer, x.Head))
	fmt.Fprintf(&d.b, `<polygon class="field" points="%d,%d %s,%d %s,%s %s,%d %d,%d"/>`, left, top,
		num(left+c), top, num(left+side), num(top+side-c), num(left+side), top+side, left, top+side)
	for i, row := range m.Rows {
		for j, v := range row {
			if !(math.Abs(v) >= visible) { // NaN is not either
				continue
			}
			tip := unitText(x.Units[i]) + " → " + unitText(x.Units[j]) + show(": %+.3f", v)
			d.cell(signClass(v), left+c*float64(j), top+c*float64(i), c, c, strength(v), tip)
		}
	}
	a, b := left+c*float64(x.Answer[0]), left+c*float64(x.Answer[1])
	d.line("bracket", a, top+side+4, b, top+side+4)
	d.text("answer mid", (a+b)/2, top+side+17, "answer")
	q := top + c*float64(x.Query)
	d.line("bracket quiet", left-4, q, left-4, top+side)
	fmt.Fprintf(&d.b, `<text class="tick mid" transform="translate(%d %s) rotate(-90)">question</text>`, left-7,
		num((q+top+side)/2))
	return d.done()
}

// unitText makes a unit's spaces visible.
func unitText(s string) string {
	return strings.NewReplacer("\n", "⏎", " ", "␣", "\t", "⇥").Replace(s)
}

// promptHeat is the prompt itself, each unit coloured by the last row's score.
func promptHeat(x *task.MapExample) template.HTML {
	rows := x.Maps[len(x.Maps)-1].Rows
	last := rows[len(rows)-1]
	var b strings.Builder
	for j, v := range last {
		class := ""
		if j >= x.Answer[0] && j < x.Answer[1] {
			class = " in"
		}
		text := escaped(strings.ReplaceAll(x.Units[j], "\n", "⏎\n"))
		fmt.Fprintf(&b, `<span class="u %s%s" style="--a:%s%%" title="%s">%s</span>`, signClass(v), class,
			num(100*strength(v)), show("%+.3f", v), text)
	}
	return template.HTML(b.String())
}

// scaleBar is the key of all maps.
func scaleBar() template.HTML {
	const w, cells = 240, 48
	d := newSVG(w+20, 34, "colour scale from −1 to 1")
	for i := range cells {
		v := 2*(float64(i)+0.5)/cells - 1
		d.cell(signClass(v), 10+float64(i)*w/cells, 2, float64(w)/cells, 12, strength(v), "")
	}
	for _, v := range []float64{-1, -0.25, 0, 0.25, 1} {
		d.text("tick mid", 10+(v+1)/2*w, 28, show("%g", v))
	}
	return d.done()
}
