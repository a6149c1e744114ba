package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"antiphase/checkpoint"
	"antiphase/metrics"
)

// checkRun checks a whole run folder, not only the checkpoint that would be used; it does nothing for a checkpoint
// without its run.
func checkRun(dir string) []finding {
	store, err := checkpoint.Open(dir, checkpoint.Options{ReadOnly: true})
	if err != nil {
		return []finding{{"run", false, err.Error()}}
	}
	steps, err := store.Steps()
	if err != nil {
		return []finding{{"run", false, err.Error()}}
	}
	if len(steps) == 0 {
		return nil
	}
	whole := finding{"run", true, fmt.Sprintf("%d checkpoints are whole", len(steps))}
	for _, step := range steps {
		// A live run may have deleted it.
		if _, err := store.At(step); err != nil && !errors.Is(err, checkpoint.ErrNone) {
			whole = finding{"run", false, err.Error()}
		}
	}
	return append([]finding{whole}, checkMetrics(filepath.Join(dir, metrics.FileName), int(steps[len(steps)-1]))...)
}

// checkMetrics reads every row; each step up to the newest checkpoint's has one.
func checkMetrics(path string, newest int) []finding {
	if _, err := os.Stat(path); err != nil {
		return nil // an imported model has none
	}
	bad, first := 0, ""
	rows, err := metrics.Read(path, func(s string) {
		if bad++; first == "" {
			first = s
		}
	})
	switch {
	case err != nil:
		return []finding{{"metrics", false, err.Error()}}
	case bad > 0:
		return []finding{{"metrics", false, fmt.Sprintf("damaged lines: %d, rows: %d; %s", bad, len(rows), first)}}
	}
	have := map[int]bool{}
	for _, r := range rows {
		if r.Step >= 1 && r.Step <= newest {
			have[r.Step] = true
		}
	}
	if len(have) < newest {
		return []finding{{"metrics", false, fmt.Sprintf("has rows of %d of %d steps", len(have), newest)}}
	}
	return []finding{{"metrics", true, fmt.Sprintf("%d rows", len(rows))}}
}
