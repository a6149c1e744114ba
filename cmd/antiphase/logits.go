package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"antiphase/internal/safetensors"
	"antiphase/model"
)

type logitsFlags struct {
	model, ids, file, out string
	json                  bool
}

func logitsVerb(a *app) *cobra.Command {
	var f logitsFlags
	c := &cobra.Command{
		Use:   "logits",
		Short: "Print the raw logits of a sequence of token ids",
		Example: `  antiphase logits --model runs/tiny-diff --ids 1,2,3 --json
  antiphase logits --model hf-folder --ids-file ids.txt --out logits.safetensors`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return f.run(a) },
	}
	fl := c.Flags()
	fl.StringVarP(&f.model, "model", "m", "", modelWords)
	fl.StringVar(&f.ids, "ids", "", "token ids, separated by commas")
	fl.StringVar(&f.file, "ids-file", "", "file of token ids, separated by commas or white space")
	fl.StringVar(&f.out, "out", "", "write a safetensors file with input_ids and logits [T, vocabulary]")
	fl.BoolVar(&f.json, "json", false, "print all logits as JSON (default: the five highest of each position)")
	return c
}

func (f *logitsFlags) read() ([]int32, error) {
	s := f.ids
	switch {
	case f.ids != "" && f.file != "" || f.ids == "" && f.file == "":
		return nil, usage(errors.New("give --ids or --ids-file, one of them"))
	case f.file != "":
		var err error
		if s, err = readFile(f.file, "ids-file"); err != nil {
			return nil, err
		}
	}
	var ids []int32
	for _, w := range strings.FieldsFunc(s, func(r rune) bool {
		return r == ',' || r == ' ' || r == '\n' || r == '\t' || r == '\r' || r == '[' || r == ']'
	}) {
		n, err := strconv.ParseInt(w, 10, 32)
		if err != nil {
			return nil, usage(fmt.Errorf("ids: entry %d, %q, is not a token id", len(ids)+1, w))
		}
		ids = append(ids, int32(n))
	}
	if len(ids) == 0 {
		return nil, usage(errors.New("ids: there are none"))
	}
	return ids, nil
}

func (f *logitsFlags) run(a *app) error {
	if a.precision == "auto" && !strings.HasPrefix(a.device, "cuda") {
		a.precision = "fp32" // what others compare with
	}
	ids, err := f.read()
	if err != nil {
		return err
	}
	if f.out != "" {
		if err := replaceableLogits(f.out); err != nil {
			return err
		}
	}
	d, err := a.open()
	if err != nil {
		return err
	}
	defer d.Close()
	l, err := a.load(d, f.model)
	if err != nil {
		return err
	}
	if n := l.Model.Config.Context; len(ids) > n {
		return usage(fmt.Errorf("ids: there are %d, the model's context is %d", len(ids), n))
	}
	v := l.Model.Config.Vocab
	out := make([]float32, len(ids)*v)
	if err := l.Model.Logits(&model.Batch{B: 1, T: len(ids), IDs: ids}, out); err != nil {
		return usage(err)
	}
	if f.out != "" {
		if err := writeLogits(f.out, ids, out, v); err != nil {
			return err
		}
		a.note("wrote %s", f.out)
	}
	if f.json {
		rows := make([][]float32, len(ids))
		for i := range rows {
			rows[i] = out[i*v : (i+1)*v]
		}
		return a.json(map[string]any{"ids": ids, "vocab": v, "logits": rows})
	}
	if f.out == "" {
		printTop(a, l, ids, out, v)
	}
	return nil
}

// printTop shows the five most likely next tokens of each position.
func printTop(a *app, l *loaded, ids []int32, out []float32, v int) {
	for i, id := range ids {
		row := out[i*v : (i+1)*v]
		fmt.Fprintf(a.out, "%4d  id %-6d →", i, id)
		for _, k := range top(row, 5) {
			fmt.Fprintf(a.out, "  %d", k)
			if l.Tokenizer != nil {
				fmt.Fprintf(a.out, " %q", l.Tokenizer.Token(int32(k)))
			}
			fmt.Fprintf(a.out, " %.4f", row[k])
		}
		fmt.Fprintln(a.out)
	}
}

// top lists the indices of the n largest values, largest first, ties by index.
func top(x []float32, n int) []int {
	var best []int
	for i := range x {
		at := len(best)
		for at > 0 && x[i] > x[best[at-1]] {
			at--
		}
		if at < n {
			best = append(best[:at], append([]int{i}, best[at:]...)...)
			best = best[:min(len(best), n)]
		}
	}
	return best
}

// writeLogits writes a safetensors file atomically.
func writeLogits(path string, ids []int32, out []float32, v int) error {
	wide := make([]int64, len(ids))
	for i, id := range ids {
		wide[i] = int64(id)
	}
	return writeWhole(path, func(w io.Writer) error {
		return safetensors.Write(w, []safetensors.Entry{
			safetensors.FromInt64s("input_ids", []int{len(ids)}, wide),
			safetensors.FromFloat32s("logits", "F32", []int{len(ids), v}, out),
		}, nil)
	})
}
