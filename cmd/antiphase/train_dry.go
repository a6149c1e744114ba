package main

import (
	"context"
	"fmt"

	"antiphase/device"
	"antiphase/layer"
	"antiphase/model"
	"antiphase/recipe"
	"antiphase/train"
)

// forecast prints the forecast of a run.
func (f *trainFlags) forecast(ctx context.Context, a *app, d device.Device, r recipe.Recipe, way train.Layout) error {
	sources, err := a.sourceRows(ctx, r)
	if err != nil {
		return err
	}
	n := model.Table(r.Model).Count()
	forward, all := r.Model.FLOPs(r.Train.SeqLen)
	tokens := float64(r.Train.Steps) * float64(r.Train.Batch*r.Train.SeqLen)
	memory := train.MemoryOf(r, d.Types(), train.Layout{})
	state, acts := int(memory.State), int(memory.Activations)
	step := train.Expected(d, r).Seconds()
	eta := step * float64(r.Train.Steps)
	cast := forecastOf(r, d.Types(), way, f.bandwidth*1e9, step)
	if f.json {
		return a.json(map[string]any{"arch": r.Model.Arch, "parameters": n, "flops_per_token_forward": forward,
			"flops_per_token": all, "state_bytes": state, "activation_bytes": acts, "steps": r.Train.Steps,
			"tokens": tokens, "expected_seconds": eta, "device": d.Name(), "sources": sources,
			"parallel": cast})
	}
	fmt.Fprintf(a.out, "architecture   %s (%s)\n", r.Model.Arch, archDoc(r.Model.Arch))
	fmt.Fprintf(a.out, "parameters     %s\n", count(float64(n)))
	fmt.Fprintf(a.out, "FLOPs/token    %s forward, %s with backward\n", count(forward), count(all))
	fmt.Fprintf(a.out,
		"memory         %.2f GiB weights, gradients and moments + %.2f GiB activations (train.recompute=%s)\n",
		gib(state), gib(acts), r.Train.Recompute)
	fmt.Fprintf(a.out, "steps          %d of %d × %d tokens = %s tokens\n", r.Train.Steps, r.Train.Batch,
		r.Train.SeqLen, count(tokens))
	fmt.Fprintf(a.out, "expected time  about %s on %s\n", seconds(eta), d.Name())
	if cast.Ranks > 1 {
		cast.print(a.out, r.Train.Steps)
	}
	fmt.Fprintln(a.out)
	return printSources(a.out, sources)
}

func gib(n int) float64 { return float64(n) / (1 << 30) }

func archDoc(name string) string {
	if a, err := layer.LookupArch(name); err == nil {
		return a.Doc
	}
	return name
}
