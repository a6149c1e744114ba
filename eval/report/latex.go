package report

import (
	"fmt"
	"io"
	"strings"
)

// LaTeX writes the table of scores for a paper: booktabs rules, the better value bold, differences with their stars. It needs the package booktabs
// and nothing else: what is not ASCII is written in commands.
func (p *Page) LaTeX(w io.Writer) error {
	sides := p.evaluation().Sides()
	rows := p.lines()
	floors := floorNames(rows)
	var b strings.Builder
	b.WriteString("% needs \\usepackage{booktabs}\n\\begin{tabular}{ll" + strings.Repeat("r", max(2*len(sides)-1, 0)+len(floors)) + "}\n\\toprule\n")
	head := []string{"Task", "Measure"}
	for i, s := range sides {
		head = append(head, latexText(s.Name))
		if i > 0 {
			head = append(head, "Difference")
		}
	}
	for _, f := range floors {
		head = append(head, latexText(f))
	}
	b.WriteString(strings.Join(head, " & ") + ` \\` + "\n\\midrule\n")
	for i, x := range rows {
		if i > 0 && x.task != "" {
			b.WriteString("\\addlinespace\n")
		}
		cells := []string{latexText(x.task), latexText(x.measure)}
		for k, c := range x.cells {
			text := latexText(c.text)
			if c.text == "" {
				text = "--"
			}
			if c.mark == best {
				text = `\textbf{` + text + `}`
			}
			cells = append(cells, text)
			if k > 0 {
				cells = append(cells, latexText(strings.TrimSpace(x.diffs[k-1])))
			}
		}
		for _, f := range floors {
			cells = append(cells, latexText(x.floors[f]))
		}
		b.WriteString(strings.Join(cells, " & ") + ` \\` + "\n")
	}
	b.WriteString("\\bottomrule\n\\end{tabular}\n")
	for _, s := range p.legend(floors) {
		fmt.Fprintf(&b, "%% %s\n", strings.ReplaceAll(s, "\n", " "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// latexCommands are characters that LaTeX reads as something else, or does not have.
var latexCommands = strings.NewReplacer(
	`\`, `\textbackslash{}`, "&", `\&`, "%", `\%`, "$", `\$`, "#", `\#`, "_", `\_`, "{", `\{`, "}", `\}`, "~", `\textasciitilde{}`, "^", `\textasciicircum{}`,
	"<", "$<$", ">", "$>$", "−", "$-$", "±", "$\\pm$", "λ", "$\\lambda$", "σ", "$\\sigma$", "√", "$\\surd$", "×", "$\\times$", "·", "$\\cdot$", "‖", "$\\|$",
	"°", "$^\\circ$", "≈", "$\\approx$", "–", "--", "…", "\\dots{}", "“", "``", "”", "''", "’", "'", "→", "$\\to$", "Σ", "$\\Sigma$", "é", `\'e`)

// latexText is text as a cell may hold it. Characters without a command become a question mark rather than an error of the compiler.
func latexText(s string) string {
	out := latexCommands.Replace(s)
	return strings.Map(func(r rune) rune {
		if r > 126 || r < ' ' {
			return '?'
		}
		return r
	}, out)
}
