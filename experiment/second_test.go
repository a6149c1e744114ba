package experiment

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"antiphase/data"
	"antiphase/recipe"
)

// What a task reads unless its ask says otherwise: the held-out text in pieces of a row, 128 of them, prompts of three
// quarters of a row, and eight rows for outliers alone.
func TestDefaultsOfAsks(t *testing.T) {
	for ask, want := range map[Ask]string{
		"lm": "length=64 pieces=128 text=set:S", "lm pieces=8 length=9": "length=9 pieces=8 text=set:S",
		"outliers":          "length=64 text=set:S tokens=512",
		"outliers tokens=7": "length=64 text=set:S tokens=7", "needle needles=3": "lengths=48 needles=3",
		"attention lengths=5": "lengths=5",
	} {
		list, err := tasks([]Ask{ask}, "S", 64)
		if err != nil || len(list) != 1 {
			t.Fatalf("%q: %v", ask, err)
		}
		var got []string
		for set := reflect.ValueOf(list[0]).FieldByName("preset").MapRange(); set.Next(); {
			got = append(got, set.Key().String()+"="+set.Value().String())
		}
		slices.Sort(got)
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%q: %s, want %s", ask, text, want)
		}
	}
}

// Every size of a grid must be able to answer and to be probed, not only the first; a probe at the last step alone is
// one.
func TestAsksOfEverySize(t *testing.T) {
	run := func(size string, steps, row, room int) Run {
		r := Run{Size: size, Recipe: recipe.Recipe{Train: recipe.Train{Steps: steps, SeqLen: row}}}
		r.Recipe.Model.Context = room
		return r
	}
	wide, low := run("wide", 9, 32, 64), run("low", 5, 16, 16)
	s := &Spec{Tasks: []Ask{"outliers length=32"}, Probes: []Ask{"lm"}, Every: 5}
	for _, x := range []struct {
		runs []Run
		set  func()
		says string
	}{
		{[]Run{wide}, func() {}, ""},
		{[]Run{wide, low}, func() {}, `--task: "outliers length=32": length is 32, must be 2 to the context, 16`},
		{[]Run{low, wide}, func() { s.Tasks = []Ask{"lm"} }, ""},
		{[]Run{wide, low}, func() { s.Every = 6 }, "--probe-every: is 6, but runs of size low have 5 steps"},
		{[]Run{wide, low}, func() { s.Probes = nil }, ""},
		{[]Run{wide, low},
			func() { s.Probes, s.Every = []Ask{"lm", "outliers length=17"}, 1 }, `--probe: "outliers length=17"`},
	} {
		x.set()
		if err := s.checkAsks(x.runs); (err == nil) != (x.says == "") ||
			err != nil && !strings.Contains(err.Error(), x.says) {
			t.Errorf("%+v: %v, want %q", s, err, x.says)
		}
	}
	if got := rooms([]Run{wide, low, wide}); !slices.Equal(got, []room{{32, 64}, {16, 16}}) {
		t.Errorf("%v", got)
	}
}

// A side is compared with the first of its own size, whatever other sizes have.
func TestUnequalOfSizes(t *testing.T) {
	of := func(size, arch string, n int) sized { return sized{side{size, arch}, size + " " + arch, n} }
	got := unequal([]sized{of("a", "x", 1000), of("b", "x", 2000), of("a", "y", 1009), of("b", "y", 2040),
		of("a", "z", 900)})
	want := []string{"unequal parameters: b y has 2040, b x 2000 (+2.0 %)",
		"unequal parameters: a z has 900, a x 1000 (−10.0 %)"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// A measure that was asked in two ways keeps both rows, and the first counts; a run that is there twice counts once.
// Sides stand in the order of the architectures, whatever rate each has.
func TestFinalByHand(t *testing.T) {
	asked := func(arch string, lr float64, seed uint64, question string, value float64) Row {
		r := at(arch, lr, seed, "lm.loss", value)
		r.Run, r.Metric, r.Task = fmt.Sprintf("%s-%g-%d", arch, lr, seed), "loss",
			&TaskInfo{Name: "lm", Kind: "lm", Question: question}
		return r
	}
	var rows []Row
	for _, lr := range []float64{1, 2} {
		for _, arch := range []string{plain, v1} {
			loss := at(arch, lr, 1, heldOut, lr)
			if arch == plain { // its best rate is the second
				loss.Value = 3 - lr
			}
			loss.Run = fmt.Sprintf("%s-%g-1", arch, lr)
			rows = append(rows, loss, asked(arch, lr, 1, "q", 10*lr), asked(arch, lr, 1, "r", 20*lr),
				asked(arch, lr, 1, "q", 99))
		}
	}
	f := newFinal(rows)
	named := slices.Clone(rows[:1])
	named[0].Experiment = "another"
	if n := len(unique(append(named, rows...))); n != 1+3*4 {
		t.Errorf("%d rows of two experiments whose runs have the same names", n)
	}
	var got []string
	for _, r := range f.rows {
		got = append(got, fmt.Sprintf("%s %s %g", r.Run, r.Measure, r.Value))
	}
	want := []string{"transformer-2-1 train.valid_loss 1", "transformer-2-1 lm.loss 20", "transformer-2-1 lm.loss 40",
		"diff-1-1 train.valid_loss 1", "diff-1-1 lm.loss 10", "diff-1-1 lm.loss 20"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if v := f.values("tiny", plain, "lm.loss")[1].Value; v != 20 {
		t.Errorf("of two ways to ask %g counts", v)
	}
	var sides []string
	for _, s := range f.eval.Sides() {
		sides = append(sides, s.Name)
	}
	if !slices.Equal(sides, []string{plain, v1}) || len(f.eval.Models[0].Results) != 2 {
		t.Errorf("sides %q, %d results", sides, len(f.eval.Models[0].Results))
	}
}

// Means of the tuning grid are over the seeds that every rate has; the column of seeds has all.
func TestGridOfCommonSeeds(t *testing.T) {
	var rows []Row
	for _, x := range []struct {
		lr, loss float64
		seed     uint64
	}{{1, 2, 1}, {1, 4, 2}, {2, 3, 1}} {
		r := at(v1, x.lr, x.seed, heldOut, x.loss)
		r.Run = fmt.Sprintf("diff-%g-%d", x.lr, x.seed)
		rows = append(rows, r)
	}
	f := newFinal(rows)
	if got := fmt.Sprintf("%q", f.tuning.grid().Rows[1:]); got !=
		`[["tiny" "diff" "1" "1 2" "2.0000" "▸"] ["tiny" "diff" "2" "1" "3.0000" ""]]` {
		t.Errorf("%s", got)
	}
	if list := f.tables(); len(list) != 2 || list[0].Title != "Tuning grid" || list[1].Title != "Runs compared" ||
		len(list[1].Rows) != 3 {
		t.Errorf("%+v", list)
	}
	if list := newFinal(rows[:2]).tables(); len(list) != 1 || list[0].Title != "Runs compared" {
		t.Errorf("of one rate: %+v", list)
	}
}

// Rows from elsewhere must be those of this run: steps, tokens, text, parameters, choice and tasks; a run that diverged
// was not asked anything.
func TestFits(t *testing.T) {
	s := nanoSpec(8)
	runs, err := s.Grid(nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &runs[0]
	for what, x := range map[string]struct {
		change func(*Row)
		last   string
		tasks  bool
		says   string
	}{
		"as it is": {func(*Row) {}, Finished, true, ""},
		"other steps": {func(x *Row) { x.Steps++ }, Finished, true,
			"had 9 steps and 1024 tokens there, 8 and 1024 here"},
		"other tokens":           {func(x *Row) { x.Tokens++ }, Finished, true, "1025 tokens there"},
		"other text":             {func(x *Row) { x.Data = "b" }, Finished, true, "(set b, here a)"},
		"text that nobody noted": {func(x *Row) { x.Data = "" }, Finished, true, ""},
		"other parameters": {func(x *Row) { x.Parameters = 7 }, Finished, true,
			fmt.Sprintf("had 7 parameters there, %d here", r.parameters())},
		"another choice": {func(x *Row) { x.Tuned = "lm.loss" + orLoss }, Finished, true,
			"was chosen by lm.loss there: --tune-by"},
		"no tasks": {func(*Row) {}, Finished, false, `was not asked "lm pieces=8" there`},
		"diverged": {func(*Row) {}, Failed, false, ""}, "diverged late": {func(*Row) {}, Failed, true, ""},
		"cut": {func(*Row) {}, "lm.loss", true, "not those of one finished run"},
	} {
		base := Row{origin: origin{Experiment: s.Name, Run: r.Name(), Size: r.Size, Arch: r.Arch, LR: r.LR,
			Seed: r.Seed, Parameters: r.parameters(), Steps: 8, Tokens: 8 * 4 * 32, Data: "a"}}
		x.change(&base)
		var rows []Row
		for _, m := range []string{"lm.loss", "outliers.logits_max"} {
			if row := base; x.tasks {
				if row.Measure = m; x.last == Failed {
					row.Measure = "curve.train_loss"
				}
				rows = append(rows, row)
			}
		}
		end := base
		end.Measure, end.Value = x.last, float64(len(rows))
		err := s.fits(r, append(rows, end), "a")
		if (err == nil) != (x.says == "") || err != nil && !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v, want %q", what, err, x.says)
		}
		if what == "other text" && s.fits(r, append(rows, end), "") != nil {
			t.Error("text is compared before there is any")
		}
	}
}

// A file of rows must have some of the experiment of this name.
func TestRowsOfThisName(t *testing.T) {
	s := nanoSpec(8)
	if err, bad := s.named("f", nil), (*data.CorruptError)(nil); !errors.As(err, &bad) || bad.File != "f" ||
		bad.Fault != "has no rows" {
		t.Errorf("no rows: %v", err)
	}
	others := []Row{{origin: origin{Experiment: "a"}}, {origin: origin{Experiment: "b"}},
		{origin: origin{Experiment: "a"}}}
	if err := s.named("f", others); !errors.Is(err, ErrOther) ||
		!strings.Contains(err.Error(), `f has rows of a, b and none of "nano"`) {
		t.Errorf("other experiments: %v", err)
	}
	if err := s.named("f", append(others, Row{origin: origin{Experiment: "nano"}})); err != nil {
		t.Error(err)
	}
}

// Settings reach the recipe in order: those of all, then a variant's own; the amount of generated text follows the
// steps unless it is given, or the text is a mixture.
func TestRecipeSettings(t *testing.T) {
	s := nanoSpec(20)
	s.Set, s.Variants = []string{"optim.beta2=0.9", "optim.beta1=0.8"}, []Variant{"low diff optim.beta2=0.7"}
	of := func(arch string) recipe.Recipe {
		t.Helper()
		r, err := s.recipe(&Run{Size: "nano", Arch: arch, LR: 1, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := of("low"); r.Optim.Beta2 != 0.7 || r.Optim.Beta1 != 0.8 || r.Model.Arch != "diff" ||
		r.Name != "nano-low-lr1-s1" {
		t.Errorf("a variant: %+v", r.Optim)
	}
	if r := of("diff"); r.Optim.Beta2 != 0.9 {
		t.Errorf("the side itself: %+v", r.Optim)
	}
	s.Set, s.Variants = []string{"data.max_tokens=300000"}, nil
	if r := of("diff"); r.Data.MaxTokens != 300000 {
		t.Errorf("as given: %d tokens", r.Data.MaxTokens)
	}
	s.Set, s.Data = nil, []string{"synthetic:docs=20@0.5", "synthetic:docs=30@0.5"}
	if r := of("diff"); r.Data.MaxTokens != 0 || len(r.Data.Sources) != 2 {
		t.Errorf("a mixture: %+v", r.Data)
	}
	for want, change := range map[string]func(){
		"--set: ":          func() { s.Set, s.Data = []string{"optim.beta9=1"}, nil },
		"--variant: low: ": func() { s.Set, s.Variants = nil, []Variant{"low diff optim.beta9=1"} },
		"--data: ":         func() { s.Variants, s.Data = nil, []string{"x@0"} },
	} {
		s := s
		*s = *nanoSpec(20)
		change()
		arch := "diff"
		if len(s.Variants) > 0 {
			arch = "low"
		}
		if _, err := s.recipe(&Run{Size: "nano", Arch: arch, LR: 1, Seed: 1}); err == nil ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Text of which nothing was held out is refused, and every size must fill its batch with what is left.
func TestFillsByHand(t *testing.T) {
	run := func(size string, batch int) Run {
		return Run{Size: size, Recipe: recipe.Recipe{Train: recipe.Train{Batch: batch, SeqLen: 10}}}
	}
	for _, x := range []struct {
		held [2]int64
		runs []Run
		says string
	}{
		{[2]int64{2, 3}, []Run{run("a", 4)}, ""},
		{[2]int64{}, []Run{run("a", 4)}, "one: is too little text to hold any of it out"},
		{[2]int64{0, 5}, []Run{run("a", 4)}, ""},
		{[2]int64{2, 3}, []Run{run("a", 4), run("b", 5)}, "one: has 45 tokens to train on, one batch of b takes 50"},
		{[2]int64{5, 6}, []Run{run("a", 4)}, "has 39 tokens"},
	} {
		m := &data.Manifest{Tokens: 50, Sources: []data.SourceInfo{{Name: "one", Tokens: 30, HeldOut: x.held[0]},
			{Name: "two", Tokens: 20, HeldOut: x.held[1]}}}
		err := filled(m, x.runs)
		if (err == nil) != (x.says == "") ||
			err != nil && (!errors.As(err, new(*data.SourceError)) || !strings.Contains(err.Error(), x.says)) {
			t.Errorf("%v held out: %v, want %q", x.held, err, x.says)
		}
	}
}
