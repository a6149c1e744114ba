package experiment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// build is the commit that a run was made with.
func (o *origin) build() string { return cmp.Or(o.Commit, "unknown") }

// builds are the commits of rows, each once.
func builds(rows []Row) (out []string) {
	for i := range rows {
		if b := rows[i].build(); !slices.Contains(out, b) {
			out = append(out, b)
		}
	}
	return out
}

// ofRun is the first row of a run among rows.
func ofRun(rows []Row, size, arch string, seed uint64) *Row {
	return &rows[slices.IndexFunc(rows,
		func(r Row) bool { return r.Size == size && r.Arch == arch && r.Seed == seed })]
}

// machines lists the machines of all runs, each with its commits. Of several, it names those that made none of the runs
// compared; the table of these runs has the others.
func machines(all, compared []Row) string {
	var names, out []string
	byName := map[string][]Row{}
	for _, r := range all {
		name := cmp.Or(r.Machine, "machine unknown")
		if byName[name] == nil {
			names = append(names, name)
		}
		byName[name] = append(byName[name], r)
	}
	every, chosen := builds(all), builds(compared)
	for _, name := range names {
		list, s := builds(byName[name]), ""
		if len(list) > 1 {
			s = "s"
		}
		for i, b := range list {
			if !slices.Contains(chosen, b) {
				list[i] += " (only learning rates that were not chosen)"
			}
		}
		out = append(out, fmt.Sprintf("%s; commit%s %s.", name, s, strings.Join(list, ", ")))
	}
	if len(every) > 1 {
		out = append(out, "The table of the runs compared has the commit of each.")
	}
	if slices.Contains(every, unrecorded) {
		out = append(out, unrecorded+" is a build that did not record its commit.")
	}
	return strings.Join(out, " ")
}

// unrecorded is the commit of a build without one.
const unrecorded = "(devel)"

// speedBuilds says that the speeds of two sides were measured with different commits, "" if they were not.
func speedBuilds(compared []Row, size string, sides ...string) string {
	var parts []string
	var all []Row
	for _, arch := range sides {
		var rows []Row
		for _, r := range compared {
			if r.Size == size && r.Arch == arch && r.Measure == trainSpeed {
				rows = append(rows, r)
			}
		}
		all = append(all, rows...)
		parts = append(parts, arch+" "+strings.Join(builds(rows), ", "))
	}
	if len(builds(all)) < 2 {
		return ""
	}
	return "; different commits: " + strings.Join(parts, "; ")
}
