package report

import (
	"fmt"
	"io"
	"strings"
)

// LaTeX writes the table of scores for a paper: booktabs rules, the better value in bold, differences with stars. It
// needs only the package booktabs: non-ASCII characters are written as commands.
func (p *Page) LaTeX(w io.Writer) error {
	sides := p.evaluation().Sides()
	rows := p.lines()
	floors := floorNames(rows)
	var b strings.Builder
	b.WriteString("% needs \\usepackage{booktabs}\n\\begin{tabular}{ll" +
		strings.Repeat("r", max(2*len(sides)-1, 0)+len(floors)) + "}\n\\toprule\n")
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

// latexCommands are characters that are special in LaTeX or missing from it.
var latexCommands = strings.NewReplacer(
	`\`, `\textbackslash{}`, "&", `\&`, "%", `\%`, "$", `\$`, "#", `\#`, "_", `\_`, "{", `\{`, "}", `\}`, "~",
	`\textasciitilde{}`, "^", `\textasciicircum{}`,
	"<", "$<$", ">", "$>$", "−", "$-$", "±", "$\\pm$", "λ", "$\\lambda$", "σ", "$\\sigma$", "√", "$\\surd$", "×",
	"$\\times$", "·", "$\\cdot$", "‖", "$\\|$",
	"°", "$^\\circ$", "≈", "$\\approx$", "–", "--", "…", "\\dots{}", "“", "``", "”", "''", "’", "'", "→", "$\\to$", "Σ",
	"$\\Sigma$", "é", `\'e`)

// latexText escapes text for a cell. Characters without a command become a question mark, because they would stop the
// compiler.
func latexText(s string) string {
	out := latexCommands.Replace(s)
	return strings.Map(func(r rune) rune {
		if r > 126 || r < ' ' {
			return '?'
		}
		return r
	}, out)
}
