package report

import (
	"fmt"
	"slices"

	"antiphase/eval"
)

// groupMean is a mean over tasks of a group, with its title and what is averaged.
type groupMean struct {
	title, measure string
	eval.GroupMean
}

// groupMeans are the different means of a group that any of the sides has. Means over other questions are other
// numbers: they share neither a row nor a line.
func groupMeans(e *eval.Evaluation, sides []eval.Side, group string) []groupMean {
	var out []groupMean
	for i := range sides {
		for _, g := range e.GroupMeans(&sides[i]) {
			if g.Group == group && !slices.ContainsFunc(out, func(o groupMean) bool { return o.same(&g) }) {
				out = append(out, groupMean{GroupMean: g})
			}
		}
	}
	seen := map[string]int{}
	for i := range out {
		g := &out[i]
		if g.measure = g.Metric.Name; percent(&g.Metric) {
			g.measure += ", %"
		}
		g.title = g.Group
		if g.StandIn {
			g.title += standInMark
		}
		g.title += fmt.Sprintf(", mean of %d", len(g.Tasks))
		if g.Shots > 0 && slices.ContainsFunc(out, func(o groupMean) bool { return o.Shots != g.Shots }) {
			g.title += fmt.Sprintf(" %d-shot", g.Shots)
		}
		if seen[g.title]++; seen[g.title] > 1 {
			g.title += fmt.Sprintf(" (%d)", seen[g.title])
		}
	}
	return out
}

func (g *groupMean) same(o *eval.GroupMean) bool {
	return slices.Equal(g.Questions, o.Questions) // which have one group and one headline
}

// of is a side's value of the mean.
func (g *groupMean) of(e *eval.Evaluation, s *eval.Side) (eval.Metric, bool) {
	for _, o := range e.GroupMeans(s) {
		if g.same(&o) {
			return o.Metric, true
		}
	}
	return eval.Metric{}, false
}
