package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"antiphase/eval"
	"antiphase/eval/report"
	"antiphase/metrics"
	"antiphase/model"
	"antiphase/recipe"
)

type scalingFlags struct {
	by, at  string
	byGiven bool
	seed    uint64
	output  string
	json    bool
}

func scalingVerb(a *app) *cobra.Command {
	var f scalingFlags
	c := &cobra.Command{
		Use:   "scaling RUN...",
		Short: "Fit loss against parameters or tokens, and compare what architectures need for equal loss",
		Long: `Scaling reads the held-out losses of run folders and fits L(x) = E + A·x^−α for each architecture.
By parameters, x is a run's size and L its last loss; runs should have trained on the same number of tokens, with at least
three sizes of each architecture. By tokens, x is the number of training tokens at each held-out loss of one run of each
architecture. The others are compared with the architecture of the first run: the fraction of its largest x that they need
for its loss, with a bootstrap interval. With --at tokens=160B the result is what the first needs for the loss that the
others reach after 160 billion tokens, as the paper reads its figure. The interval by tokens accounts for the correlation of
losses along one run.`,
		Example: `  antiphase scaling runs/t-*  runs/d-* --output results/scaling
  antiphase scaling --by tokens runs/speedrun/runs/tiny-transformer-lr0.001-s1 runs/speedrun/runs/tiny-diff-lr0.001-s1
  antiphase scaling --at tokens=20M runs/speedrun/runs/tiny-transformer-lr0.001-s1 runs/speedrun/runs/tiny-diff-lr0.001-s1`,
		Args: atLeastOne("RUN"),
		RunE: func(cmd *cobra.Command, runs []string) error {
			f.byGiven = cmd.Flags().Changed("by")
			return f.run(a, runs)
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.by, "by", "parameters", "x of the curves: parameters or tokens")
	fl.StringVar(&f.at, "at", "", "where to compare: tokens=160B or parameters=1.4B of the others, with K, M, B or T "+
		"(default: the first's largest)")
	fl.Uint64Var(&f.seed, "seed", 1, "random seed of the bootstrap")
	fl.StringVarP(&f.output, "output", "o", "", "folder to write the result to, for \"antiphase report\"")
	fl.BoolVar(&f.json, "json", false, "print the result as JSON")
	return c
}

// point parses --at, which also selects the x of the curves.
func (f *scalingFlags) point() (float64, error) {
	if f.at == "" {
		return 0, nil
	}
	by, text, ok := strings.Cut(f.at, "=")
	if !ok || by != "tokens" && by != "parameters" || text == "" {
		return 0, fmt.Errorf("--at: %q is not a point; want tokens=160B or parameters=1.4B", f.at)
	}
	if f.byGiven && f.by != by {
		return 0, fmt.Errorf("--at: %q contradicts --by %s", f.at, f.by)
	}
	f.by = by
	unit := 1.0
	if u, ok := map[byte]float64{'k': 1e3, 'm': 1e6, 'b': 1e9, 't': 1e12}[text[len(text)-1]|0x20]; ok {
		unit, text = u, text[:len(text)-1]
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x > 0) || !eval.Finite(x*unit) {
		return 0, fmt.Errorf("--at: %q is not a number; want 160B, 1.4B or 2e9", f.at)
	}
	return x * unit, nil
}

func (f *scalingFlags) run(a *app, runs []string) error {
	if f.by != "parameters" && f.by != "tokens" {
		return usage(fmt.Errorf("--by: %q is unknown; there are parameters and tokens", f.by))
	}
	at, err := f.point()
	if err != nil {
		return usage(err)
	}
	curves, err := readCurves(a, runs, f.by)
	if err != nil {
		return badInput{err}
	}
	r, err := eval.Scaling(f.by, curves, at, f.seed)
	if err != nil {
		return badInput{err}
	}
	if f.output != "" {
		b, err := json.MarshalIndent(r, "", " ")
		if err != nil {
			return err
		}
		if err := os.MkdirAll(f.output, 0o755); err != nil {
			return err
		}
		if err := writeBytes(filepath.Join(f.output, fmt.Sprintf(scalingFile, f.by)), append(b, '\n')); err != nil {
			return err
		}
	}
	if f.json {
		return a.json(r)
	}
	fmt.Fprint(a.out, report.ScalingTable(r, a.colored(a.out)))
	return nil
}

// readCurves collects the points of run folders by architecture, in order of first appearance.
func readCurves(a *app, runs []string, by string) ([]eval.ScalingCurve, error) {
	var out []eval.ScalingCurve
	for _, dir := range runs {
		var r recipe.Recipe
		if err := r.Read(filepath.Join(dir, "recipe.json")); err != nil {
			return nil, fmt.Errorf("%s is not a run folder: %w", dir, err)
		}
		points, err := heldOutLosses(a, filepath.Join(dir, metrics.FileName))
		if err != nil {
			return nil, err
		}
		if by == "parameters" {
			points = []eval.ScalingPoint{{X: float64(model.Table(r.Model).Count()), Loss: points[len(points)-1].Loss}}
		}
		at := slices.IndexFunc(out, func(c eval.ScalingCurve) bool { return c.Name == r.Model.Arch })
		if at < 0 {
			at = len(out)
			out = append(out, eval.ScalingCurve{Name: r.Model.Arch})
		} else if by == "tokens" {
			return nil, fmt.Errorf("%s: a second run of %s; by tokens there is one of each architecture",
				dir, r.Model.Arch)
		}
		out[at].Points = append(out[at].Points, points...)
	}
	return out, nil
}
