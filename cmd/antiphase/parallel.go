package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"antiphase/device"
	"antiphase/dist"
	"antiphase/recipe"
	"antiphase/train"
)

// parseLayout parses --parallel for a world of ranks; world 0 accepts any number. If dp or tp is omitted it follows
// from the other and the number of ranks.
func parseLayout(text string, world int) (train.Layout, error) {
	l := train.Layout{Tensor: 1}
	seen := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(value)
		switch {
		case err != nil:
			return l, usage(fmt.Errorf("--parallel: %q, want key=number, such as dp=4,tp=2,zero=1", part))
		case seen[key]:
			return l, usage(fmt.Errorf("--parallel: %s is given twice", key))
		case n < 0 || n == 0 && key != "zero":
			return l, usage(fmt.Errorf("--parallel: %q, must be 1 or more", part))
		}
		seen[key] = true
		switch {
		case key == "dp":
			l.Data = n
		case key == "tp":
			l.Tensor = n
		case key == "zero" && n <= 1:
			l.Shard = n == 1
		case key == "zero":
			return l, usage(fmt.Errorf("--parallel: zero=%d; there are 0, and 1, which shards the moments", n))
		default:
			return l, usage(fmt.Errorf("--parallel: %q is unknown; there are dp, tp and zero", key))
		}
	}
	if l.Data == 0 {
		l.Data = max(world/l.Tensor, 1)
	}
	if world > 0 && l.Ranks() != world {
		return l, usage(fmt.Errorf("--parallel: dp=%d × tp=%d is %d ranks, but there are %d", l.Data, l.Tensor,
			l.Ranks(), world))
	}
	l.Shard = l.Shard && l.Data > 1
	return l, nil
}

// layout is --parallel, or what fits the present ranks. A dry run may name a layout for other ranks.
func (f *trainFlags) layout(l dist.Launch, d device.Device, r recipe.Recipe) (way train.Layout, err error) {
	switch {
	case !(f.bandwidth > 0) || math.IsInf(f.bandwidth, 0):
		return way, usage(fmt.Errorf("--bandwidth: is %g GB/s, must be positive and finite", f.bandwidth))
	case f.parallel == "" && l.World == 1:
		return train.Layout{Data: 1, Tensor: 1}, nil
	case f.parallel == "":
		way = train.Fit(r, d.Types(), l.World, spare(l, d))
	case f.dry && l.World == 1:
		way, err = parseLayout(f.parallel, 0)
	default:
		way, err = parseLayout(f.parallel, l.World)
	}
	if err == nil {
		if err = way.Check(r); err != nil {
			err = usage(fmt.Errorf("--parallel: %w", err))
		}
	}
	return way, err
}

// spare is the memory that a rank may use.
func spare(l dist.Launch, d device.Device) int64 {
	return device.SpareOf(d) / int64(max(sharing(l, d), 1))
}

// agreedLayout is way if it was requested; otherwise it is chosen again for the rank with the least memory, because all
// ranks need the same layout.
func (f *trainFlags) agreedLayout(job *dist.Job, d device.Device, r recipe.Recipe,
	way train.Layout) (train.Layout, error) {
	if f.parallel != "" {
		return way, nil
	}
	all, err := job.Exchange("memory", strconv.AppendInt(nil, spare(job.Launch, d), 10))
	if err != nil {
		return way, err
	}
	least := int64(math.MaxInt64)
	for _, v := range all {
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			least = min(least, n)
		}
	}
	return train.Fit(r, d.Types(), job.Launch.World, least), nil
}

// sharing is the number of ranks that share one pool of memory: those of a machine, or one if each has its own GPU.
func sharing(l dist.Launch, d device.Device) int {
	if _, gpu := d.(dist.Streamer); gpu {
		return 1
	}
	return l.LocalSize
}

// forecast is a layout's forecast for a step.
type forecast struct {
	Layout      string  `json:"layout"`
	Ranks       int     `json:"ranks"`
	Parameters  int     `json:"parameters_per_rank"`
	State       int64   `json:"state_bytes_per_rank"`
	Activations int64   `json:"activation_bytes_per_rank"`
	Gradients   float64 `json:"wire_bytes_gradients"`
	Wire        float64 `json:"wire_bytes_activations"`
	Bandwidth   float64 `json:"bandwidth_bytes_per_second"`
	Compute     float64 `json:"compute_seconds_per_step"`
	Step        float64 `json:"seconds_per_step_nothing_hidden"`
}

// forecastOf computes the forecast; compute is one rank's time for a whole batch.
func forecastOf(r recipe.Recipe, t device.Types, way train.Layout, bandwidth, compute float64) forecast {
	if rows := r.Train.Batch / max(way.Data, 1); r.Train.MicroBatch > rows {
		r.Train.MicroBatch = rows
	}
	m, w := train.MemoryOf(r, t, way), train.WireOf(r, t, way)
	f := forecast{Layout: way.String(), Ranks: way.Ranks(), Parameters: r.Model.PartCount(max(way.Tensor, 1)),
		State: m.State, Activations: m.Activations, Gradients: w.Gradients, Wire: w.Activations, Bandwidth: bandwidth}
	f.Compute = compute / float64(f.Ranks)
	f.Step = f.Compute + w.Sum()/bandwidth
	return f
}

// print formats the forecast for display.
func (f forecast) print(out io.Writer, steps int) {
	fmt.Fprintf(out, "layout         %s: %d ranks, %s parameters each\n", f.Layout, f.Ranks,
		count(float64(f.Parameters)))
	fmt.Fprintf(out, "rank's memory  %.2f GiB weights, gradients and moments + %.2f GiB activations\n",
		gib(int(f.State)), gib(int(f.Activations)))
	fmt.Fprintf(out, "on the wire    %.1f MB a step and rank: %.1f gradients and weights, %.1f activations\n",
		(f.Gradients+f.Wire)/1e6, f.Gradients/1e6, f.Wire/1e6)
	fmt.Fprintf(out, "expected time  about %s: %.1f ms of computing a step + %.1f ms at %.1f GB/s, if nothing of it "+
		"is hidden (calculated)\n",
		seconds(f.Step*float64(steps)), 1e3*f.Compute, 1e3*(f.Step-f.Compute), f.Bandwidth/1e9)
}
