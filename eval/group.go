package eval

import "math"

// GroupMean is the unweighted mean of the headlines of a group's tasks, as the paper averages its tables.
type GroupMean struct {
	Group     string
	Tasks     []string
	Questions []string // of the tasks: means over other questions are other numbers
	Shots     int
	StandIn   bool
	Metric    Metric // labelled as the first task's; its error is that of independent tasks
}

// GroupMeans are the means of a side over every group of two or more tasks with the same headline and the same number
// of examples. Tasks that only accompany a group are excluded, and so are stand-ins next to real sets.
func (e *Evaluation) GroupMeans(s *Side) []GroupMean {
	type key struct {
		group    string
		shots    int
		stand    bool
		headline string
	}
	var order []key
	sums := map[key]*GroupMean{}
	for _, q := range e.Questions() {
		if q.Group == "" || q.Beside || len(q.Metrics) == 0 {
			continue
		}
		x, ok := s.Metric(q.Question, q.Metrics[0].Name)
		if !ok {
			continue
		}
		k := key{q.Group, q.Shots, q.StandIn(), x.headline()}
		g := sums[k]
		if g == nil {
			g = &GroupMean{Group: q.Group, Shots: q.Shots, StandIn: q.StandIn(),
				Metric: Metric{Name: k.headline, Label: x.Label, Better: x.Better}}
			sums[k], order = g, append(order, k)
		}
		g.Tasks, g.Questions = append(g.Tasks, q.Task), append(g.Questions, q.Question)
		g.Metric.Value += x.Value
		g.Metric.StdErr += x.StdErr * x.StdErr
		g.Metric.N += x.N
	}
	var out []GroupMean
	for _, k := range order {
		g := sums[k]
		n := float64(len(g.Tasks))
		g.Metric.Value, g.Metric.StdErr = g.Metric.Value/n, math.Sqrt(g.Metric.StdErr)/n
		if n > 1 {
			out = append(out, *g)
		}
	}
	return out
}

// headline is the kind of score: accuracies are averaged whether or not they are length-normalised, as published.
func (m *Metric) headline() string {
	if m.Name == "acc_norm" {
		return "acc"
	}
	return m.Name
}
