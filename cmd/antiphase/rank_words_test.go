package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"antiphase/device/cpu"
	"antiphase/dist"
	"antiphase/experiment"
	"antiphase/recipe"
	"antiphase/train"
)

// The part of a machine that a rank takes: its share of the cores unless threads are given, its own GPU; only rank 0
// talks.
func TestShareOfAMachine(t *testing.T) {
	for _, x := range []struct {
		l             dist.Launch
		threads       int
		want, ordinal int
		quiet         bool
	}{
		{dist.Launch{World: 1, LocalSize: 4, LocalRank: 2, Rank: 2}, 0, 0, 0, false},
		{dist.Launch{World: 4, LocalSize: 2, LocalRank: 1, Rank: 3}, 0, max(1, runtime.NumCPU()/2), 1, true},
		{dist.Launch{World: 4, LocalSize: 2, LocalRank: 0, Rank: 0}, 3, 3, 0, false},
		{dist.Launch{World: 2, LocalSize: 1, LocalRank: 0, Rank: 1}, 0, 0, 0, true},
		{dist.Launch{World: 4000, LocalSize: 1000, LocalRank: 0, Rank: 0}, 0, 1, 0, false},
		{dist.Launch{World: 2, LocalSize: 0, LocalRank: -1, Rank: 1}, 0, 0, 0, true},
	} {
		a := &app{threads: x.threads}
		if a.share(x.l); a.threads != x.want || a.ordinal != x.ordinal || a.quiet != x.quiet || a.mute != x.quiet {
			t.Errorf("%+v: %d threads, device %d, quiet %v", x.l, a.threads, a.ordinal, a.quiet)
		}
	}
	if got := sharing(dist.Launch{LocalSize: 3}, nil); got != 3 {
		t.Errorf("%d ranks share the memory", got)
	}
}

// The code that one rank's error gives all ranks: its own, unless each must decide by itself; one that was given wins.
func TestCodesOfRanks(t *testing.T) {
	for _, x := range []struct {
		err  error
		want int
	}{{errors.New("x"), 0}, {usage(errors.New("x")), exitUsage}, {badInput{errors.New("x")}, exitBadInput},
		{train.ErrInterrupted, exitTryAgain}} {
		if got := codeForAll(x.err); got != x.want {
			t.Errorf("%v: %d, want %d", x.err, got, x.want)
		}
	}
	gave := fmt.Errorf("x: %w", &dist.GaveUp{Code: 4})
	if codeGiven(gave, 9) != 4 || codeGiven(&dist.GaveUp{}, 9) != 9 || codeGiven(errors.New("x"), 9) != 9 ||
		exitCode(gave) != 4 {
		t.Error("codes that were given")
	}
	var none *team
	if none.follows() || (&team{rank: 0}).follows() || !(&team{rank: 1}).follows() {
		t.Error("who prints")
	}
}

// A verb that writes files is refused under a launcher that started several of it, others are not.
func TestOneProcess(t *testing.T) {
	for name, value := range map[string]string{"RANK": "1", "WORLD_SIZE": "3", "LOCAL_RANK": "1",
		"LOCAL_WORLD_SIZE": "3", "ANTIPHASE_LAUNCHER": ""} {
		t.Setenv(name, value)
	}
	for verb, refused := range map[string]bool{"pack": true, "speedrun": true, "export": true, "tokenizer train": true,
		"bench gemm": true, "show": false, "recipes": false, "help": false, "doctor": false} {
		c, _, err := (&app{}).command(nil).Find(strings.Fields(verb))
		if err != nil {
			t.Fatal(err)
		}
		if err := oneProcess(c); (err != nil) != refused || err != nil &&
			(exitCode(err) != exitUsage || !strings.Contains(err.Error(), "torchrun has started 3")) {
			t.Errorf("%s: %v", verb, err)
		}
	}
	t.Setenv("ANTIPHASE_LAUNCHER", "none")
	c, _, _ := (&app{}).command(nil).Find([]string{"pack"})
	if err := oneProcess(c); err != nil {
		t.Errorf("as copies: %v", err)
	}
}

// The forecast of a layout, by hand: computing is divided by the ranks, what crosses the wire comes on top.
func TestForecastOfALayout(t *testing.T) {
	d := cpu.New(cpu.Options{Threads: 1})
	defer d.Close()
	r, err := recipe.Nano("diff")
	if err != nil {
		t.Fatal(err)
	}
	way := train.Layout{Data: 2, Tensor: 2}
	f := forecastOf(r, d.Types(), way, 1e6, 8)
	w := train.WireOf(r, d.Types(), way)
	if f.Ranks != 4 || f.Compute != 2 || f.Step != 2+w.Sum()/1e6 || f.Gradients != w.Gradients ||
		f.Wire != w.Activations || w.Sum() <= 0 || f.Parameters >= 33664 || f.Bandwidth != 1e6 {
		t.Errorf("%+v", f)
	}
	var b bytes.Buffer
	forecast{Layout: "dp=2", Ranks: 2, Parameters: 1234, State: 3 << 29, Activations: 1 << 29, Gradients: 2e6,
		Wire: 5e5, Bandwidth: 12.5e9, Compute: 0.25, Step: 0.375}.print(&b, 100)
	want := []string{"layout dp=2: 2 ranks, 1.234k parameters each",
		"rank's memory 1.50 GiB weights, gradients and moments + 0.50 GiB activations",
		"on the wire 2.5 MB a step and rank: 2.0 gradients and weights, 0.5 activations",
		"expected time about 0m37s: 250.0 ms of computing a step + 125.0 ms at 12.5 GB/s, if nothing of it is hidden " +
			"(calculated)"}
	if got := fields(b.String()); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// A speedrun takes the plan that is named, then the folder's own, then the longest that fits; an unknown one is
// refused.
func TestChoosePlan(t *testing.T) {
	size := speedrunSize
	speedrunSize = "nano"
	defer func() { speedrunSize = size }()
	d := cpu.New(cpu.Options{Threads: 1})
	defer d.Close()
	var said bytes.Buffer
	choose := func(f speedrunFlags) (plan, error) {
		said.Reset()
		f.jobs = 1
		name, err := f.planName()
		if err != nil {
			return plan{}, err
		}
		return f.choosePlan(context.Background(), &app{err: &said}, d, name)
	}
	dir := t.TempDir()
	for _, x := range []struct {
		plan    string
		minutes float64
		want    string
		says    string
	}{{"long", 0.001, "long", "plan long: 12000 steps (24.6M tokens each); forecast "},
		{"", 1e5, "long", "the longest that fits 100000 minutes"},
		{"", 1e-9, "short", "plan short, the shortest there is"}} {
		if p, err := choose(speedrunFlags{plan: x.plan, minutes: x.minutes, dir: dir}); err != nil ||
			p.name != x.want || !strings.Contains(said.String(), x.says) {
			t.Errorf("%+v: %+v, %v: %s", x, p, err, said.String())
		}
	}
	spec := &experiment.Spec{Format: 1, Name: planPrefix + "standard", Sizes: []string{"nano"}, Archs: []string{"diff"}}
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "experiment.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(fmt.Sprintf(
		`{"format":1,"name":%q,"sizes":["nano"],"archs":["diff"],"seeds":[1],"tune_seeds":0,"tasks":["lm"],"eval_seed":0}`,
		spec.Name))
	if p, err := choose(speedrunFlags{minutes: 1e5, dir: dir}); err != nil || p.name != "standard" || p.steps != 3000 {
		t.Errorf("the folder's plan: %+v, %v", p, err)
	}
	if _, err := choose(speedrunFlags{plan: "endless", dir: dir}); exitCode(err) != exitUsage ||
		!strings.Contains(err.Error(), "there are short, standard, long") {
		t.Errorf("%v", err)
	}
	write("{")
	if _, err := choose(speedrunFlags{minutes: 5, dir: dir}); exitCode(err) != exitBadInput {
		t.Errorf("a damaged folder: %v", err)
	}
}

// The steps of the plans, and the time that is expected of one.
func TestStepsOfPlans(t *testing.T) {
	for _, p := range []struct {
		name  string
		steps int
	}{{"short", 1000}, {"standard", 3000}, {"long", 12000}} {
		if i := slices.IndexFunc(plans, func(x plan) bool { return x.name == p.name }); i < 0 ||
			plans[i].steps != p.steps {
			t.Errorf("plan %s", p.name)
		}
	}
	f := &speedrunFlags{jobs: 1}
	// 15 % more than the steps, and 400 of them for the rest.
	if got := f.forecast(plan{steps: 1000}, 1e6); got != 1150e6+400e6 {
		t.Errorf("%s", got)
	}
}

// The spec of a speedrun: three architectures, one seed or several in a row, ten probes.
func TestSpeedrunSpec(t *testing.T) {
	s, err := (&speedrunFlags{seed: 5, seeds: 3}).spec(plans[0])
	if err != nil || s.Name != "speedrun-short" ||
		fmt.Sprint(s.Sizes, s.Archs, s.Seeds) != "[tiny] [transformer diff diff2] [5 6 7]" || s.Steps != 1000 ||
		s.Every != 100 || s.EvalSeed != 20 || len(s.LRs) != 0 || s.Data != nil {
		t.Errorf("%+v (%v)", s, err)
	}
	asks := []experiment.Ask{"lm", "needle needles=1 queries=1 samples=20", "needle needles=4 queries=2 samples=20",
		"attention needles=4 queries=1 samples=10", "outliers", "samples"}
	if !slices.Equal(s.Tasks, asks) ||
		!slices.Equal(s.Probes, []experiment.Ask{"needle needles=1 queries=1 samples=6"}) {
		t.Errorf("%q, %q", s.Tasks, s.Probes)
	}
	if s, err = (&speedrunFlags{seed: 5}).spec(plans[0]); err != nil || fmt.Sprint(s.Seeds) != "[5]" {
		t.Errorf("%+v (%v)", s, err)
	}
	if got := calledAs("/tmp/go-build123/b001/exe/antiphase"); got != "go run ./cmd/antiphase" ||
		calledAs("./ap") != "./ap" {
		t.Errorf("%q", got)
	}
	for _, x := range []struct{ models, want int }{{0, 2}, {1, 1}, {2, 2}, {3, 0}} {
		f := &attendFlags{models: slices.Repeat([]string{"m"}, x.models), prompt: "p", cells: 1}
		if text, err := f.text(true); (err == nil) != (x.want > 0) || err == nil &&
			(text != "p" || len(f.models) != x.want) {
			t.Errorf("%d models: %q, %v", x.models, text, err)
		}
	}
}
