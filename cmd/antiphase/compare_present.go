package main

import (
	"fmt"
	"path/filepath"

	"antiphase/eval/report"
	"antiphase/experiment"
)

// presentExperiment prints the table and the verdicts of an experiment, or its page as JSON.
func presentExperiment(a *app, opt *experiment.Options, rows []experiment.Row, asJSON bool) error {
	p := opt.Page(rows)
	if asJSON {
		return p.JSON(a.out)
	}
	fmt.Fprint(a.out, p.Table(a.colored(a.out)))
	printVerdicts(a, p.Experiment)
	a.note("\n%s and %s: %d rows", filepath.Join(opt.Dir, "report.html"),
		filepath.Join(opt.Dir, "rows.jsonl"), len(rows))
	for _, n := range p.Experiment.Next {
		a.note("  %s", n)
	}
	return nil
}

// printVerdicts prints a line for every claim.
func printVerdicts(a *app, x *report.Experiment) {
	for i, v := range x.Verdicts {
		if i == 0 {
			fmt.Fprintln(a.out)
		}
		fmt.Fprintf(a.out, "%-19s  %s: %s (%s)\n", v.Verdict, v.Claim, v.Figure, v.Basis)
	}
}
