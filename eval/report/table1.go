package report

import "antiphase/eval"

// Zero-shot accuracy next to published models of 3B parameters (the paper's Table 1).
func init() { register(30, table1Section) }

// table1Tasks are the columns, in the paper's order.
var table1Tasks = []struct{ kind, title string }{
	{"arc_challenge", "ARC-C"}, {"arc_easy", "ARC-E"}, {"boolq", "BoolQ"}, {"hellaswag", "HellaSwag"},
	{"openbookqa", "OBQA"}, {"piqa", "PIQA"}, {"winogrande", "WinoGrande"},
}

// paperTable1 is Table 1 in percent: models after 1T tokens, the mean last; 0 means not published.
var paperTable1 = []struct {
	name string
	acc  [8]float64
}{
	{"OpenLLaMA-3B-v2 (paper)", [8]float64{33.9, 67.6, 65.7, 70.0, 26.0, 76.7, 62.9, 57.5}},
	{"StableLM-base-alpha-3B-v2 (paper)", [8]float64{32.4, 67.3, 64.6, 68.6, 26.4, 76.0, 62.1, 56.8}},
	{"StableLM-3B-4E1T (paper)", [8]float64{0, 66.6, 0, 0, 0, 76.8, 63.2, 0}},
	{"DIFF-3B (paper)", [8]float64{37.8, 72.9, 69.0, 71.4, 29.0, 76.8, 67.1, 60.6}},
}

// table1Section shows the seven tasks without examples. The paper's rows are shown only if all seven are the complete
// original sets.
func table1Section(p *Page) (section, error) {
	s := section{Title: "Seven tasks without examples"}
	e := p.evaluation()
	questions, same := table1Questions(e)
	if len(questions) < 2 {
		return s, nil
	}
	g := grid{ID: "table1", left: 1, Note: "accuracy in percent, HellaSwag's per character; the mean is of the tasks " +
		"that a model has, all seven in the paper", Rows: [][]string{{"model"}}}
	for _, t := range table1Tasks {
		g.Rows[0] = append(g.Rows[0], t.title)
	}
	g.Rows[0] = append(g.Rows[0], "mean")
	for _, side := range e.Sides() {
		row, sum, n := []string{side.Name}, 0.0, 0.0
		for _, t := range table1Tasks {
			text := "–"
			if q := questions[t.kind]; q != nil {
				if m, ok := side.Metric(q.Question, published(t.kind)); ok {
					text = show("%.1f", 100*m.Value)
					sum, n = sum+100*m.Value, n+1
					if q.StandIn() {
						text += standInMark
					}
				}
			}
			row = append(row, text)
		}
		mean := "–"
		if n > 1 {
			mean = show("%.1f", sum/n)
		}
		g.Rows = append(g.Rows, append(row, mean))
	}
	if same {
		for _, x := range paperTable1 {
			row := []string{x.name}
			for _, v := range x.acc {
				if v == 0 {
					row = append(row, "–")
				} else {
					row = append(row, show("%.1f", v))
				}
			}
			g.Rows = append(g.Rows, row)
		}
	} else {
		g.Note += ". The paper's rows are left out: questions are generated, limited, of task files, cut to the " +
			"context or of fewer than seven sets"
	}
	s.Tables = []grid{g}
	return s, nil
}

// table1Questions are the tasks without examples; same reports that all follow the paper's protocol.
func table1Questions(e *eval.Evaluation) (out map[string]*eval.Result, same bool) {
	out, same = map[string]*eval.Result{}, true
	for _, t := range table1Tasks {
		for _, q := range e.Of(t.kind) {
			if x := out[t.kind]; q.Shots == 0 &&
				(x == nil || x.StandIn() || len(differs(q, published(t.kind))) < len(differs(x, published(t.kind)))) {
				out[t.kind] = q
			}
		}
		q := out[t.kind]
		same = same && q != nil && len(differs(q, published(t.kind))) == 0
	}
	return out, same
}
