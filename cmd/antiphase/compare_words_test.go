package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"antiphase/device/cpu"
	"antiphase/dist"
	"antiphase/eval/report"
	"antiphase/experiment"
	"antiphase/train"
)

// fields are the lines of a table, with single spaces.
func fields(text string) (out []string) {
	for line := range strings.Lines(text) {
		out = append(out, strings.Join(strings.Fields(line), " "))
	}
	return out
}

// The forecast of an experiment, by hand: tokens and time are those of the runs that are left, memory that of the
// largest, as often as runs are trained at once.
func TestForecastOfAnExperiment(t *testing.T) {
	d := cpu.New(cpu.Options{Threads: 1})
	defer d.Close()
	f := &compareFlags{jobs: 2}
	f.spec.LRs, f.spec.TuneSeeds, f.spec.Sizes, f.spec.Archs = []float64{1, 2}, 1, []string{"nano"},
		[]string{"transformer", "diff"}
	list := []dryRow{{Size: "nano", Arch: "transformer", Runs: 5, Finished: 2, Parameters: 1000, Tokens: 100,
		Bytes: 3 << 30, Seconds: 7}, {Size: "nano", Arch: "diff", Runs: 4, Parameters: 1_234_567, Tokens: 1000,
		Bytes: 1 << 29, Seconds: 2000}}
	var b bytes.Buffer
	if err := f.presentForecast(&app{out: &output{Writer: &b}}, d, list, []string{"odd"}); err != nil {
		t.Fatal(err)
	}
	want := []string{"size architecture runs parameters tokens each memory training",
		"nano transformer 5 1k 100 3.00 GiB 7.0s each", "nano diff 4 1.235M 1k 0.50 GiB 33m20s each", "",
		"9 runs (4 of them to choose learning rates), 4.3k tokens, 6.00 GiB with 2 at once;",
		"2h13m of training one after the other on " + d.Name() + ", at the speed measured now; judging comes on top",
		"2 runs are finished; tokens and time in all are those of the others", "warning: odd"}
	if got := fields(b.String()); !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	b.Reset()
	f.json = true
	if err := f.presentForecast(&app{out: &output{Writer: &b}}, d, list, nil); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Runs, Finished int
		Tuning         int `json:"tuning_runs"`
		Tokens, Bytes  int64
		Seconds        float64 `json:"training_seconds"`
		Rows           []dryRow
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || got.Runs != 9 || got.Finished != 2 || got.Tuning != 4 ||
		got.Tokens != 4300 || got.Bytes != 6<<30 || got.Seconds != 8021 || !slices.Equal(got.Rows, list) {
		t.Errorf("%+v (%v)", got, err)
	}
}

// Without tasks of its own an experiment asks about needles where a prompt fits every size, and probes two of four;
// what is named is asked alone.
func TestAsksByDefault(t *testing.T) {
	needles := []experiment.Ask{"lm", "needle needles=1 queries=1 samples=20", "needle needles=4 queries=2 samples=20",
		"attention needles=4 queries=1 samples=10", "outliers"}
	probe := []experiment.Ask{"needle needles=4 queries=2 samples=8"}
	for _, x := range []struct {
		sizes, task, probe []string
		tasks, probes      []experiment.Ask
	}{
		{[]string{"tiny"}, nil, nil, needles, probe},
		{[]string{"nano"}, nil, nil, []experiment.Ask{"lm", "outliers"}, nil},
		{[]string{"tiny", "nano"}, nil, nil, []experiment.Ask{"lm", "outliers"}, nil},
		{[]string{"tiny"}, []string{"lm"}, nil, []experiment.Ask{"lm"}, probe},
		{[]string{"tiny"}, nil, []string{"none"}, needles, nil},
		{[]string{"nano"}, nil, []string{"outliers"}, []experiment.Ask{"lm", "outliers"},
			[]experiment.Ask{"outliers"}},
	} {
		f := &compareFlags{tasks: x.task, probes: x.probe}
		f.spec.Sizes, f.spec.Archs = x.sizes, []string{"diff"}
		if tasks, probes := f.asks(); !slices.Equal(tasks, x.tasks) || !slices.Equal(probes, x.probes) {
			t.Errorf("%q %q %q: %q, %q", x.sizes, x.task, x.probe, tasks, probes)
		}
	}
}

// Runs at the same time share the threads; a device for each, 64 at most.
func TestJobsShareThreads(t *testing.T) {
	for _, x := range []struct{ threads, jobs, each int }{{8, 1, 8}, {8, 2, 4}, {8, 3, 2}, {2, 4, 1},
		{0, 2, max(runtime.NumCPU()/2, 1)}} {
		a := &app{device: "cpu", precision: "fp32", kvCache: "auto", threads: x.threads}
		list, err := a.openJobs(x.jobs)
		if err != nil || len(list) != x.jobs {
			t.Fatalf("%+v: %d devices (%v)", x, len(list), err)
		}
		for _, d := range list {
			if got := d.Name(); !strings.HasPrefix(got, fmt.Sprintf("cpu: %d threads,", x.each)) {
				t.Errorf("%+v: %s", x, got)
			}
		}
		closeAll(list)
		if a.threads != x.threads {
			t.Error("the program's own threads changed")
		}
	}
	for _, n := range []int{0, -1, 65} {
		if _, err := (&app{device: "cpu", precision: "fp32", kvCache: "auto"}).openJobs(n); exitCode(err) != exitUsage {
			t.Errorf("%d jobs: %v", n, err)
		}
	}
	if _, err := (&app{device: "cpu", precision: "int8", kvCache: "auto"}).openJobs(1); err == nil ||
		exitCode(err) != exitUsage || !strings.Contains(err.Error(), "int8") {
		t.Errorf("training in int8: %v", err)
	}
}

// What a device flag may be, and who is refused.
func TestDeviceWords(t *testing.T) {
	for _, x := range []struct{ device, precision, cache, want string }{
		{"cpu", "fp32", "auto", ""}, {"cpu", "auto", "auto", ""}, {"cpu", "int8", "auto", ""},
		{"cpu:1", "auto", "auto", "is not a device"}, {"cuda:x", "auto", "auto", "is not a device"},
		{"cuda:-1", "auto", "auto", "is not a device"}, {"gpu", "auto", "auto", "is unknown"},
		{"cpu", "fp8", "auto", "--precision: "}, {"cpu", "auto", "int4", "--kv-cache: "},
		{"cpu", "auto", "int8", "needs --device cuda"}, {"cuda", "fp32", "auto", "CUDA has bf16"},
		{"cuda", "int8", "auto", "CUDA has bf16"},
	} {
		d, err := (&app{device: x.device, precision: x.precision, kvCache: x.cache}).open()
		if (err == nil) != (x.want == "") || err != nil &&
			(exitCode(err) != exitUsage || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%+v: %v", x, err)
		}
		if d != nil {
			d.Close()
		}
	}
	for _, n := range []int{-1, maxThreads + 1} {
		if _, err := (&app{device: "cpu", precision: "auto", kvCache: "auto",
			threads: n}).open(); exitCode(err) != exitUsage {
			t.Errorf("%d threads: %v", n, err)
		}
	}
}

// The line of an experiment at work: the run among all, its step or its question, the share of all work, and the time
// left if it is known.
func TestWorkLine(t *testing.T) {
	var b bytes.Buffer
	w := newWorkLine(&app{err: &b})
	show := func(p experiment.Progress) string {
		b.Reset()
		w.line.last = time.Time{} // plain lines come every few seconds
		w.progress(p)
		return strings.TrimSuffix(b.String(), "\n")
	}
	row := &train.Row{Step: 3, Total: 9, LossEMA: 1.23456, TokS: 4567}
	if got := show(experiment.Progress{Run: "a", Row: row, Finished: 1, Runs: 4, Share: 0.2,
		Left: math.NaN()}); got != "[2/4] a | step 3/9 | loss 1.2346 | 4.567k tok/s | all 20.0 %" {
		t.Errorf("%q", got)
	}
	if got := show(experiment.Progress{Run: "a", Task: "lm 3/8", Finished: 4, Runs: 4, Share: 0.5,
		Left: 100}); got != "[4/4] a | asking lm 3/8 | all 50.0 % | eta 1m40s" {
		t.Errorf("%q", got)
	}
	if got := show(experiment.Progress{Stage: "tokenizer", Done: 1, Total: 2}); got != prepareLine("tokenizer", 1, 2) ||
		strings.Contains(got, "all") {
		t.Errorf("%q", got)
	}
	if got := show(experiment.Progress{Run: "a", Runs: 1}); got != "[1/1] a | all 0.0 % | eta 0.0s" {
		t.Errorf("%q", got)
	}
	b.Reset()
	w.progress(experiment.Progress{Run: "a", Runs: 1})
	if b.Len() > 0 {
		t.Errorf("a second line at once: %q", b.String())
	}
	w.line.a.quiet = true
	if got := show(experiment.Progress{Run: "a", Runs: 1}); got != "" {
		t.Errorf("with --quiet: %q", got)
	}
}

// Verdicts are printed below the table, one line each.
func TestPrintedVerdicts(t *testing.T) {
	var b bytes.Buffer
	printVerdicts(&app{out: &output{Writer: &b}},
		&report.Experiment{Verdicts: []report.Verdict{{Verdict: "holds", Claim: "c", Figure: "f", Basis: "b"},
			{Verdict: "does not hold", Claim: "d"}}})
	if want := "\nholds                c: f (b)\ndoes not hold        d:  ()\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

// What launch-info prints: only what is known, ranks in order, every variable that was seen.
func TestLaunchText(t *testing.T) {
	r := &launchReport{Meets: "tcp://h:1", Engine: "e", Peers: []string{"h:1", "h:2"}}
	r.Launch = dist.Launch{Source: "torchrun", Rank: 1, World: 2, LocalRank: 0, LocalSize: 1, Node: 3, Job: "j",
		Master: "h", Notes: []string{"careful"},
		Seen: []dist.Finding{{Source: "torchrun", Variables: map[string]string{"WORLD_SIZE": "2", "RANK": "1"}}}}
	want := []string{"source torchrun", "rank 1 of 2", "on this machine rank 0 of 1", "node 3", "job j", "master h",
		"ranks meet tcp://h:1", "engine e", "rank 0 h:1", "rank 1 h:2",
		"torchrun says RANK=1", "torchrun says WORLD_SIZE=2", "note careful"}
	if got := fields(string(r.text())); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	alone := &launchReport{Launch: dist.Launch{Source: "single", World: 1, LocalRank: -1, Node: -1}}
	if got := fields(string(alone.text())); !slices.Equal(got,
		[]string{"source single", "rank 0 of 1", "on this machine rank unknown of unknown", "node unknown"}) {
		t.Errorf("%q", got)
	}
	for name, f := range map[string]jobFlags{"join-timeout": {join: 999 * time.Millisecond, peer: time.Second,
		stall: time.Second}, "peer-timeout": {join: time.Second, stall: time.Second},
		"stall-timeout": {join: time.Second, peer: time.Second}} {
		if _, err := f.options(); err == nil || exitCode(err) != exitUsage ||
			!strings.Contains(err.Error(), "--"+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	f := jobFlags{rendezvous: "r", iface: "i", join: time.Second, peer: 2 * time.Second, stall: 3 * time.Second}
	t.Setenv("ANTIPHASE_SECRET", "s")
	o, err := f.options()
	if err != nil || o.Rendezvous != "r" || o.Interface != "i" || string(o.Secret) != "s" ||
		o.JoinTimeout != time.Second || o.PeerTimeout != 2*time.Second || o.StallTimeout != 3*time.Second {
		t.Errorf("%+v (%v)", o, err)
	}
	l := dist.Launch{Source: "openmpi", World: 2, LocalSize: 2, LocalRank: 0}
	l.Seen = []dist.Finding{{Source: "openmpi"}}
	for told, want := range map[string]string{"": "mpi", "file:///x": "file:///x"} {
		if got, err := place(l, dist.Options{Rendezvous: told}); err != nil || got != want {
			t.Errorf("an MPI launcher told %q: %q (%v)", told, got, err)
		}
	}
}
