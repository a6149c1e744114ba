package task

import (
	"fmt"
	"slices"
	"strings"

	"antiphase/data"
	"antiphase/eval"
)

// wording is the sentences of a needle prompt. The paper gives none. Ours are those of the synthetic training text; the
// public ones are the closest published: the needle of LWM and YOCO, YOCO's question about one city and LWM's about
// several.
type wording struct {
	preamble string
	needle   string // of city and number
	begin    string // of an answer, with its city, up to the number
	one      string // question about a city
	many     string // about several, the last apart
}

var wordings = map[string]*wording{
	"own": {needle: "The magic code is %s %s.", begin: "The magic code is %s"},
	"public": {
		preamble: "The text below hides special magic numbers of cities. Keep them in mind: you will be asked about " +
			"them.\n",
		needle: "The special magic %s number is: %s.", begin: "The special magic %s number is",
		one: "What is the special magic %s number?", many: "What are the special magic numbers for %s, and %s?",
	},
}

// wordingOf is the one asked for.
func wordingOf(p *eval.Plan) *wording { return wordings[p.Text("wording")] }

// completion is the right continuation of a prompt.
func (w *wording) completion(c data.Needle) string {
	var b strings.Builder
	for i, city := range c.Cities {
		if i > 0 {
			fmt.Fprintf(&b, " "+w.begin, city)
		}
		b.WriteString(" " + c.Answers[i] + ".")
	}
	return b.String()
}

// reword puts a prompt, drawn in our wording, into these words; needles stay in place.
func (w *wording) reword(c data.Needle) data.Needle {
	own := wordings["own"]
	if w == own {
		return c
	}
	_, body, _ := strings.Cut(c.Prompt[:c.QuerySpan[0]], "\n") // after the preamble's line
	body = w.preamble + body
	cities, numbers := slices.Concat(c.Cities, c.OtherCities), slices.Concat(c.Answers, c.OtherNumbers)
	for i, city := range cities {
		body = strings.Replace(body, fmt.Sprintf(own.needle, city, numbers[i]),
			fmt.Sprintf(w.needle, city, numbers[i]), 1)
	}
	question := fmt.Sprintf(w.one, c.Cities[0])
	if last := len(c.Cities) - 1; last > 0 {
		question = fmt.Sprintf(w.many, strings.Join(c.Cities[:last], ", "), c.Cities[last])
	}
	c.Prompt = body + question + " " + fmt.Sprintf(w.begin, c.Cities[0])
	c.QuerySpan = [2]int{len(body), len(c.Prompt)}
	c.Spans = nil
	for i, city := range c.Cities {
		s := fmt.Sprintf(w.needle, city, c.Answers[i])
		at := strings.Index(body, s)
		c.Spans = append(c.Spans, [2]int{at, at + len(s)})
	}
	return c
}
