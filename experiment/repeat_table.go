package experiment

import (
	"fmt"
	"slices"
	"strings"
)

// SeedsTable is what is known of plans over seeds as a table in Markdown: of each measure the median and the range, and
// which architecture is better than which often enough for a verdict; "" if nothing is known.
func SeedsTable(plans [][]Repeat, archs []string) string {
	var b strings.Builder
	var machines []string
	for _, known := range plans {
		if len(known) > 0 {
			machines = append(machines, fmt.Sprintf("%s on %s", known[0].Plan, known[0].Machine))
		}
		for _, p := range phrases {
			i := slices.IndexFunc(known, func(x Repeat) bool { return x.Measure == p.measure })
			if i < 0 {
				continue
			}
			x := &known[i]
			fmt.Fprintf(&b, "| %s, %d seeds | %s |", x.Plan, len(x.Seeds), p.label)
			for _, a := range archs {
				fmt.Fprintf(&b, " %s |", x.spread(a, p.share))
			}
			fmt.Fprintf(&b, " %s |\n", x.repeated(archs))
		}
	}
	if b.Len() == 0 {
		return ""
	}
	head := "| plan | median (range) of |"
	for _, a := range archs {
		head += " " + bare(a) + " |"
	}
	return head + " better in at least 9 of 10 seeds |\n" + strings.Repeat("|---", len(archs)+3) + "|\n" + b.String() +
		"\nMeasured: " + strings.Join(machines, "; ") + ".\n"
}

// spread is the median and the range of an architecture's values.
func (x *Repeat) spread(arch string, share bool) string {
	list := slices.Clone(x.Values[arch])
	if len(list) == 0 {
		return "–"
	}
	form := "%.3g (%.3g to %.3g)"
	if share {
		form = "%.1f (%.1f to %.1f)"
		for i := range list {
			list[i] *= 100
		}
	}
	return fmt.Sprintf(form, median(list), slices.Min(list), slices.Max(list))
}

// repeated lists the pairs whose difference repeats, the better one first.
func (x *Repeat) repeated(archs []string) string {
	var out []string
	for _, l := range Lines([]Repeat{*x}, archs) {
		if l.Repeated() {
			out = append(out, fmt.Sprintf("%s over %s (%d)", bare(l.Good), bare(l.Bad), l.Held))
		}
	}
	switch {
	case len(x.Seeds) < enoughSeeds:
		return fmt.Sprintf("too few seeds: a verdict needs %d", enoughSeeds)
	case len(out) == 0:
		return "–"
	}
	return strings.Join(out, ", ")
}

// bare is the name of an architecture without its article.
func bare(arch string) string { return strings.TrimPrefix(Names[arch], "the ") }
