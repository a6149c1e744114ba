package eval

import (
	"strings"
	"unicode/utf8"
)

var marks = map[verdict]string{unmarked: "", best: "▸", tied: "≈"}

// Table renders the comparison as aligned text: a row per metric, a column per side, the better value marked.
func (r *Report) Table(color bool) string {
	rows := r.rows()
	name, width := 0, make([]int, len(r.Sides))
	for i, s := range r.Sides {
		width[i] = utf8.RuneCountInString(s.Name)
	}
	for _, x := range rows {
		name = max(name, utf8.RuneCountInString(x.label()))
		for i, c := range x.cells {
			width[i] = max(width[i], utf8.RuneCountInString(c.marked()))
		}
	}
	var b strings.Builder
	line := strings.Repeat(" ", name)
	rule := strings.Repeat("─", name)
	for i, s := range r.Sides {
		line += "   " + pad(s.Name, width[i])
		rule += strings.Repeat("─", width[i]+3)
	}
	b.WriteString(paint(color, "1", line) + "\n" + rule + "\n")
	for _, x := range rows {
		b.WriteString(x.line(name, width, color) + "\n")
	}
	b.WriteString(rule + "\n" + legend + "\n")
	return b.String()
}

const legend = "▸ better, ≈ the same within twice the combined standard error, ± one standard error"

func (x *row) label() string {
	if x.minor {
		return "  " + x.name
	}
	return x.name
}

func (c *cell) show() string {
	if c.text == "" {
		return "–"
	}
	return c.text
}

// marked is the value behind its mark.
func (c *cell) marked() string { return strings.TrimSpace(marks[c.verdict] + " " + c.show()) }

func (x *row) line(name int, width []int, color bool) string {
	style := ""
	if x.minor {
		style = "2"
	}
	label := x.label()
	out := paint(color, style, label) + strings.Repeat(" ", name-utf8.RuneCountInString(label))
	for i, c := range x.cells {
		s := style
		if c.verdict == best {
			s = "1;32"
		}
		text := c.marked()
		out += strings.Repeat(" ", 3+width[i]-utf8.RuneCountInString(text)) + paint(color, s, text)
	}
	return strings.TrimRight(out, " ")
}

// pad aligns to the right.
func pad(s string, width int) string {
	return strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s))) + s
}

// paint wraps text in a terminal style.
func paint(color bool, style, text string) string {
	if !color || style == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}
