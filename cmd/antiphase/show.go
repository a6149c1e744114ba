package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"antiphase/model"
)

func showVerb(a *app) *cobra.Command {
	var asJSON, tensors bool
	c := &cobra.Command{
		Use:   "show MODEL",
		Short: "Describe a run, a checkpoint or a Hugging Face folder",
		Example: `  antiphase show runs/tiny-diff
  antiphase show runs/tiny-diff --tensors --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.show(args[0], asJSON, tensors) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	c.Flags().BoolVar(&tensors, "tensors", false, "list every parameter with its shape")
	return c
}

// shown is the description of a model.
type shown struct {
	Dir        string       `json:"dir"`
	Kind       string       `json:"kind"`
	Step       int          `json:"step,omitempty"`
	Parameters int          `json:"parameters"`
	Bytes      int          `json:"bytes_fp32"`
	Stored     int64        `json:"bytes_stored"`
	DTypes     []string     `json:"dtypes"`
	ModelType  string       `json:"model_type,omitempty"`
	Config     model.Config `json:"config"`
	Vocab      int          `json:"tokenizer_vocab,omitempty"`
	Lambda     []float64    `json:"lambda,omitempty"`
	Tensors    []paramShape `json:"tensors,omitempty"`
}

type paramShape struct {
	Name  string `json:"name"`
	Shape []int  `json:"shape"`
}

func (a *app) show(dir string, asJSON, tensors bool) error {
	d, err := a.open()
	if err != nil {
		return err
	}
	defer d.Close()
	l, err := a.load(d, dir)
	if err != nil {
		return err
	}
	disk, err := a.stored(dir)
	if err != nil {
		return err
	}
	defer disk.close()
	n := l.Model.Params.Count()
	s := shown{Dir: l.Dir, Kind: l.Kind, Step: l.Step, Parameters: n, Bytes: 4 * n, Config: l.Model.Config, Stored: disk.Bytes, DTypes: dtypeList(disk.DTypes)}
	if disk.Folder != nil {
		s.ModelType = disk.Folder.ModelType
	}
	if l.Tokenizer != nil {
		s.Vocab = l.Tokenizer.Vocab()
	}
	// λ is known after a pass: of one token, the first id. For DIFF it does not depend on the input.
	if err := l.Model.Score(&model.Batch{B: 1, T: 1, IDs: []int32{0}, Targets: []int32{0}}); err != nil {
		return err
	}
	s.Lambda = l.Model.Lambdas(nil)
	if tensors {
		for _, p := range l.Model.Params.List {
			s.Tensors = append(s.Tensors, paramShape{p.Name, p.Shape()})
		}
	}
	if asJSON {
		return a.json(s)
	}
	return a.printShown(s)
}

func (a *app) printShown(s shown) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	c := s.Config
	fmt.Fprintf(w, "folder\t%s (%s)\n", s.Dir, s.Kind)
	if s.Step > 0 {
		fmt.Fprintf(w, "step\t%d\n", s.Step)
	}
	fmt.Fprintf(w, "architecture\t%s: %s\n", c.Arch, archDoc(c.Arch))
	if s.ModelType != "" {
		fmt.Fprintf(w, "model type\t%s\n", s.ModelType)
	}
	fmt.Fprintf(w, "parameters\t%s (%.1f MiB in float32)\n", count(float64(s.Parameters)), float64(s.Bytes)/(1<<20))
	fmt.Fprintf(w, "stored\t%.1f MiB as %s\n", float64(s.Stored)/(1<<20), strings.Join(s.DTypes, ", "))
	fmt.Fprintf(w, "shape\t%d layers × %d, %d heads in %d groups of %d, ffn %d\n", c.Layers, c.Dim, c.Heads, c.KVHeads, c.HeadDim, c.FFN)
	fmt.Fprintf(w, "context\t%d tokens, vocabulary %d\n", c.Context, c.Vocab)
	if len(s.Lambda) > 0 {
		fmt.Fprintf(w, "λ by layer\t")
		for _, x := range s.Lambda {
			fmt.Fprintf(w, "%.3f ", x)
		}
		fmt.Fprintln(w)
	}
	for _, t := range s.Tensors {
		fmt.Fprintf(w, "%s\t%v\n", t.Name, t.Shape)
	}
	return w.Flush()
}
