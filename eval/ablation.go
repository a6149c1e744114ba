package eval

import (
	"context"
	"fmt"
	"strings"

	"antiphase/data"
	"antiphase/layer"
	"antiphase/model"
)

// Ablation is one row of the paper's Table 6: a change to the model of a pair, all else being equal.
type Ablation struct {
	Name       string // of its run folder
	Doc        string
	Challenger bool // a change to the differential model, else to the baseline
	Change     func(c *model.Config)
}

// Ablations are the seven rows. Where the paper says GroupNorm it is the norm over each head's output.
func Ablations() []Ablation {
	wide := func(c *model.Config) { c.Heads, c.KVHeads, c.HeadDim = c.Heads/2, c.KVHeads/2, c.HeadDim*2 }
	constant := func(x float64) func(c *model.Config) {
		return func(c *model.Config) { c.LambdaInit, c.LambdaConst = model.LambdaConstant, x }
	}
	return []Ablation{
		{"base", "baseline", false, func(*model.Config) {}},
		{"base-wide", "half the heads, twice as wide", false, wide},
		{"base-wide-norm", "and a norm over each head", false, func(c *model.Config) { wide(c); c.HeadNorm = layer.HeadNormAffine }},
		{"diff", "differential, λ_init by depth", true, func(*model.Config) {}},
		{"diff-no-norm", "without the norm over each head", true, func(c *model.Config) { c.HeadNorm = layer.HeadNormOff }},
		{"diff-lambda-0.8", "λ_init = 0.8 in all layers", true, constant(0.8)},
		{"diff-lambda-0.5", "λ_init = 0.5 in all layers", true, constant(0.5)},
	}
}

// AblationResult is the table as trained here.
type AblationResult struct {
	Size   string        `json:"size"`
	Steps  int           `json:"steps"`
	Tokens int64         `json:"tokens"` // seen in training by each
	Rows   []AblationRow `json:"rows"`   // in the order of Ablations
}

// AblationRow is one trained model.
type AblationRow struct {
	Name       string `json:"name"`
	Doc        string `json:"doc"`
	Arch       string `json:"arch"`
	Parameters int    `json:"parameters"`
	Heads      int    `json:"heads"`
	HeadDim    int    `json:"head_dim"`
	HeadNorm   bool   `json:"head_norm"`
	Loss       Mean   `json:"loss"`   // on held-out text
	ARHit      Mean   `json:"ar_hit"` // of it, on tokens that could be recalled
	Others     Mean   `json:"others"`
}

// Measure fills a row's losses from a held-out split: AR-Hit is the loss on tokens that end a pair of tokens seen before in the same
// sequence (the same document, where documents are kept apart), frequent pairs left out (see the task lm).
func (r *AblationRow) Measure(ctx context.Context, s *Subject, sp *data.Split, opt LossOptions) error {
	var windows [][]TokenLoss
	var lists [][]int32
	err := s.splitRows(ctx, sp, opt, func(list []TokenLoss, _ []int) {
		ids := make([]int32, len(list))
		for i, x := range list {
			ids[i] = x.ID
		}
		windows, lists = append(windows, list), append(lists, ids)
	})
	if err != nil {
		return err
	}
	frequent := frequentPairs(lists, 1e-3)
	var answers []Answer
	for i, w := range windows {
		a := Answer{ID: fmt.Sprint(i), Values: map[string]float64{}, Weights: map[string]float64{}}
		sum := 0.0
		for _, x := range w {
			sum += x.Loss
		}
		a.put("loss", sum, float64(len(w)))
		a.recall(w, frequent)
		answers = append(answers, a)
	}
	r.Loss, r.ARHit, r.Others = meanOf(answers, "loss"), meanOf(answers, "ar_hit"), meanOf(answers, "others")
	return nil
}

// cells are a row's three losses and the paper's of that row. Where no token could be recalled there is no loss on such.
func (r *AblationRow) cells(row int) []string {
	var out []string
	for _, m := range []Mean{r.Loss, r.ARHit, r.Others} {
		if m.N == 0 {
			out = append(out, "–")
		} else {
			out = append(out, plusMinus("%.4f")(m.Value, m.StdErr))
		}
	}
	if row < len(paperAblation) {
		p := paperAblation[row]
		out = append(out, show("%.3f", p.loss), show("%.3f", p.arHit), show("%.3f", p.others))
	}
	return out
}

// Table renders the rows beside the paper's.
func (r *AblationResult) Table(color bool) string {
	t := table{head: []string{"model", "heads × width", "norm", "loss", "AR-Hit", "others", "paper: loss", "AR-Hit", "others"}}
	for i, x := range r.Rows {
		norm := "no"
		if x.HeadNorm {
			norm = "yes"
		}
		t.rows = append(t.rows, append([]string{x.Name, fmt.Sprintf("%d × %d", x.Heads, x.HeadDim), norm}, x.cells(i)...))
	}
	var b strings.Builder
	b.WriteString(t.render(color))
	for _, x := range r.Rows {
		fmt.Fprintf(&b, "%s: %s, %s, %s parameters\n", x.Name, x.Arch, x.Doc, count(float64(x.Parameters)))
	}
	fmt.Fprintf(&b, "%s, %d steps, %s tokens each; ± one standard error over sequences of one run each. The paper: 1.4B, 10B tokens.\n", r.Size, r.Steps, count(float64(r.Tokens)))
	return b.String()
}
