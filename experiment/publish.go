package experiment

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// rows are those of all finished runs of the grid, in its order.
func (l *lab) rows() ([]Row, error) {
	runs, err := l.spec.Grid(nil)
	if err != nil {
		return nil, err
	}
	var out []Row
	for i := range runs {
		rows, err := ReadRowFiles(filepath.Join(l.dir(&runs[i]), rowsName))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, rows...)
	}
	return out, nil
}

// publish writes the rows of all finished runs and the page made of them.
func (l *lab) publish() ([]Row, error) {
	rows, err := l.rows()
	if err != nil || len(rows) == 0 {
		return rows, err
	}
	b, err := encode(rows)
	if err != nil {
		return nil, err
	}
	return rows, writeFile(filepath.Join(l.Dir, rowsName), b)
}
