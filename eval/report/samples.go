package report

import (
	"html"
	"html/template"
	"strings"

	"antiphase/eval/task"
)

// Continuations of the same prompts by all models.
func init() { register(150, samplesSection) }

func samplesSection(p *Page) (section, error) {
	s := section{Title: "Samples"}
	e := p.evaluation()
	for _, q := range e.Of("samples") {
		models, err := detailsOf[[]task.Sample](e, q.Question)
		if err != nil {
			return s, err
		}
		for k := 0; len(models) > 0 && k < len(models[0].Detail); k++ {
			var b strings.Builder
			b.WriteString(`<div class="two sample">`)
			for _, m := range models {
				if k < len(m.Detail) {
					b.WriteString(`<div><p class="who ` + m.Class + ` ink">` + html.EscapeString(m.Name) +
						`</p><pre><span class="prompt">` +
						escaped(m.Detail[k].Prompt) + `</span>` + escaped(m.Detail[k].Text) + `</pre></div>`)
				}
			}
			s.Blocks = append(s.Blocks, template.HTML(b.String()+`</div>`))
		}
	}
	return s, nil
}
