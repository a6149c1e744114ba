package eval

import "math"

// GroupMean is the mean of a group's tasks, each counted alike, as the paper averages its tables; the error is that of independent tasks.
type GroupMean struct {
	Group  string   `json:"group"`
	Metric Metric   `json:"metric"`
	Tasks  []string `json:"tasks"`
	Diff   Mean     `json:"diff"` // to the first model; N is 0 for the first itself
}

// average fills in the means of every group that was asked as a whole or in part: two tasks or more that have the same headline. Tasks
// that only accompany a group are left out.
func (e *Evaluation) average(tasks []Task) {
	beside := map[string]bool{}
	for _, t := range tasks {
		beside[t.Name] = t.Beside
	}
	for i := range e.Models {
		m := &e.Models[i]
		var order []string
		sums := map[string]*groupSum{}
		for k := range m.Results {
			r := &m.Results[k]
			if r.Group == "" || beside[r.Task] || len(r.Metrics) == 0 {
				continue
			}
			g := sums[r.Group]
			if g == nil {
				g = &groupSum{metric: r.Metrics[0]}
				sums[r.Group], order = g, append(order, r.Group)
			}
			g.add(r, e.difference(r.Task, r.Metrics[0].Name, m.Name))
		}
		for _, name := range order {
			if g := sums[name]; !g.mixed && len(g.tasks) > 1 {
				m.Groups = append(m.Groups, g.mean(name, i > 0))
			}
		}
	}
}

// groupSize is how many tasks a group's mean is over.
func (e *Evaluation) groupSize(group string) int {
	for _, g := range e.Models[0].Groups {
		if g.Group == group {
			return len(g.Tasks)
		}
	}
	return 0
}

// difference is the paired difference of a model to the first.
func (e *Evaluation) difference(task, metric, model string) Mean {
	for _, p := range e.Paired {
		if p.Task == task && p.Metric == metric && p.B == model {
			return Mean{p.Diff, p.StdErr, p.N}
		}
	}
	return Mean{}
}

// groupSum adds up tasks' means and the squares of their errors.
type groupSum struct {
	metric                   Metric
	mixed                    bool // headlines differ
	tasks                    []string
	value, sq, diff, sqDiff  float64
	samples, pairs, compared int
}

func (g *groupSum) add(r *Result, d Mean) {
	x := r.Metrics[0]
	g.mixed = g.mixed || x.Name != g.metric.Name
	g.tasks = append(g.tasks, r.Task)
	g.value += x.Value
	g.sq += x.StdErr * x.StdErr
	g.samples += x.N
	g.diff += d.Value
	g.sqDiff += d.StdErr * d.StdErr
	g.pairs += d.N
	if d.N > 0 {
		g.compared++
	}
}

func (g *groupSum) mean(name string, compared bool) GroupMean {
	n := float64(len(g.tasks))
	out := GroupMean{Group: name, Tasks: g.tasks, Metric: g.metric}
	out.Metric.Mean = Mean{g.value / n, math.Sqrt(g.sq) / n, g.samples}
	if compared && g.compared == len(g.tasks) {
		out.Diff = Mean{g.diff / n, math.Sqrt(g.sqDiff) / n, g.pairs}
	}
	return out
}
