package experiment

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"

	"antiphase/data"
	"antiphase/internal/vfs"
)

// line is a row in a file. What the rows of a run have in common is written once: a line that names no run belongs to
// the run of the line before it, a task of which only the question is given was described earlier in that run, and y
// without at has the tokens of the curve before it. Lines that repeat everything are read too.
type line struct {
	Row
	At []float64 `json:"at,omitempty"` // training tokens of a curve's points
	Y  []float64 `json:"y,omitempty"`  // their values
}

// given is a line as it is read: a line without a value must not become one of value 0.
type given struct {
	line
	Value *float64 `json:"value"`
}

// common is what the lines of a run have shown so far.
type common struct {
	of    origin
	tasks map[string]*TaskInfo // by question
	at    []float64
}

// begin forgets the run before.
func (c *common) begin(of origin) { *c = common{of: of, tasks: map[string]*TaskInfo{}} }

// shorten makes the line of a row.
func (c *common) shorten(r *Row) line {
	x := line{Row: *r}
	if r.origin == c.of {
		x.origin = origin{}
	} else {
		c.begin(r.origin)
	}
	if t := r.Task; t != nil {
		if reflect.DeepEqual(c.tasks[t.Question], t) {
			x.Task = &TaskInfo{Question: t.Question}
		}
		c.tasks[t.Question] = t
	}
	if x.Curve = nil; len(r.Curve) > 0 {
		at := make([]float64, len(r.Curve))
		for i, p := range r.Curve {
			at[i], x.Y = p[0], append(x.Y, p[1])
		}
		if !slices.Equal(at, c.at) {
			x.At, c.at = at, at
		}
	}
	return x
}

// complete makes the row of a line.
func (c *common) complete(x *line) error {
	switch {
	case x.Run != "":
		c.begin(x.origin)
	case x.origin != origin{} || c.of == origin{}:
		return errors.New("not a row of an experiment: it has no run")
	default:
		x.origin = c.of
	}
	if t := x.Task; t != nil {
		if full := c.tasks[t.Question]; full != nil && t.Kind == "" {
			x.Task = full
		} else if t.Kind == "" {
			return fmt.Errorf("task %q of %s is not described before it is referred to", t.Question, x.Run)
		} else {
			c.tasks[t.Question] = t
		}
	}
	if len(x.At) > 0 {
		c.at = x.At
	}
	if len(x.Y) > 0 {
		if len(x.Y) != len(c.at) || len(x.Curve) > 0 {
			return fmt.Errorf(
				"%s of %s has %d values at %d tokens, and %d pairs: want as many values as tokens, or pairs",
				x.Measure, x.Run, len(x.Y), len(c.at), len(x.Curve))
		}
		for i, y := range x.Y {
			x.Curve = append(x.Curve, [2]float64{c.at[i], y})
		}
	}
	return x.check()
}

// ReadRows reads rows, one JSON object per line.
func ReadRows(r io.Reader) ([]Row, error) {
	var out []Row
	var c common
	in := bufio.NewScanner(r)
	in.Buffer(nil, 16<<20)
	for n := 1; in.Scan(); n++ {
		if len(bytes.TrimSpace(in.Bytes())) == 0 {
			continue
		}
		var x given
		if err := json.Unmarshal(in.Bytes(), &x); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if x.Value == nil {
			return nil, fmt.Errorf("line %d: not a row of an experiment: it has no value", n)
		}
		x.Row.Value = *x.Value
		x.escape()
		if err := c.complete(&x.line); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		out = append(out, x.Row)
	}
	return out, in.Err()
}

// ReadRowFiles reads the rows of some files.
func ReadRowFiles(paths ...string) ([]Row, error) {
	var out []Row
	for _, path := range paths {
		if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
			return nil, fmt.Errorf("%s: %w", path, vfs.ErrNotRegular) // reading a pipe may never end
		}
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		rows, err := ReadRows(f)
		_ = f.Close() // opened for reading only
		if err != nil {
			return nil, &data.CorruptError{File: path, Fault: err.Error()}
		}
		out = append(out, rows...)
	}
	return out, nil
}

// Encode is rows as a file holds them, one JSON object per line.
func Encode(rows []Row) ([]byte, error) {
	var b bytes.Buffer
	var c common
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	for i := range rows {
		x := c.shorten(&rows[i])
		if err := e.Encode(&x); err != nil {
			return nil, fmt.Errorf("row %s of %s: %w", rows[i].Measure, rows[i].Run, err)
		}
	}
	return b.Bytes(), nil
}
