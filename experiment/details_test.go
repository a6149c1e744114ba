package experiment

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"antiphase/eval"
)

// The evaluation of rows has everything that they say about a model, a question and its answers.
func TestEvaluationOfRows(t *testing.T) {
	info := &TaskInfo{Name: "~needle", Kind: "needle", Question: "q", Place: 3, Version: 2, Context: 64, Seed: 20,
		Config: map[string]any{"needles": 4.0}}
	rows := seeded(v1, "needle.bound", 0.5)
	for i := range rows {
		rows[i].Machine, rows[i].Commit, rows[i].Parameters = "m", "c", 700
	}
	r := &rows[1]
	r.Metric, r.Label, r.Better, r.StdErr, r.N, r.Task = "bound", "beside its key, %", eval.Higher, 0.25, 2, info
	r.Floors, r.Detail, r.Items = map[string]float64{"copy": 0.25}, json.RawMessage(`{"a":1}`), []float64{1, 0}
	free := *r
	free.Measure, free.Metric, free.Label, free.Value, free.Detail = "needle.free", "free", "anywhere, %", 0.75, nil
	probe, alone := *r, *r // a curve over training, and a number without a question, are no scores
	probe.Measure, probe.Metric = "probe.needle.bound", ""
	alone.Measure, alone.Task = "other.bound", nil
	e := newFinal(append(rows, free, probe, alone)).eval
	if e.Machine != "m" || e.Commit != "c" || e.Seed != 20 || e.Date != "" || len(e.Models) != 1 ||
		len(e.Models[0].Results) != 1 {
		t.Fatalf("%+v", e)
	}
	if got, want := e.Models[0].Model,
		(eval.Model{Name: "diff", Group: "diff", Hash: "diff-s1", Arch: v1, Parameters: 700,
			Context: 64}); got != want {
		t.Errorf("model %+v, want %+v", got, want)
	}
	got := e.Models[0].Results[0]
	if got.Question != "q" || got.Task != "~needle" || got.Kind != "needle" || got.Place != 3 || got.Version != 2 ||
		got.Context != 64 || got.N != 2 ||
		string(got.Detail) != `{"a":1}` || !reflect.DeepEqual(got.Config, info.Config) || len(got.Answers) != 2 ||
		len(got.Metrics) != 2 {
		t.Errorf("%+v", got)
	}
	for i, want := range []eval.Metric{{Name: "bound", Label: "beside its key, %", Mean: eval.Mean{Value: 0.5}},
		{Name: "free", Label: "anywhere, %", Mean: eval.Mean{Value: 0.75}}} {
		m := got.Metrics[i]
		if m.Name != want.Name || m.Label != want.Label || m.Value != want.Value || m.Better != eval.Higher ||
			m.StdErr != 0.25 || m.N != 2 || !maps.Equal(m.Floors, r.Floors) {
			t.Errorf("%+v, want %+v", m, want)
		}
	}
}

// What a plan says of its cells is what their commands ask for: sides, learning rates and seeds, all of one name.
func TestCellsAreTheirCommands(t *testing.T) {
	for _, c := range cells {
		all := func(flag string) (out []string) {
			for _, m := range regexp.MustCompile(`--`+flag+
				` (?:"([^"]*)"|'([^']*)'|(\S+))`).FindAllStringSubmatch(c.command, -1) {
				out = append(out, m[1]+m[2]+m[3])
			}
			return out
		}
		sides := three // the default of compare
		if list := all("arch"); list != nil {
			sides = strings.Split(list[0], ",")
		}
		sides = slices.Clone(sides)
		for _, v := range all("variant") {
			sides = append(sides, strings.Fields(v)[0])
		}
		if !slices.Equal(slices.Sorted(slices.Values(sides)), slices.Sorted(slices.Values(c.sides))) {
			t.Errorf("%s has the sides %q, its command %q", c.name, c.sides, sides)
		}
		rates := 1
		if list := all("lr"); list != nil {
			rates = len(strings.Split(list[0], ","))
		}
		seeds, err := strconv.Atoi(strings.Join(all("seeds"), " "))
		if err != nil || rates != c.rates || seeds != c.seeds {
			t.Errorf("%s has %d rates and %d seeds, its command %d and %d (%v)", c.name, c.rates, c.seeds,
				rates, seeds, err)
		}
		if !slices.Equal(all("name"), []string{c.name}) || !slices.Equal(all("dir"), []string{"runs/" + c.name}) ||
			c.what == "" {
			t.Errorf("%s is described as %q and runs %s", c.name, c.what, c.command)
		}
	}
}

// Every word of a page is explained.
func TestWordsAreExplained(t *testing.T) {
	list := Summarize(nil).Experiment.Words
	if len(list) < 10 {
		t.Fatalf("%d words", len(list))
	}
	for i, w := range list {
		if w.Word == "" || w.Says == "" {
			t.Errorf("word %d is %q: %q", i, w.Word, w.Says)
		}
	}
	var e evidence
	e.words()
	for _, w := range list {
		if line := prose("- ", fmt.Sprintf("**%s**: %s.", w.Word,
			strings.TrimSuffix(w.Says, "."))); !strings.Contains(e.String(), line) {
			t.Errorf("no %q in %s", line, e.String())
		}
	}
}

// A side of one size has nothing of another: rates, seeds, losses, curves and tables.
func TestSizesAreSeparate(t *testing.T) {
	var rows []Row
	add := func(size, arch string, lr float64, seed uint64, loss float64) {
		r := at(arch, lr, seed, heldOut, loss)
		r.Size, r.Run, r.Parameters, r.Tokens = size, fmt.Sprintf("%s-%s-%g-%d", size, arch, lr, seed), 1000, 1e6
		rows = append(rows, r)
	}
	add("tiny", plain, 1, 2, 7)
	add("tiny", plain, 1, 1, 5)
	add("tiny", plain, 2, 1, 6)
	add("tiny", v1, 1, 3, 6)
	add("small", plain, 1, 1, 3)
	add("small", plain, 2, 1, 2)
	f := newFinal(rows)
	want := `[["tiny" "transformer" "1" "2 1" "5.0000" "▸"] ["tiny" "transformer" "2" "1" "6.0000" ""] ["tiny" "diff" "1" "3" "6.0000" "▸"] ` +
		`["small" "transformer" "1" "1" "3.0000" ""] ["small" "transformer" "2" "1" "2.0000" "▸"]]`
	if got := fmt.Sprintf("%q", f.tuning.grid().Rows[1:]); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	const ends = " The lowest rate tried was chosen for tiny transformer: a lower one may be better." +
		" The highest rate tried was chosen for small transformer: a higher one may be better."
	if got := f.tuning.ends(); got != ends {
		t.Errorf("%q, want %q", got, ends)
	}
	add("tiny", plain, 0.5, 1, 9)
	add("small", plain, 4, 1, 9)
	if got := newFinal(rows).tuning.ends(); got != "" {
		t.Errorf("%q for rates between others", got)
	}
	if got, want := there(f),
		"tiny transformer: 2 seeds (1, 2) at lr 1; tiny diff: 1 seed (3) at lr 1; small transformer: 1 seed (1) at "+
			"lr 2; 1M tokens a run"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	lead := f.lead()
	start := "tiny transformer (2 seeds), tiny diff (1 seed), small transformer (1 seed): of the claims"
	if !strings.HasPrefix(lead, start) || !strings.Contains(lead, " With one seed errors") {
		t.Errorf("%q, want %q", lead, start)
	}
	for size, run := range map[string]string{"tiny": "tiny-transformer-1-1", "small": "small-transformer-2-1"} {
		if got := f.runRow(size, plain, 1)[0]; got != run {
			t.Errorf("%s: %s, want %s", size, got, run)
		}
	}
	if list := f.allSized(); len(list) != 3 {
		t.Errorf("a side without a run is counted: %+v", list)
	}
	c := &cell{sides: []string{v1}, rates: 1, seeds: 2}
	if n := c.finished(f); n != 1 {
		t.Errorf("%d runs of the plan's side", n)
	}
	if got := there(&final{}); got != "not run" {
		t.Errorf("without rows: %q", got)
	}
}

// A page has the rule with how rates were chosen, the curves, and the tokens that a run took to retrieve.
func TestPageOfProbes(t *testing.T) {
	rows := slices.Concat(probed(plain, 1e6), probed(v1, 3e6))
	p := Summarize(rows)
	if p.Experiment.Rule != rule+" One learning rate was tried for each architecture, so nothing was tuned." ||
		len(p.Experiment.Curves) != 1 ||
		!slices.Equal(p.Brief["needle"], []string{"bound", "constrained", "free"}) || p.Brief["samples"] == nil ||
		len(p.Brief["samples"]) != 0 {
		t.Errorf("%q, %d curves, %v", p.Experiment.Rule, len(p.Experiment.Curves), p.Brief)
	}
	list := p.Experiment.Tables[len(p.Experiment.Tables)-1].Rows
	if got := fmt.Sprintf("%q", list[1:]); got !=
		`[["transformer-s1" "0" "2M" "1.0000" "1M" "–" "–"] ["diff-s1" "0" "2M" "1.0000" "3M" "–" "–"]]` {
		t.Errorf("%s", got)
	}
	failed := at(v1, 1, 2, Failed, 60)
	failed.Run, failed.Tokens, failed.Steps = "diff-s2", 2_000_000, 90
	if got := newFinal(append(rows, failed)).runRow("tiny", v1, 2); !slices.Equal(got,
		[]string{"diff-s2", "0", "2M", "diverged after 60 of 90 steps", "–", "–", "–"}) {
		t.Errorf("%q", got)
	}
}

// A score is on its floor if its interval reaches it, up to the last digit; floors of 0 and errors have none.
func TestOnAFloor(t *testing.T) {
	for _, x := range []struct {
		value, stderr float64
		floors        map[string]float64
		better        eval.Better
		floor         float64
		on            bool
	}{
		{0.25, 0, map[string]float64{"copy": 0.25, "chance": 0.125}, eval.Higher, 0.25, true},
		{0.2501, 0, map[string]float64{"copy": 0.25, "chance": 0.125}, eval.Higher, 0.25, false},
		{0.5, 0.125, map[string]float64{"copy": 0.25}, eval.Higher, 0.25, false}, // 0.5 − 0.245
		{0.5, 0.128, map[string]float64{"copy": 0.25}, eval.Higher, 0.25, true},  // 0.5 − 0.251
		{0, 0, map[string]float64{"chance": 0}, eval.Higher, 0, false},
		{0, 0, nil, eval.Higher, 0, false},
		{0.1, 0, map[string]float64{"copy": 0.25}, eval.Lower, 0.25, false},
	} {
		r := Row{Value: x.value, StdErr: x.stderr, Floors: x.floors, Better: x.better}
		if floor, on := r.floored(); floor != x.floor || on != x.on {
			t.Errorf("%+v: %g, %v", x, floor, on)
		}
	}
}

// A folder with its token set needs no sources.
func TestFedBySet(t *testing.T) {
	s, dir := nanoSpec(8), t.TempDir()
	s.Data = []string{filepath.Join(dir, "gone.txt")}
	if err := s.Fed(t.Context(), dir); err == nil {
		t.Error("a source that is not there is enough")
	}
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data", "manifest.json"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.Fed(t.Context(), dir); err != nil {
		t.Error(err)
	}
}
