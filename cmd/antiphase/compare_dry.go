package main

import (
	"context"
	"fmt"
	"slices"
	"text/tabwriter"

	"antiphase/device"
	"antiphase/experiment"
	"antiphase/model"
	"antiphase/train"
)

// dryRow is one size and architecture of an experiment's forecast.
type dryRow struct {
	Size       string  `json:"size"`
	Arch       string  `json:"arch"`
	Runs       int     `json:"runs"`
	Finished   int     `json:"finished,omitempty"` // of them, in the folder or in --have
	Parameters int     `json:"parameters"`
	Tokens     int64   `json:"tokens"` // of one run
	Bytes      int     `json:"bytes"`  // memory of one run: weights, gradients, moments and activations
	Seconds    float64 `json:"seconds"`
	Expected   bool    `json:"expected,omitempty"` // by FLOPs: too large to be tried
}

// forecast prints the forecast of an experiment; steps are measured on random tokens.
func (f *compareFlags) forecast(ctx context.Context, a *app, d device.Device) error {
	seen := map[[2]string]bool{}
	runs, err := f.spec.Grid(func(size, arch string) (float64,
		bool) { // the best rate does not change the time
		if len(f.spec.LRs) > 0 {
			return f.spec.LRs[0], true
		}
		return 0, false
	})
	if err != nil {
		return err
	}
	_, precision := computes(d)
	finished, err := f.spec.Finished(experiment.Options{Dir: f.dir, Have: f.have, Precision: precision})
	if err == nil {
		err = f.spec.Fed(ctx, f.dir)
	}
	if err != nil {
		return experimentError(err)
	}
	var list []dryRow
	var speeds []experiment.Speed
	for i := range runs {
		r := &runs[i]
		key := [2]string{r.Size, r.Arch}
		if seen[key] {
			continue
		}
		seen[key] = true
		row := dryRow{Size: r.Size, Arch: r.Arch, Runs: runsOf(r, runs)}
		row.Finished = min(runsOf(r, finished), row.Runs)
		if err := row.measure(ctx, a, d, r); err != nil {
			return err
		}
		list = append(list, row)
		if _, flops := r.Recipe.Model.FLOPs(r.Recipe.Train.SeqLen); row.Finished < row.Runs {
			speeds = append(speeds, experiment.Speed{Size: r.Size, Arch: r.Arch, FLOPs: flops,
				Seconds: row.Seconds / float64(row.Tokens)})
		}
	}
	return f.presentForecast(a, d, list, slices.Concat(experiment.Unequal(runs), experiment.Slow(speeds)))
}

// runsOf counts the runs of a run's size and architecture.
func runsOf(r *experiment.Run, runs []experiment.Run) (n int) {
	for i := range runs {
		if runs[i].Size == r.Size && runs[i].Arch == r.Arch {
			n++
		}
	}
	return n
}

// measure computes what a run needs, and its time if any is left to train.
func (row *dryRow) measure(ctx context.Context, a *app, d device.Device, r *experiment.Run) error {
	t := r.Recipe.Train
	memory := train.MemoryOf(r.Recipe, d.Types(), train.Layout{})
	row.Parameters, row.Tokens = model.Table(r.Recipe.Model).Count(), int64(t.Steps)*int64(t.Batch*t.SeqLen)
	row.Bytes = int(memory.State + memory.Activations)
	if row.Finished == row.Runs {
		return nil
	}
	if row.Expected = !train.Measurable(d, r.Recipe); !row.Expected {
		a.note("measuring a training step of %s %s on %s", r.Size, r.Arch, d.Name())
	}
	step, err := train.Measure(ctx, d, r.Recipe)
	row.Seconds = step.Seconds() * float64(t.Steps)
	return err
}

// basis says what the times of the sides that are left to train are based on, "" if none is.
func basis(list []dryRow) string {
	measured, expected := false, false
	for _, r := range list {
		if r.Finished < r.Runs {
			measured, expected = measured || !r.Expected, expected || r.Expected
		}
	}
	switch {
	case measured && expected:
		return "at the speeds measured now or estimated from FLOPs"
	case expected:
		return "estimated from FLOPs"
	case measured:
		return "at the speed measured now"
	}
	return ""
}

func (f *compareFlags) presentForecast(a *app, d device.Device, list []dryRow, warnings []string) error {
	runs, finished, tokens, most, total := 0, 0, int64(0), 0, 0.0
	for _, r := range list {
		open := r.Runs - r.Finished
		runs, finished, tokens, total = runs+r.Runs, finished+r.Finished, tokens+int64(open)*r.Tokens,
			total+float64(open)*r.Seconds
		if open > 0 {
			most = max(most, r.Bytes)
		}
	}
	if f.json {
		return a.json(map[string]any{"runs": runs, "finished": finished, "tuning_runs": f.spec.TuningRuns(),
			"tokens": tokens, "bytes": most * f.jobs,
			"training_seconds": total, "device": d.Name(), "rows": list, "warnings": warnings})
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "size\tarchitecture\truns\tparameters\ttokens each\tmemory\ttraining\t")
	for _, r := range list {
		each := seconds(r.Seconds) + " each"
		if r.Finished == r.Runs {
			each = "finished"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%.2f GiB\t%s\t\n", r.Size, r.Arch, r.Runs,
			count(float64(r.Parameters)), count(float64(r.Tokens)), gib(r.Bytes), each)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	how := basis(list)
	if how == "" {
		fmt.Fprintf(a.out, "\nall %d runs are finished: nothing is left to train\n", runs)
	} else {
		fmt.Fprintf(a.out, "\n%d runs (%d of them to choose learning rates), %s tokens, %.2f GiB with %d at once;\n"+
			"%s of training one after the other on %s, %s; judging comes on top\n", runs, f.spec.TuningRuns(),
			count(float64(tokens)), gib(most*f.jobs), f.jobs, seconds(total), d.Name(), how)
	}
	for _, r := range list {
		if r.Expected {
			fmt.Fprintf(a.out, "%s %s is too large to be tried here; its time is estimated from its FLOPs\n",
				r.Size, r.Arch)
		}
	}
	if finished > 0 && how != "" {
		fmt.Fprintf(a.out, "%d runs are finished; tokens and time in all are those of the others\n", finished)
	}
	for _, s := range warnings {
		fmt.Fprintln(a.out, "warning: "+s)
	}
	return nil
}
