package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"antiphase/data"
	"antiphase/device"
	"antiphase/experiment"
	"antiphase/recipe"
	"antiphase/train"
)

// Every plan trains models of this size and runs the same tasks: at the end, and ten times during training. Tests use
// less.
var (
	speedrunSize  = "tiny"
	speedrunTasks = []experiment.Ask{"lm", "needle needles=1 queries=1 samples=20",
		"needle needles=4 queries=2 samples=20", "attention needles=4 queries=1 samples=10", "outliers", "samples"}
	speedrunProbes = []experiment.Ask{"needle needles=1 queries=1 samples=6"}
)

// plan is a fixed amount of work: the same plan gives the same table wherever the same kernels run.
type plan struct {
	name  string
	steps int // of each architecture, 2,048 tokens each
	doc   string
}

// plans are the speedrun's, shortest first.
var plans = []plan{
	{"short", 1000, "2.0M tokens each"},
	{"standard", 3000, "6.1M tokens each, about five minutes on two cores with AMX"},
	{"long", 12000, "24.6M tokens each"},
}

func planNames() string {
	var names []string
	for _, p := range plans {
		names = append(names, p.name)
	}
	return strings.Join(names, ", ")
}

const planPrefix = "speedrun-"

// planName is the requested plan, or the one in the folder; "" is for the machine to decide.
func (f *speedrunFlags) planName() (string, error) {
	name := f.plan
	if name == "" && !f.fresh {
		old, err := experiment.ReadSpec(f.dir)
		switch {
		case err == nil:
			name = strings.TrimPrefix(old.Name, planPrefix)
		case !errors.Is(err, fs.ErrNotExist):
			return "", badInput{err}
		}
	}
	if name != "" && !slices.ContainsFunc(plans, func(p plan) bool { return p.name == name }) {
		return "", usage(fmt.Errorf("--plan: %q is unknown; there are %s", name, planNames()))
	}
	return name, nil
}

// prepare checks everything that can be wrong with the command before anything is deleted or measured, makes room in
// the folder if --fresh is given, and returns the plan's name.
func (f *speedrunFlags) prepare() (string, error) {
	name, err := f.planName()
	if err != nil {
		return "", err
	}
	if _, err := f.spec(plans[0]); err != nil {
		return "", err
	}
	for _, text := range f.data {
		src, err := recipe.ParseSource(text)
		if err == nil {
			_, err = data.Open(src.Path)
		}
		if err != nil {
			return "", badInput{fmt.Errorf("--data: %w", err)}
		}
	}
	if f.fresh {
		return name, freshSpeedrun(f.dir)
	}
	return name, experimentError(experiment.Vacant(f.dir))
}

// choosePlan takes the plan of this name, or the longest one whose forecast fits the minutes.
func (f *speedrunFlags) choosePlan(ctx context.Context, a *app, d device.Device, name string) (plan, error) {
	a.note("measuring a training step on %s", d.Name())
	steps, err := stepTimes(ctx, func(arch string) (time.Duration, error) {
		r, err := recipe.Named(speedrunSize, arch)
		if err != nil {
			return 0, err
		}
		return train.Measure(ctx, d, r)
	})
	if err != nil {
		return plan{}, err
	}
	chosen, why := plans[0], "the shortest there is"
	for _, p := range plans {
		switch {
		case name == p.name:
			a.note("plan %s: %d steps (%s); forecast %s on %s", p.name, p.steps, p.doc,
				seconds(f.forecast(p, steps).Seconds()), d.Name())
			return p, nil
		case name == "" && f.forecast(p, steps) <= time.Duration(f.minutes*float64(time.Minute)):
			chosen, why = p, fmt.Sprintf("the longest that fits %g minutes", f.minutes)
		}
	}
	a.note("plan %s, %s at this machine's speed: %d steps (%s); forecast %s on %s", chosen.name, why, chosen.steps,
		chosen.doc,
		seconds(f.forecast(chosen, steps).Seconds()), d.Name())
	return chosen, nil
}

// slowStep is the time of a step above which it is measured once: on a machine that slow the forecast alone would take
// minutes.
const slowStep = 2 * time.Second

// stepTimes is the time of one step of each architecture together, by measure.
func stepTimes(ctx context.Context, measure func(arch string) (time.Duration, error)) (time.Duration, error) {
	var sum time.Duration
	for _, arch := range speedrunArchs {
		best := time.Duration(0)
		for try := 0; try < 2 && best <= slowStep; try++ { // other processes may occupy the CPU for a moment
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			t, err := measure(arch)
			if err != nil {
				return 0, err
			}
			if best == 0 || t < best {
				best = t
			}
		}
		sum += best
	}
	return sum, nil
}

// forecast is the time of a plan: its steps, held-out losses and probes, and data and evaluation, which do not depend
// on the steps. A step is measured alone and at its best; with the loader and real text it takes slightly longer.
func (f *speedrunFlags) forecast(p plan, step time.Duration) time.Duration {
	const slower = 1.15
	fixed := 400 * step // data, tokenizer, evaluation: equivalent to several hundred steps, measured on two cores
	seeds := max(f.seeds, 1)
	return time.Duration(float64(seeds) * (slower*float64(p.steps)*float64(step) + float64(fixed)) / float64(f.jobs))
}
