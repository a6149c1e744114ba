package task

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"antiphase/eval"
)

type passageRow struct {
	ID       any    `json:"id"`
	Question string `json:"question"`
	Answer   string `json:"answer"`
	Contexts []struct {
		Title string `json:"title"`
		Text  string `json:"text"`
	} `json:"contexts"`
}

func (r *passageRow) Check() error {
	if len(r.Contexts) == 0 {
		return fmt.Errorf(`field "contexts" is missing or empty`)
	}
	return eval.Missing("question", r.Question, "answer", r.Answer)
}

// readPassages reads questions over several titled passages.
func readPassages(ctx context.Context, p *eval.Plan, file string, limit int) ([]groundedItem, error) {
	rows, err := eval.ReadSet[passageRow](ctx, p, file, limit)
	var out []groundedItem
	for i, r := range rows {
		var b strings.Builder
		for _, c := range r.Contexts {
			b.WriteString(c.Title + "\n" + c.Text + "\n\n")
		}
		out = append(out, groundedItem{id: rowID(r.ID, i), source: b.String(), task: askShort(r.Question),
			answer: r.Answer})
	}
	return out, err
}

func askShort(question string) string {
	return "Answer from the text above, in as few words as possible.\nQuestion: " + question + "\nAnswer:"
}

type paperRow struct {
	ID        any      `json:"id"`
	Document  string   `json:"document"`
	Questions []string `json:"questions"`
	Answers   []string `json:"answers"`
}

func (r *paperRow) Check() error {
	if len(r.Questions) == 0 || len(r.Questions) != len(r.Answers) {
		return fmt.Errorf(`fields "questions" and "answers" have %d and %d entries, want as many of each`,
			len(r.Questions), len(r.Answers))
	}
	return eval.Missing("document", r.Document)
}

// readPapers reads documents with several questions each, question by question through all documents. A question that
// occurs twice in a document has two right answers.
func readPapers(ctx context.Context, p *eval.Plan, file string, limit int) ([]groundedItem, error) {
	rows, err := eval.ReadSet[paperRow](ctx, p, file, 0)
	var out []groundedItem
	for k, found := 0, true; found; k++ {
		found = false
		for row, r := range rows {
			if k >= len(r.Questions) {
				continue
			}
			found = true
			if slices.Contains(r.Questions[:k], r.Questions[k]) {
				continue
			}
			q := groundedItem{id: fmt.Sprintf("%s.%d", rowID(r.ID, row), k), source: r.Document + "\n\n",
				task: askShort(r.Questions[k]), answer: r.Answers[k]}
			for i := k + 1; i < len(r.Questions); i++ {
				if r.Questions[i] == r.Questions[k] {
					q.also = append(q.also, r.Answers[i])
				}
			}
			if out = append(out, q); len(out) == limit {
				return out, err
			}
		}
	}
	return out, err
}

type articleRow struct {
	ID       any    `json:"id"`
	Document string `json:"document"`
	Summary  string `json:"summary"`
}

func (r *articleRow) Check() error { return eval.Missing("document", r.Document, "summary", r.Summary) }

// readArticles reads articles with their summaries.
func readArticles(ctx context.Context, p *eval.Plan, file string, limit int) ([]groundedItem, error) {
	rows, err := eval.ReadSet[articleRow](ctx, p, file, limit)
	var out []groundedItem
	for i, r := range rows {
		out = append(out, groundedItem{id: rowID(r.ID, i), source: r.Document + "\n\n",
			task: "Summary of the article above in plain language:", answer: r.Summary})
	}
	return out, err
}
