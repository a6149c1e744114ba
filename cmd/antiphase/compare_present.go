package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"antiphase/eval/report"
	"antiphase/experiment"
	"antiphase/train"
)

// errAllDiverged is the end of an experiment without any result.
var errAllDiverged = fmt.Errorf("every run diverged, so there is nothing to compare; lower rates (--lr) often help: %w",
	train.ErrNotFinite)

// presentExperiment prints the table and the verdicts of an experiment, or its page as JSON, and names the runs that
// diverged.
func presentExperiment(a *app, opt *experiment.Options, rows []experiment.Row, asJSON bool) error {
	p := opt.Page(rows)
	diverged, finished := outcomes(rows)
	if len(diverged) > 0 {
		a.note("warning: %d of %d runs diverged: %s", len(diverged), len(diverged)+finished,
			strings.Join(diverged, ", "))
	}
	var end error
	if len(diverged) > 0 && finished == 0 {
		end = errAllDiverged
	}
	if asJSON {
		return errors.Join(p.JSON(a.out), end)
	}
	if finished > 0 {
		fmt.Fprint(a.out, p.Table(a.colored(a.out)))
		printVerdicts(a, p.Experiment)
	}
	a.note("\n%s and %s: %d rows", filepath.Join(opt.Dir, "report.html"),
		filepath.Join(opt.Dir, "rows.jsonl"), len(rows))
	for _, n := range p.Experiment.Next {
		a.note("  %s", n)
	}
	return end
}

// outcomes are the names of the runs that diverged, and the number of those that came to their end.
func outcomes(rows []experiment.Row) (diverged []string, finished int) {
	for _, r := range rows {
		switch r.Measure {
		case experiment.Failed:
			diverged = append(diverged, r.Run)
		case experiment.Finished:
			finished++
		}
	}
	return diverged, finished
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
