package task

import (
	"context"
	"fmt"
	"strings"

	"antiphase/eval"
)

// mcSets are the sets, with the harness's prompt of each; few-shot examples are joined by an empty line.
var mcSets = []mcSet{
	{name: "arc_challenge", doc: "ARC-Challenge: grade-school science, the hard questions",
		test: "mc/arc_challenge_test", train: "mc/arc_challenge_train", read: readAsked, make: makeSum(3)},
	{name: "arc_easy", doc: "ARC-Easy: grade-school science", test: "mc/arc_easy_test", train: "mc/arc_easy_train",
		read: readAsked, make: makeSum(20)},
	{name: "boolq", doc: "BoolQ: yes or no about a passage",
		test: "mc/boolq_val", train: "mc/boolq_train", accOnly: true, read: readBoolQ, make: makeYesNo},
	{name: "hellaswag", doc: "HellaSwag: how a scene goes on", test: "mc/hellaswag_val", byNorm: true,
		read: readHellaSwag, make: makeEnding},
	{name: "openbookqa", doc: "OpenBookQA: elementary facts",
		test: "mc/openbookqa_test", train: "mc/openbookqa_train", read: readPlain, make: makeCount},
	{name: "piqa", doc: "PIQA: everyday physics", test: "mc/piqa_val", train: "mc/piqa_train", read: readAsked,
		make: makeCompare},
	{name: "winogrande", doc: "WinoGrande: whom a sentence means",
		test: "mc/winogrande_val", train: "mc/winogrande_train", accOnly: true, read: readWinoGrande, make: makeWho},
	{name: "lambada_openai", doc: "LAMBADA: the last word of a passage", test: "mc/lambada_openai_test", single: true,
		read: readLambada, make: makeLast},
}

// mcRow is a question with its choices.
type mcRow struct {
	ID      any      `json:"id"`
	Query   string   `json:"query"`
	Choices []string `json:"choices"`
	Gold    *int     `json:"gold"`
}

func (r *mcRow) Check() error {
	if err := eval.Missing("query", r.Query); err != nil {
		return err
	}
	return checkChoices("choices", r.Choices, "gold", r.Gold)
}

// checkChoices checks the two fields that hold the choices and the index of the right one.
func checkChoices(field string, choices []string, right string, gold *int) error {
	if len(choices) < 2 {
		return fmt.Errorf("field %q has %d entries, want 2 or more", field, len(choices))
	}
	for i, c := range choices {
		if strings.TrimSpace(c) == "" {
			return fmt.Errorf("field %q: entry %d is empty", field, i)
		}
	}
	if gold == nil || *gold < 0 || *gold >= len(choices) {
		return fmt.Errorf("field %q is missing or outside 0 to %d", right, len(choices)-1)
	}
	return nil
}

// rowID is the id that a set gives a row, or the row's number.
func rowID(id any, row int) string {
	if id == nil {
		id = row
	}
	return fmt.Sprint(id)
}

// readAsked reads sets whose prompt is "Question: …\nAnswer:" (ARC, PIQA).
func readAsked(ctx context.Context, p *eval.Plan, file string, limit int) ([]mcItem, error) {
	return readMC(ctx, p, file, limit, func(r *mcRow) string { return "Question: " + r.Query + "\nAnswer:" })
}

// readPlain reads sets whose choices continue the query itself (HellaSwag, OpenBookQA).
func readPlain(ctx context.Context, p *eval.Plan, file string, limit int) ([]mcItem, error) {
	return readMC(ctx, p, file, limit, func(r *mcRow) string { return r.Query })
}

func readMC(ctx context.Context, p *eval.Plan, file string, limit int, prompt func(*mcRow) string) ([]mcItem, error) {
	rows, err := eval.ReadSet[mcRow](ctx, p, file, limit)
	var out []mcItem
	for i := range rows {
		r := &rows[i]
		out = append(out, mcItem{rowID(r.ID, i), []string{prompt(r)}, r.Choices, *r.Gold})
	}
	return out, err
}

type boolQRow struct {
	ID       any      `json:"id"`
	Passage  string   `json:"passage"`
	Question string   `json:"question"`
	Choices  []string `json:"choices"`
	Gold     *int     `json:"gold"`
}

func (r *boolQRow) Check() error {
	if err := eval.Missing("passage", r.Passage, "question", r.Question); err != nil {
		return err
	}
	return checkChoices("choices", r.Choices, "gold", r.Gold)
}

// readBoolQ: "PASSAGE\nQuestion: …?\nAnswer:" and yes or no.
func readBoolQ(ctx context.Context, p *eval.Plan, file string, limit int) ([]mcItem, error) {
	rows, err := eval.ReadSet[boolQRow](ctx, p, file, limit)
	var out []mcItem
	for i, r := range rows {
		prompt := r.Passage + "\nQuestion: " + strings.TrimSuffix(r.Question, "?") + "?\nAnswer:"
		out = append(out, mcItem{rowID(r.ID, i), []string{prompt}, r.Choices, *r.Gold})
	}
	return out, err
}

type winoRow struct {
	ID       any      `json:"id"`
	Sentence string   `json:"sentence"`
	Options  []string `json:"options"`
	Gold     *int     `json:"gold"`
}

func (r *winoRow) Check() error {
	if strings.Count(r.Sentence, "_") != 1 {
		return fmt.Errorf(`field "sentence" has %d blanks "_", want one`, strings.Count(r.Sentence, "_"))
	}
	return checkChoices("options", r.Options, "gold", r.Gold)
}

// readWinoGrande scores the text after the blank for each way to fill it (partial evaluation).
func readWinoGrande(ctx context.Context, p *eval.Plan, file string, limit int) ([]mcItem, error) {
	rows, err := eval.ReadSet[winoRow](ctx, p, file, limit)
	var out []mcItem
	for i, r := range rows {
		out = append(out, fillBlank(rowID(r.ID, i), r.Sentence, r.Options, *r.Gold))
	}
	return out, err
}

func fillBlank(id, sentence string, options []string, gold int) mcItem {
	before, after, _ := strings.Cut(sentence, "_")
	q := mcItem{id: id, endings: []string{strings.TrimSpace(after)}, gold: gold}
	for _, o := range options {
		q.contexts = append(q.contexts, before+o)
	}
	return q
}

type lambadaRow struct {
	Context      string `json:"context"`
	Continuation string `json:"continuation"`
}

func (r *lambadaRow) Check() error {
	return eval.Missing("context", r.Context, "continuation", r.Continuation)
}

// readLambada: the last word, which must be the most likely one.
func readLambada(ctx context.Context, p *eval.Plan, file string, limit int) ([]mcItem, error) {
	rows, err := eval.ReadSet[lambadaRow](ctx, p, file, limit)
	var out []mcItem
	for i, r := range rows {
		out = append(out, mcItem{fmt.Sprint(i), []string{r.Context}, []string{strings.TrimSpace(r.Continuation)}, 0})
	}
	return out, err
}
