package report

import (
	"fmt"
	"slices"
	"strings"

	"antiphase/eval"
	"antiphase/metrics"
)

// Ablations (the paper's Table 6) as trained here.
func init() { register(28, ablationSection) }

// Ablation is a table of ablations: the models of an evaluation with the task lm.
type Ablation struct {
	Arch   string        `json:"arch,omitempty"` // whose ablations: diff (empty too) or diff2
	Size   string        `json:"size"`
	Steps  int           `json:"steps"`
	Tokens int64         `json:"tokens"` // seen in training by each
	Rows   []AblationRow `json:"rows"`
}

// AblationRow is one trained model.
type AblationRow struct {
	Name       string    `json:"name"`
	Doc        string    `json:"doc"`
	Arch       string    `json:"arch"`
	Parameters int       `json:"parameters"`
	Heads      int       `json:"heads"`
	HeadDim    int       `json:"head_dim"`
	HeadNorm   bool      `json:"head_norm"`
	Loss       eval.Mean `json:"loss"`   // on held-out text
	ARHit      eval.Mean `json:"ar_hit"` // of it, on tokens that could be recalled
	Others     eval.Mean `json:"others"`

	Steady *metrics.Steadiness `json:"steady,omitempty"` // of its training
}

// Fill takes the losses from the model's result of the task lm.
func (r *AblationRow) Fill(lm *eval.Result) {
	for name, to := range map[string]*eval.Mean{"loss": &r.Loss, "ar_hit": &r.ARHit, "others": &r.Others} {
		if m, ok := lm.Metric(name); ok {
			*to = m.Mean
		}
	}
}

// cells are a row's three losses. Without recallable tokens there is no loss on them.
func (r *AblationRow) cells() []string {
	var out []string
	for _, m := range []eval.Mean{r.Loss, r.ARHit, r.Others} {
		if m.N == 0 {
			out = append(out, "–")
		} else {
			out = append(out, show("%.4f", m.Value)+" ± "+show("%.4f", m.StdErr))
		}
	}
	return out
}

// paper are the paper's losses of a row, by its name.
func (r *AblationRow) paper() []string {
	for _, p := range paperAblation {
		if p.name == r.Name {
			return []string{show("%.3f", p.loss), show("%.3f", p.arHit), show("%.3f", p.others)}
		}
	}
	return []string{"", "", ""}
}

// steady describes training: spikes of loss and gradient, and the final gradient norm.
func (r *AblationRow) steady() []string {
	if r.Steady == nil {
		return []string{"", ""}
	}
	return []string{fmt.Sprintf("%d, %d", r.Steady.LossSpikes, r.Steady.GradSpikes), show("%.3g", r.Steady.Late)}
}

// about describes the numbers.
func (r *Ablation) about() string {
	paper := "The paper: 1.4B parameters, 10B tokens, other text."
	if r.Arch == "diff2" {
		paper = "V2's page gives no numbers: all of its ablations have a higher loss than V2, pairs across groups " +
			"are least stable, λ without its sigmoid is less stable than V2."
	}
	return fmt.Sprintf("%s, %d steps, %s tokens each; ± one standard error over texts of one run each. %s", r.Size,
		r.Steps, count(float64(r.Tokens)), paper)
}

// Table renders the rows next to the paper's.
func (r *Ablation) Table(color bool) string {
	t := grid{left: 3, Rows: [][]string{{"model", "heads × width", "norm", "loss", "AR-Hit", "others", "spikes",
		"gradient", "paper: loss", "AR-Hit", "others"}}}
	for i := range r.Rows {
		x := &r.Rows[i]
		norm := "no"
		if x.HeadNorm {
			norm = "yes"
		}
		row := append([]string{x.Name, fmt.Sprintf("%d × %d", x.Heads, x.HeadDim), norm}, x.cells()...)
		t.Rows = append(t.Rows, slices.Concat(row, x.steady(), x.paper()))
	}
	var b strings.Builder
	b.WriteString(t.text(color, nil))
	for _, x := range r.Rows {
		fmt.Fprintf(&b, "%s: %s, %s, %s parameters\n", x.Name, x.Arch, x.Doc, count(float64(x.Parameters)))
	}
	return b.String() + r.about() + "\n"
}

func ablationSection(p *Page) (section, error) {
	s := section{Title: "Ablations"}
	r := p.Ablation
	if r == nil {
		return s, nil
	}
	g := grid{ID: "ablation", Note: r.about()}
	g.Rows = [][]string{{"model", "what", "heads", "width", "norm", "loss", "AR-Hit", "others",
		"spikes of loss, gradient", "gradient norm, late", "loss (paper)", "AR-Hit (paper)", "others (paper)"}}
	for i := range r.Rows {
		x := &r.Rows[i]
		row := append([]string{x.Name, x.Arch + ", " + x.Doc, fmt.Sprint(x.Heads), fmt.Sprint(x.HeadDim),
			fmt.Sprint(x.HeadNorm)}, x.cells()...)
		g.Rows = append(g.Rows, slices.Concat(row, x.steady(), x.paper()))
	}
	s.Tables = []grid{g}
	return s, nil
}
