package task

import (
	"context"
	"fmt"
	"strconv"

	"antiphase/eval"
)

// hellaSwagRow is a question in the plain form of other sets, or in the form published by the set's authors.
type hellaSwagRow struct {
	mcRow
	Activity string   `json:"activity_label"`
	CtxA     string   `json:"ctx_a"`
	CtxB     string   `json:"ctx_b"`
	Endings  []string `json:"endings"`
	Label    any      `json:"label"` // a number, or one in quotation marks
}

// Check implements eval.Row.
func (r *hellaSwagRow) Check() error {
	if r.Activity == "" {
		return r.mcRow.Check()
	}
	gold, err := strconv.Atoi(fmt.Sprint(r.Label))
	if err != nil {
		return fmt.Errorf(`field "label" is %v, want the index of the right ending`, r.Label)
	}
	r.Gold = &gold
	if err := eval.Missing("ctx_a", r.CtxA); err != nil {
		return err
	}
	return checkChoices("endings", r.Endings, "label", r.Gold)
}

// readHellaSwag builds prompts as the harness does: "ACTIVITY: first half Second half", with the second half
// capitalised and WikiHow markup removed.
func readHellaSwag(ctx context.Context, p *eval.Plan, file string, limit int) ([]mcItem, error) {
	rows, err := eval.ReadSet[hellaSwagRow](ctx, p, file, limit)
	var out []mcItem
	for i := range rows {
		r := &rows[i]
		q := mcItem{rowID(r.ID, i), []string{r.Query}, r.Choices, *r.Gold}
		if r.Activity != "" {
			q.contexts = []string{HellaSwagPrompt(r.Activity, r.CtxA, r.CtxB)}
			q.endings = nil
			for _, e := range r.Endings {
				q.endings = append(q.endings, CleanWikiHow(e))
			}
		}
		out = append(out, q)
	}
	return out, err
}
