package experiment

import (
	"fmt"
	"os"
	"path/filepath"

	"antiphase/internal/vfs"
)

// take brings in rows of runs that were finished elsewhere: they are not repeated, and count in the choice of
// learning rates. All are checked before any is written; rows of runs that the grid does not have are left alone.
func (l *lab) take(paths []string, runs []Run) error {
	byRun := map[string][]Row{}
	for _, path := range paths {
		rows, err := ReadRowFiles(path)
		if err != nil {
			return fmt.Errorf("--have: %w", err)
		}
		for _, r := range rows {
			if r.Experiment == l.spec.Name {
				byRun[r.Run] = append(byRun[r.Run], r)
			}
		}
	}
	var wanted []*Run
	for i := range runs {
		r := &runs[i]
		rows := byRun[r.Name()]
		if len(rows) == 0 || l.done(r) {
			continue
		}
		if !whole(rows) {
			return fmt.Errorf("--have: the %d rows of %s are not all of that run's: give the whole file", len(rows),
				r.Name())
		}
		if x := rows[0]; x.Steps != r.Recipe.Train.Steps || x.Tokens != r.tokens() {
			return fmt.Errorf("--have: %s had %d steps and %d tokens there, %d and %d here: %w", r.Name(), x.Steps,
				x.Tokens, r.Recipe.Train.Steps, r.tokens(), ErrOther)
		}
		wanted = append(wanted, r)
	}
	for _, r := range wanted {
		b, err := encode(byRun[r.Name()])
		if err != nil {
			return err
		}
		if err := os.MkdirAll(l.dir(r), 0o755); err != nil {
			return err
		}
		if err := vfs.WriteFile(vfs.OS{}, filepath.Join(l.dir(r), rowsName), b); err != nil {
			return err
		}
		l.Say("%s: finished elsewhere", r.Name())
	}
	return nil
}
