package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"antiphase/hf"
	"antiphase/model"
)

func showVerb(a *app) *cobra.Command {
	var asJSON, tensors bool
	c := &cobra.Command{
		Use:   "show MODEL",
		Short: "Describe a run, a checkpoint or a Hugging Face folder",
		Example: `  antiphase show runs/tiny-diff
  antiphase show runs/tiny-diff --tensors --json`,
		Args: exactly("MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return showModel(cmd.Context(), a, args[0], asJSON, tensors)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
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
	LambdaOf   string       `json:"lambda_of,omitempty"`  // the token whose λ it is, if λ depends on the token
	LambdaMin  *float64     `json:"lambda_min,omitempty"` // over layers and heads, at the last step
	LambdaMax  *float64     `json:"lambda_max,omitempty"`
	Run        *shownRun    `json:"run,omitempty"`
	Tensors    []paramShape `json:"tensors,omitempty"`
}

type paramShape struct {
	Name  string `json:"name"`
	Shape []int  `json:"shape"`
}

// showModel reads the files; only a λ that depends on the token needs the model itself.
func showModel(ctx context.Context, a *app, name string, asJSON, tensors bool) error {
	d, err := openStored(ctx, a, name)
	if err != nil {
		return err
	}
	defer d.close()
	table := model.Table(d.Config)
	n := table.Count()
	s := shown{Dir: d.Dir, Kind: d.Kind, Parameters: n, Bytes: 4 * n, Config: d.Config, Stored: d.Bytes,
		DTypes: dtypeList(d.DTypes)}
	if d.Saved != nil {
		s.Step = d.Saved.State.Step
		describeRun(a, &s, d.Saved)
	}
	if d.Folder != nil {
		s.ModelType = d.Folder.ModelType
	}
	if d.Tokenizer != nil {
		s.Vocab = d.Tokenizer.Vocab()
	}
	known := false
	if s.Lambda, known, err = hf.Lambdas(d.Config, d.Values); err != nil {
		return badInput{err}
	}
	if !known {
		s.LambdaOf = "the first id"
		if s.Lambda, err = passLambda(a, name); err != nil {
			return err
		}
	}
	if tensors {
		for _, p := range table.List {
			s.Tensors = append(s.Tensors, paramShape{p.Name, p.Shape()})
		}
	}
	if asJSON {
		return a.json(s)
	}
	return printShown(a, s)
}

// passLambda is λ by layer for a pass over one token, the first id.
func passLambda(a *app, name string) ([]float64, error) {
	d, err := a.open()
	if err != nil {
		return nil, err
	}
	defer d.Close()
	l, err := a.load(d, name)
	if err != nil {
		return nil, err
	}
	if err := l.Model.Score(&model.Batch{B: 1, T: 1, IDs: []int32{0}, Targets: []int32{0}}); err != nil {
		return nil, err
	}
	return l.Model.Lambdas(nil), nil
}

func printShown(a *app, s shown) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	c := s.Config
	fmt.Fprintf(w, "folder\t%s (%s)\n", s.Dir, s.Kind)
	s.Run.print(w)
	fmt.Fprintf(w, "architecture\t%s: %s\n", c.Arch, archDoc(c.Arch))
	if s.ModelType != "" {
		fmt.Fprintf(w, "model type\t%s\n", s.ModelType)
	}
	fmt.Fprintf(w, "parameters\t%s (%.1f MiB in float32)\n", count(float64(s.Parameters)), float64(s.Bytes)/(1<<20))
	fmt.Fprintf(w, "stored\t%.1f MiB as %s\n", float64(s.Stored)/(1<<20), strings.Join(s.DTypes, ", "))
	fmt.Fprintf(w, "shape\t%d layers × %d, %d heads in %d groups of %d, ffn %d\n", c.Layers, c.Dim, c.Heads, c.KVHeads,
		c.HeadDim, c.FFN)
	fmt.Fprintf(w, "context\t%d tokens, vocabulary %d\n", c.Context, c.Vocab)
	if len(s.Lambda) > 0 {
		fmt.Fprintf(w, "λ by layer\t")
		for _, x := range s.Lambda {
			fmt.Fprintf(w, "%.3f ", x)
		}
		if s.LambdaOf != "" {
			fmt.Fprintf(w, "(of %s; it depends on the text)", s.LambdaOf)
		}
		fmt.Fprintln(w)
	}
	if s.LambdaMin != nil {
		fmt.Fprintf(w, "λ in training\t%.3f to %.3f over layers and heads at the last step\n",
			*s.LambdaMin, *s.LambdaMax)
	}
	for _, t := range s.Tensors {
		fmt.Fprintf(w, "%s\t%v\n", t.Name, t.Shape)
	}
	return w.Flush()
}
