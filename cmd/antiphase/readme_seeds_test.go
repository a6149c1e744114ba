package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"antiphase/eval/report"
	"antiphase/experiment"
	"antiphase/results"
)

// README's sentences about retrieval quote the committed rows.
func TestReadmeRetrieval(t *testing.T) {
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(b)), " ")
	_, diff2 := retrieved(t, "retrieval-tiny", "diff2")
	list, diff := retrieved(t, "retrieval-tiny", "diff")
	_, plain := retrieved(t, "retrieval-tiny", baseline)
	_, free := retrieved(t, "v1-study", "diff-nonorm")
	if _, same := retrieved(t, "v1-study", "diff"); same != diff {
		t.Errorf("DIFF gives %.1f %% in v1-study and %.1f %% in retrieval-tiny", same, diff)
	}
	low, high := slices.Min(list), slices.Max(list)
	_, smallDiff := retrieved(t, "retrieval-small", "diff")
	_, smallPlain := retrieved(t, "retrieval-small", baseline)
	_, smallDiff2 := retrieved(t, "retrieval-small", "diff2")
	doubled, err := os.ReadFile(filepath.Join("..", "..", "results", "speedrun-seeds-2e-3.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf("DIFF V2 retrieves two of four needles in %.1f %% of the cases, DIFF in %.1f %% (%.4g to %.4g "+
			"%%, depending on the seed), the Transformer in %.1f %%, and DIFF without its norm over heads in %.1f %%.",
			diff2, diff, low, high, plain, free),
		fmt.Sprintf("no difference in retrieval is significant over five seeds: DIFF retrieves %.1f %%, the "+
			"Transformer %.1f %%, "+
			"DIFF V2 %.1f %%;",
			smallDiff, smallPlain, smallDiff2),
		fmt.Sprintf("All use 5e-4, the best of %s rates over three seeds.", tried(t, "retrieval-small")),
		fmt.Sprintf("each architecture at its best of %s rates, DIFF V2", tried(t, "retrieval-tiny")),
		fmt.Sprintf("with the standard plan in %d of 10 seeds, with the long plan in %d of 10, against %d and %d of "+
			"10 for the Transformer.",
			passed(t, "standard", "diff2"), passed(t, "long", "diff2"), passed(t, "standard", baseline),
			passed(t, "long", baseline)),
		"the median held-out losses of the standard plan are " + losses(t, doubled) + " instead of " +
			losses(t, results.SpeedrunSeeds) + ":",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("README.md does not say: %s", want)
		}
	}
}

// README's sentences about text follow from the rows of 160m and small.
func TestReadmeText(t *testing.T) {
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var list [9]any
	var loss, noise [3]any
	for i, arch := range []string{baseline, "diff", "diff2"} {
		list[i] = overSeeds(t, "160m-text", arch, "lm.loss", 3)
		list[3+i] = overSeeds(t, "160m-text", arch, "lm.ar_hit", 3)
		list[6+i] = 100 * overSeeds(t, "160m-text", arch, "attention.noise", 3)
		loss[i] = overSeeds(t, "small-text", arch, "lm.loss", 3)
		noise[i] = 100 * overSeeds(t, "small-text", arch, "attention.noise", 3)
	}
	want := fmt.Sprintf("The held-out losses are %.3f (Transformer), %.3f (DIFF) and %.3f (V2), on tokens that "+
		"recall an earlier bigram %.3f, %.3f and %.3f; attention noise is %.0f %%, %.0f %% and %.0f %%.", list[:]...)
	tuned := fmt.Sprintf("the losses are %.3f, %.3f and %.3f,", loss[:]...) +
		fmt.Sprintf(" and attention noise is %.0f %%, %.0f %% and %.0f %%.", noise[:]...)
	for _, want := range []string{want, tuned} {
		if !strings.Contains(strings.Join(strings.Fields(string(b)), " "), want) {
			t.Errorf("README.md does not say: %s", want)
		}
	}
}

// overSeeds is the mean of a measure over n seeds at the side's best learning rate.
func overSeeds(t *testing.T, name, arch, measure string, n int) (mean float64) {
	t.Helper()
	rows, err := experiment.ReadRowFiles(filepath.Join("..", "..", "results", "evidence", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	seeds, best := 0, experiment.Choose(rows)
	for _, r := range rows {
		first, _, _ := strings.Cut(r.Measure, " ")
		if r.Arch == arch && first == measure && r.LR == best[[2]string{r.Size, arch}] {
			mean += r.Value
			seeds++
		}
	}
	if seeds != n {
		t.Fatalf("%s has %d values of %s of %s, README speaks of %d seeds", name, seeds, measure, arch, n)
	}
	return mean / float64(n)
}

// retrieved is the share of two of four needles that the seeds of a side give at its best learning rate, and the mean,
// in %.
func retrieved(t *testing.T, name, arch string) (list []float64, mean float64) {
	t.Helper()
	rows, err := experiment.ReadRowFiles(filepath.Join("..", "..", "results", "evidence", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	best := experiment.Choose(rows)
	for _, r := range rows {
		if r.Arch == arch && r.LR == best[[2]string{r.Size, arch}] && r.Measure == "needle.bound N=4 R=2" {
			list = append(list, 100*r.Value)
			mean += 100 * r.Value
		}
	}
	if len(list) != 5 {
		t.Fatalf("%s has %d seeds of %s, README speaks of 5", name, len(list), arch)
	}
	return list, mean / float64(len(list))
}

// tried is the number of learning rates of an experiment, in words.
func tried(t *testing.T, name string) string {
	t.Helper()
	rows, err := experiment.ReadRowFiles(filepath.Join("..", "..", "results", "evidence", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	rates := map[float64]bool{}
	for _, r := range rows {
		rates[r.LR] = true
	}
	return map[int]string{1: "one", 2: "two", 3: "three", 4: "four", 5: "five"}[len(rates)]
}

// passed is the number of a plan's 10 seeds in which an architecture has left the floor of two of four needles.
func passed(t *testing.T, name, arch string) (n int) {
	t.Helper()
	p := plans[slices.IndexFunc(plans, func(p plan) bool { return p.name == name })]
	known, err := experiment.ReadRepeats(results.SpeedrunSeeds, p.name, p.steps)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range known {
		if x.Measure == "needle.bound N=4 R=2" && len(x.Seeds) == 10 {
			for _, v := range x.Values[arch] {
				if v > 0.5 {
					n++
				}
			}
			return n
		}
	}
	t.Fatalf("the %s plan was not run on 10 seeds", name)
	return 0
}

// losses are the medians of the standard plan's held-out losses, in README's words.
func losses(t *testing.T, seeds []byte) string {
	t.Helper()
	known, err := experiment.ReadRepeats(seeds, "standard", 3000)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range known {
		if x.Measure == "lm.loss" && len(x.Seeds) == 10 {
			var of [3]float64
			for i, arch := range speedrunArchs {
				v := slices.Sorted(slices.Values(x.Values[arch]))
				of[i] = (v[4] + v[5]) / 2
			}
			return fmt.Sprintf("%.3f, %.3f and %.3f", of[0], of[1], of[2])
		}
	}
	t.Fatal("the standard plan was not run on 10 seeds")
	return ""
}

// Seed 1 of the standard plan over seeds is README's table: the same kernels gave both.
func TestReadmeSeedOne(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "results", "speedrun.json"))
	if err != nil {
		t.Fatal(err)
	}
	var page report.Page
	if err := json.Unmarshal(b, &page); err != nil {
		t.Fatal(err)
	}
	known, err := experiment.ReadRepeats(results.SpeedrunSeeds, "standard", 3000)
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]float64{} // architecture and measure
	for _, m := range page.Evaluation.Models {
		for _, r := range m.Results {
			for _, x := range r.Metrics {
				key := m.Arch + " " + r.Kind + "." + x.Name
				if n := r.Config["needles"]; n != nil {
					key += fmt.Sprintf(" N=%v R=%v", n, r.Config["queries"])
				}
				of[key] = x.Value
			}
		}
	}
	for _, k := range known {
		for _, arch := range speedrunArchs {
			want, ok := of[arch+" "+k.Measure]
			if got := k.Values[arch][0]; !ok || k.Seeds[0] != 1 || !(math.Abs(got-want) <= 1e-5*math.Abs(want)) {
				t.Errorf("%s of %s: %g with seed %d of the plan, %g in the table", k.Measure, arch, got,
					k.Seeds[0], want)
			}
		}
	}
	if len(known) == 0 {
		t.Error("the standard plan was not run over seeds")
	}
}
