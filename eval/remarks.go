package eval

import "fmt"

// remarks are what the numbers do not show: questions that did not fit the context as they were meant.
func (e *Evaluation) remarks() []string {
	var out []string
	if len(e.Models) == 0 {
		return nil
	}
	for _, r := range e.Models[0].Results {
		if n := number(r.Config["prompts_cut"]); n > 0 {
			out = append(out, fmt.Sprintf("%s: %g of %d prompts are longer than the context and lost their beginning", r.Task, n, r.N))
		}
		if n := number(r.Config["sources_cut"]); n > 0 {
			out = append(out, fmt.Sprintf("%s: %g of %d sources are longer than the context and lost their middle", r.Task, n, r.N))
		}
		if n := number(r.Config["examples_fit"]); n >= 0 && n < float64(r.Shots) {
			out = append(out, fmt.Sprintf("%s: the context has room for %s of %d examples, on average", r.Task, show("%.1f", n), r.Shots))
		}
	}
	for _, m := range e.Models {
		for _, r := range m.Results {
			if x, ok := r.Metric("judge"); ok && x.N < r.N {
				out = append(out, fmt.Sprintf("%s: %s: the judge said neither yes nor no to %d of %d, which do not count", m.Name, r.Task, r.N-x.N, r.N))
			}
		}
	}
	return out
}

// judgeNote is the prompt of the judge, which the paper's protocol does not give and readers must know.
func (e *Evaluation) judgeNote() []string {
	for _, m := range e.Models {
		for _, r := range m.Results {
			if prompt, ok := r.Config["judge_prompt"].(string); ok {
				return []string{fmt.Sprintf("The judge, %v, was asked: “%s”", r.Config["judge"], prompt)}
			}
		}
	}
	return nil
}
