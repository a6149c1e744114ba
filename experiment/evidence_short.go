package experiment

import (
	"fmt"
	"slices"
	"strings"
)

// short lists the measured claims with the experiments for, against and undecided, so that neither side is hidden in
// the long tables.
func (e *evidence) short() {
	for _, class := range classes {
		fmt.Fprintf(e, "| %s | holds in | does not hold in | cannot be told in |\n|---|---|---|---|\n",
			strings.ToLower(class.title[:1])+class.title[1:])
		beyond := 0
		for i := range claims {
			c := &claims[i]
			if !c.of(class.source) {
				continue
			}
			if !e.shortRow(c) {
				beyond++
			}
		}
		e.WriteString("\n")
		if beyond > 0 {
			e.WriteString(prose("", fmt.Sprintf("No row measures %s; [%s](#%s) says why.",
				plural(beyond, "further claim"), class.title, anchor(class.title))) + "\n")
		}
	}
}

// untuned names the experiments with one learning rate, as the last of the rules.
func (e *evidence) untuned() {
	var list []string
	for _, name := range e.names {
		f := e.finals[name]
		one := !slices.ContainsFunc(f.sizes, func(size string) bool {
			return slices.ContainsFunc(f.archs, func(arch string) bool { return len(f.rates(size, arch)) > 1 })
		})
		if one {
			list = append(list, link(name))
		}
	}
	if len(list) > 0 {
		e.WriteString(prose("- ", strings.Join(list, ", ")+": one learning rate was tried, so that an "+
			"architecture or variant with another best rate is at a disadvantage."))
	}
	e.WriteString("\n")
}

// shortRow writes the line of a claim and reports whether an experiment measures it.
func (e *evidence) shortRow(c *claim) bool {
	list, links := e.found(c)
	if len(list) == 0 {
		return false
	}
	where := map[string][]string{}
	for i, v := range list {
		first, _, _ := strings.Cut(links[i], sameRuns)
		where[v.Verdict] = append(where[v.Verdict], first)
	}
	cells := []string{c.text}
	for _, verdict := range []string{Holds, HoldsNot, Unclear} {
		cells = append(cells, strings.Join(where[verdict], ", "))
	}
	e.row(cells...)
	return true
}
