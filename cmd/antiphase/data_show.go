package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"antiphase/data"
	"antiphase/train"
)

type dataShowFlags struct {
	step, row    int
	steps, split string
	set, out     string
	json         bool
	first, last  int // of the steps wanted
}

func dataShowVerb(a *app) *cobra.Command {
	var f dataShowFlags
	c := &cobra.Command{
		Use:   "show RUN",
		Short: "Print the rows of a past or future step of a run",
		Long: `Show prints the rows of a step: their text, or with --json their ids, targets and document
starts, one line of JSON per step. RUN needs a recipe.json or a checkpoint and its token set.

With --split valid a step is one micro-batch of the held-out loss, counted from 1.

--out writes steps as one binary file, little endian, all values int32: a header of eight, which are
the magic number 0x57525041 ("APRW"), version 1, first step, number of steps, rows B, row length T,
arrays per step (3) and vocabulary; then for each step the ids, the targets and the starts, B×T each.
A target of -1 is not scored. In Python:

  a = numpy.fromfile("rows.bin", "<i4"); h = a[:8]
  ids, targets, starts = a[8:].reshape(h[3], h[6], h[4], h[5]).transpose(1, 0, 2, 3)`,
		Example: `  antiphase data show runs/tiny-diff --step 1
  antiphase data show runs/tiny-diff --step 200 --row 3 --json
  antiphase data show runs/tiny-diff --steps 1:1050 --out rows.bin`,
		Args: exactly("RUN"),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("step") && f.step == 0 {
				return usage(errors.New("--step: is 0, must be at least 1"))
			}
			return f.run(a, args[0])
		},
	}
	fl := c.Flags()
	fl.IntVar(&f.step, "step", 0, "the step, counted from 1")
	fl.StringVar(&f.steps, "steps", "", "several steps, FIRST:LAST, both included")
	fl.IntVar(&f.row, "row", -1, "a single row of each step, counted from 0; -1 prints all")
	fl.StringVar(&f.split, "split", data.Train, "train or valid")
	fl.StringVar(&f.set, "data", "", "folder of the token set (default RUN/data)")
	fl.StringVar(&f.out, "out", "", "write ids, targets and starts to this file, in binary")
	fl.BoolVar(&f.json, "json", false, "ids, targets and starts as JSON, one line per step")
	return c
}

// check parses the steps and rejects contradictions.
func (f *dataShowFlags) check() error {
	f.first, f.last = f.step, f.step
	if f.steps != "" {
		a, b, _ := strings.Cut(f.steps, ":")
		var err1, err2 error
		f.first, err1 = strconv.Atoi(a)
		f.last, err2 = strconv.Atoi(b)
		if err1 != nil || err2 != nil {
			return fmt.Errorf("--steps: %q, want FIRST:LAST, as in 1:100", f.steps)
		}
	}
	switch {
	case (f.step != 0) == (f.steps != ""):
		return errors.New("give --step or --steps, one of them")
	case f.first < 1 || f.last < f.first:
		return fmt.Errorf("steps %d to %d: want the first at least 1 and the last not before it", f.first, f.last)
	case f.split != data.Train && f.split != data.Valid:
		return fmt.Errorf("--split: %q is unknown; there are %s and %s", f.split, data.Train, data.Valid)
	case f.row < -1:
		return fmt.Errorf("--row: is %d, must be -1, which prints all, or more", f.row)
	case f.out != "" && (f.json || f.row >= 0):
		return errors.New("--out: holds whole steps; leave --json and --row out")
	}
	return nil
}

func (f *dataShowFlags) run(a *app, dir string) (err error) {
	if err := f.check(); err != nil {
		return usage(err)
	}
	r, err := train.OpenRows(dir, f.set, f.split, func(w string) { a.note("warning: %s", w) })
	if err != nil {
		return badInput{err}
	}
	defer r.Close()
	if f.row >= r.B {
		return usage(fmt.Errorf("--row: is %d, a step has rows 0 to %d", f.row, r.B-1))
	}
	if last := r.Steps(); last > 0 && f.last > last { // a run of 0 steps is initial weights, whose length is still open
		if f.split == data.Valid {
			return usage(fmt.Errorf("step %d: the held-out loss has %d micro-batches", f.last, last))
		}
		return usage(fmt.Errorf("step %d: the run's last is %d", f.last, last))
	}
	if f.out == "" {
		return f.all(a.out, r)
	}
	if err := replaceable(f.out, "holds no rows of a run", isRows); err != nil {
		return err
	}
	return writeWhole(f.out, func(w io.Writer) error {
		header := []int32{rowsMagic, 1, int32(f.first), int32(f.last - f.first + 1), int32(r.B), int32(r.T), 3,
			int32(r.Recipe.Model.Vocab)}
		if err := binary.Write(w, binary.LittleEndian, header); err != nil {
			return err
		}
		return f.all(w, r)
	})
}

const rowsMagic = 0x57525041 // "APRW"

// isRows reports whether a file holds rows that data show wrote.
func isRows(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var magic uint32
	return binary.Read(f, binary.LittleEndian, &magic) == nil && magic == rowsMagic
}

// all writes every step.
func (f *dataShowFlags) all(to io.Writer, r *train.Rows) error {
	w := bufio.NewWriterSize(to, 1<<18)
	for n := f.first; n <= f.last; n++ {
		if err := r.At(n); err != nil {
			return usage(err)
		}
		if err := f.write(w, r, n); err != nil {
			return err
		}
	}
	return w.Flush()
}

// write prints one step in the requested form.
func (f *dataShowFlags) write(w *bufio.Writer, r *train.Rows, step int) error {
	switch {
	case f.out != "":
		for _, x := range [][]int32{r.IDs, r.Targets, r.Starts} {
			if err := binary.Write(w, binary.LittleEndian, x); err != nil {
				return err
			}
		}
		return nil
	case f.json:
		return json.NewEncoder(w).Encode(f.shown(r, step))
	}
	for _, row := range f.rows(r) {
		ids := r.IDs[row*r.T : (row+1)*r.T]
		text := fmt.Sprint(ids)
		if r.Tokenizer != nil {
			text = r.Tokenizer.Decode(ids, false)
		}
		fmt.Fprintf(w, "--- step %d, row %d\n%s\n", step, row, text)
	}
	return nil
}

// rows lists the requested rows of a step.
func (f *dataShowFlags) rows(r *train.Rows) (list []int) {
	for i := range r.B {
		if f.row < 0 || f.row == i {
			list = append(list, i)
		}
	}
	return list
}

// shownStep is one step as JSON; the lists run parallel to Rows.
type shownStep struct {
	Step    int       `json:"step"`
	Rows    []int     `json:"rows"`
	IDs     [][]int32 `json:"ids"`
	Targets [][]int32 `json:"targets"`
	Starts  [][]int32 `json:"starts"`
	Text    []string  `json:"text,omitempty"`
}

func (f *dataShowFlags) shown(r *train.Rows, step int) shownStep {
	s := shownStep{Step: step, Rows: f.rows(r)}
	for _, row := range s.Rows {
		lo, hi := row*r.T, (row+1)*r.T
		s.IDs, s.Targets, s.Starts = append(s.IDs, r.IDs[lo:hi]), append(s.Targets, r.Targets[lo:hi]),
			append(s.Starts, r.Starts[lo:hi])
		if r.Tokenizer != nil {
			s.Text = append(s.Text, r.Tokenizer.Decode(r.IDs[lo:hi], false))
		}
	}
	return s
}
