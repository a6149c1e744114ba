package eval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"antiphase/data"
)

// errEnough ends reading when there are as many rows as wanted.
var errEnough = errors.New("enough")

// Row is a row of a data set that can report missing or wrong fields.
type Row interface{ Check() error }

// ReadSet reads the rows of data set name ("mc/piqa_val") below the data folder: a .jsonl file, which may be compressed
// (.gz, .zst). At most limit rows; 0 reads all.
func ReadSet[T any, P interface {
	*T
	Row
}](ctx context.Context, p *Plan, name string, limit int) ([]T, error) {
	path, err := p.Find(ctx, name)
	if err != nil {
		return nil, err
	}
	var out []T
	err = data.Lines(path, func(n int, line []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		var row T
		if err := data.ReadJSON(line, &row); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if err := P(&row).Check(); err != nil {
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

// Find returns the file of a data set. Its content becomes part of the result's identity.
func (p *Plan) Find(ctx context.Context, name string) (string, error) {
	var tried []string
	for _, ending := range []string{".jsonl.zst", ".jsonl.gz", ".jsonl"} {
		path := filepath.Join(p.Data, filepath.FromSlash(name)+ending)
		_, err := os.Stat(path)
		if err == nil {
			return path, p.Uses(ctx, path)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		tried = append(tried, filepath.Base(path))
	}
	return "", fmt.Errorf("--data: %s has no %s (looked for %s)", p.Data, name, strings.Join(tried, ", "))
}

// Source is the origin of the questions as stated in a result.
func (p *Plan) Source(file string) string {
	if p.Data == "" {
		return StandIn
	}
	return file
}

// Missing reports which of the named fields are empty; arguments are names and values in turn.
func Missing(fields ...string) error {
	for i := 0; i+1 < len(fields); i += 2 {
		if strings.TrimSpace(fields[i+1]) == "" {
			return fmt.Errorf("field %q is missing or empty", fields[i])
		}
	}
	return nil
}

// errNotPlain is a folder, a pipe or a device instead of a file: reading some of them never ends.
var errNotPlain = errors.New("it is not a plain file")

// Uses makes the content of a file or folder part of the result's identity: other content under the same name is
// another question.
func (p *Plan) Uses(ctx context.Context, path string) error {
	if _, ok := p.files[path]; ok {
		return nil
	}
	h := sha256.New()
	err := filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if st, err := os.Stat(name); err != nil || !st.Mode().IsRegular() {
			return errors.Join(err, fmt.Errorf("%s: %w", name, errNotPlain))
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(h, stoppable{ctx, f})
		return err
	})
	if err == nil {
		p.files[path] = hex.EncodeToString(h.Sum(nil))
	}
	return err
}

// stoppable is a reader that stops when its context ends.
type stoppable struct {
	ctx context.Context
	io.Reader
}

func (s stoppable) Read(b []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.Reader.Read(b)
}

// dataHash is the content of all files read, in the order of their names.
func (p *Plan) dataHash() []string {
	var out []string
	for _, path := range slices.Sorted(maps.Keys(p.files)) {
		out = append(out, p.files[path])
	}
	return out
}

// HashText hashes texts.
func HashText(texts ...string) string {
	h := sha256.New()
	for _, text := range texts {
		fmt.Fprintf(h, "%d ", len(text))
		io.WriteString(h, text)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
