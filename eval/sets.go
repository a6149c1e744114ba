package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"antiphase/data"
)

// errEnough ends reading when there are as many rows as wanted.
var errEnough = errors.New("enough")

// checker is a row that can say which of its fields is missing or wrong.
type checker interface{ check() error }

// readSet reads the rows of data set name ("mc/piqa_val") below the data folder: a .jsonl file, which may be compressed (.gz, .zst).
// At most limit rows; 0: all.
func readSet[T any, P interface {
	*T
	checker
}](p *Plan, name string, limit int) ([]T, error) {
	path, err := p.find(name)
	if err != nil {
		return nil, err
	}
	var out []T
	err = data.Lines(path, func(n int, line []byte) error {
		var row T
		if err := json.Unmarshal(line, &row); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if err := P(&row).check(); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if out = append(out, row); len(out) == limit {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: the set is empty", path)
	}
	return out, nil
}

// find is the file of a data set.
func (p *Plan) find(name string) (string, error) {
	var tried []string
	for _, ending := range []string{".jsonl.zst", ".jsonl.gz", ".jsonl"} {
		path := filepath.Join(p.Data, filepath.FromSlash(name)+ending)
		_, err := os.Stat(path)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		tried = append(tried, filepath.Base(path))
	}
	return "", fmt.Errorf("--data: %s has no %s (looked for %s)", p.Data, name, strings.Join(tried, ", "))
}

// source is what a result says its questions came from.
func (p *Plan) source(file string) string {
	if p.Data == "" {
		return standIn
	}
	return file
}

// missing says which of the named fields are empty.
func missing(fields ...string) error {
	for i := 0; i+1 < len(fields); i += 2 {
		if strings.TrimSpace(fields[i+1]) == "" {
			return fmt.Errorf("field %q is missing or empty", fields[i])
		}
	}
	return nil
}
