package main

import (
	"fmt"
	"path/filepath"

	"antiphase/experiment"
)

// presentExperiment prints the table of an experiment, or its rows.
func (a *app) presentExperiment(dir string, rows []experiment.Row, asJSON bool) error {
	if asJSON {
		return a.json(rows)
	}
	fmt.Fprintf(a.out, "%d rows in %s\n", len(rows), filepath.Join(dir, "rows.jsonl"))
	return nil
}
