package experiment

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"antiphase/eval"
	"antiphase/train"
)

// A folder's experiment goes on where each list of the grid grows and nothing else changes: for every field of a Spec.
func TestContinues(t *testing.T) {
	base := func() *Spec {
		return &Spec{Sizes: []string{"nano", "tiny"}, Archs: []string{"a", "b"}, LRs: []float64{1, 2},
			Seeds: []uint64{1, 2}}
	}
	if d := base().continues(base()); d != "" {
		t.Errorf("differs from itself by %s", d)
	}
	grid := map[string]bool{"Sizes": true, "Archs": true, "Variants": true, "LRs": true, "Seeds": true}
	for i := range reflect.TypeFor[Spec]().NumField() {
		f := reflect.TypeFor[Spec]().Field(i)
		if !f.IsExported() || f.Tag.Get("json") == "-" {
			continue
		}
		more, field := base(), func(s *Spec) reflect.Value { return reflect.ValueOf(s).Elem().Field(i) }
		change(field(more))
		if d := more.continues(base()); (d == "") != (grid[f.Name]) {
			t.Errorf("%s: one more gives %q", f.Name, d)
		}
		if d := base().continues(more); d == "" {
			t.Errorf("%s: one less continues", f.Name)
		}
		if grid[f.Name] && f.Name != "Variants" {
			other := base()
			field(other).Index(1).Set(field(other).Index(0)) // the second is gone
			if d := other.continues(base()); d == "" {
				t.Errorf("%s: another entry continues", f.Name)
			}
		}
	}
	for _, x := range []struct{ old, now []float64 }{{nil, []float64{1}}, {[]float64{1}, nil}} {
		old, now := base(), base()
		old.LRs, now.LRs = x.old, x.now
		if d := now.continues(old); d != "--lr" {
			t.Errorf("rates %v after %v: %q", x.now, x.old, d)
		}
	}
	turned := base()
	slices.Reverse(turned.Sizes)
	if turned.continues(base()) == "" {
		t.Error("another first size, with another tokenizer, continues")
	}
}

// change gives a value another one: lists and maps grow by one entry.
func change(v reflect.Value) {
	switch v.Kind() {
	case reflect.Slice:
		e := reflect.New(v.Type().Elem()).Elem()
		change(e)
		v.Set(reflect.Append(v, e))
	case reflect.Map:
		k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		change(k)
		change(e)
		m := reflect.MakeMap(v.Type())
		m.SetMapIndex(k, e)
		v.Set(m)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				change(v.Field(i))
			}
		}
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Float64:
		v.SetFloat(v.Float() + 99)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		change(v.Elem())
	default:
		if v.CanInt() {
			v.SetInt(v.Int() + 99)
		} else {
			v.SetUint(v.Uint() + 99)
		}
	}
}

// Each second of a call is counted once: a probe in the row of the next step, or with the tasks if no step follows.
func TestStopwatch(t *testing.T) {
	w := &stopwatch{}
	w.start(3)
	const unit = 1000 // seconds, so that those of a busy machine do not count
	ago := func(n float64) time.Time { return time.Now().Add(-time.Duration(n * unit * float64(time.Second))) }
	w.prepared(ago(10))
	w.probe("a", ago(100))
	w.step("a", &train.Row{StepMS: 2e3 * unit, EvalS: 100 * unit, SaveS: math.NaN()}) // its row has the probe
	w.step("a", &train.Row{StepMS: 3e3 * unit, EvalS: math.NaN(), SaveS: 7 * unit})
	w.probe("b", ago(40))
	w.judged("a", ago(5))
	w.probe("b", ago(2))
	w.judged("b", ago(1)) // 40 and 2 units of probes after its last step
	w.judged("b", ago(1))
	w.begin("c")
	w.mark["c"] = ago(14)
	w.step("c", &train.Row{StepMS: 1e3 * unit, EvalS: 2 * unit, SaveS: 3 * unit}) // 8 units before it
	w.mark["c"] = ago(30)
	w.step("c", &train.Row{StepMS: 1e3 * unit, EvalS: math.NaN(), SaveS: math.NaN()}) // the second: nothing is started
	w.mark["c"] = ago(50)
	w.probe("c", ago(46))
	w.trained("c") // 4 units for the last checkpoint
	w.begin("d")
	w.mark["d"] = ago(3)
	w.trained("d") // an earlier call took its last step
	w.begin("e")
	w.trained("e") // at once
	w.begin("c")
	w.mark["c"], w.probed["c"] = ago(5), 0
	w.trained("c") // started again, without a step
	got := w.read()
	for name, x := range map[string][2]float64{
		"training": {got.Training, 7}, "evaluating": {got.Evaluating, 100 + 5 + 42 + 1 + 1 + 2}, "data": {got.Data, 30},
		"saving": {got.Saving, 11 + 3}, "starting": {got.Starting, 8 + 3 + 5},
		"runs": {float64(got.Runs) * unit, 3},
	} {
		if !(math.Abs(x[0]-x[1]*unit) <= unit/2) {
			t.Errorf("%s: %g, want %g", name, x[0]/unit, x[1])
		}
	}
	s := Spent{Total: 200, Training: 100, Evaluating: 50, Data: 20, Saving: 10, Starting: 6, Idle: 4}
	if want := "50.0 % of the time went to training, 25.0 % to evaluating, 10.0 % to data, 5.0 % to checkpoints, 3.0 " +
		"% to starting runs, 5.0 % to anything else; 2.0 % passed without a run"; s.String() != want {
		t.Errorf("%q", s.String())
	}
	w.spent.Began = ago(10)
	if got := w.read(); !(math.Abs(got.Total-30*unit) <= unit/2) || got.Idle != 0 {
		t.Errorf("%g units of three devices in ten, %g of them idle", got.Total/unit, got.Idle/unit)
	}
	w.spent.Data = 6 * unit
	w.over(ago(9))
	w.over(ago(4))
	if idle := w.read().Idle; !(math.Abs(idle-11*unit) <= unit/2) {
		t.Errorf("%g of 30 units were without a run: 6 went to data, 13 to two runs", idle/unit)
	}
}

// tried is what a run is chosen by: less is better.
type tried struct{ score, loss float64 }

// randomRuns are the rows of runs at three rates, some unfinished or diverged, and what each is chosen by.
func randomRuns(g *rand.Rand, tuned string) (rows []Row, runs map[float64]map[uint64]tried) {
	runs = map[float64]map[uint64]tried{}
	for _, lr := range []float64{1, 2, 3} {
		runs[lr] = map[uint64]tried{}
		for seed := range uint64(3) {
			if seed > 0 && g.IntN(5) == 0 {
				continue // not finished
			}
			o := origin{Size: "s", Arch: "a", LR: lr, Seed: seed, Tuned: tuned}
			if g.IntN(8) == 0 {
				rows = append(rows, Row{origin: o, Measure: Failed})
				runs[lr][seed] = tried{math.Inf(1), math.Inf(1)}
				continue
			}
			loss, acc := float64(g.IntN(3)), float64(g.IntN(4))/4
			rows = append(rows, Row{origin: o, Measure: heldOut, Value: loss, Better: eval.Lower})
			x := tried{loss, loss}
			if tuned != "" {
				rows = append(rows, Row{origin: o, Measure: "task.acc", Value: acc, Better: eval.Higher,
					StdErr: 0.1, Floors: map[string]float64{"chance": 0.1, "copy": 0.25}})
				x.score = -acc
				if acc-1.96*0.1 <= 0.25 && strings.HasSuffix(tuned, orLoss) {
					x.score = -0.25
				}
			}
			runs[lr][seed] = x
		}
	}
	return rows, runs
}

// Choose against its definition, on random rows: the best mean over the seeds that all rates of a side have, then the
// lower loss, then the lower rate; a diverged run loses; scores on a floor tie where the rows say so.
func TestChooseByDefinition(t *testing.T) {
	g := rand.New(rand.NewPCG(7, 7))
	for round := range 300 {
		tuned := ""
		if round%3 != 0 {
			tuned = []string{"task.acc", "task.acc" + orLoss}[round%2]
		}
		rows, runs := randomRuns(g, tuned)
		best, bestLR := tried{math.Inf(1), math.Inf(1)}, math.Inf(1)
		for _, lr := range []float64{1, 2, 3} {
			var sum tried
			for seed := range uint64(3) {
				_, a := runs[1][seed]
				_, b := runs[2][seed]
				_, c := runs[3][seed]
				if a && b && c {
					sum.score += runs[lr][seed].score
					sum.loss += runs[lr][seed].loss
				}
			}
			if math.IsInf(bestLR, 1) || sum.score < best.score || sum.score == best.score && sum.loss < best.loss {
				best, bestLR = sum, lr
			}
		}
		g.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		if got := Choose(rows); len(got) != 1 || got[[2]string{"s", "a"}] != bestLR {
			t.Fatalf("round %d: %v, want %g of %v", round, got, bestLR, runs)
		}
	}
}

// A statement about seeds goes in the direction that held more often, ties count for neither side, and it repeats from
// 9 of 10.
func TestLinesByHand(t *testing.T) {
	for _, x := range []struct {
		better eval.Better
		a, b   []float64
		good   string
		held   int
	}{
		{eval.Higher, []float64{2, 2, 2}, []float64{1, 1, 3}, "a", 2},
		{eval.Lower, []float64{2, 2, 2}, []float64{1, 1, 3}, "b", 2},
		{eval.Higher, []float64{1, 1, 1}, []float64{1, 1, 1}, "a", 0},
		{eval.Higher, []float64{1, 0, 0}, []float64{1, 1, 1}, "b", 2},
	} {
		r := &Repeat{Measure: "m", Better: x.better, Seeds: []uint64{1, 2, 3},
			Values: map[string][]float64{"a": x.a, "b": x.b}}
		if l := r.line("beats", "a", "b"); l.Good != x.good || l.Held != x.held || l.Of != 3 || l.Good == l.Bad ||
			l.Bad != "a" && l.Bad != "b" || l.Measure != "m" {
			t.Errorf("%+v: %+v", x, l)
		}
	}
	for _, x := range []struct {
		held, of int
		want     bool
	}{{9, 10, true}, {8, 10, false}, {10, 10, true}, {9, 9, false}, {18, 20, true}, {17, 20, false}, {10, 11, true},
		{9, 11, false}} {
		if l := (Line{Held: x.held, Of: x.of}); l.Repeated() != x.want {
			t.Errorf("%d of %d repeats: %v", x.held, x.of, !x.want)
		}
	}
	list := []Repeat{{Plan: "p", Steps: 3, Measure: "m", Values: map[string][]float64{"a": {1}}}, {Plan: "q", Steps: 3},
		{Plan: "p", Steps: 4}}
	path := filepath.Join(t.TempDir(), "r.jsonl")
	if err := WriteRepeats(path, list); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(path)
	if got, err := ReadRepeats(append([]byte("\n"), b...), "p", 3); err != nil || len(got) != 1 ||
		got[0].Measure != "m" {
		t.Errorf("%+v, %v", got, err)
	}
	long := []byte(`{"plan":"p","steps":3,"machine":"` + strings.Repeat("m", 1<<17) + `"}`)
	if got, err := ReadRepeats(long, "p", 3); err != nil || len(got) != 1 {
		t.Errorf("a long line: %d, %v", len(got), err)
	}
	if _, err := ReadRepeats(append(b, "nonsense\n"...), "p", 3); err == nil ||
		!strings.Contains(err.Error(), "line 4") {
		t.Error(err)
	}
}

// What an experiment may be, on both sides of each bound.
func TestSpecBounds(t *testing.T) {
	for name, x := range map[string]struct {
		set  func(s *Spec)
		want string
	}{
		"as it is": {func(*Spec) {}, ""}, "no size": {func(s *Spec) { s.Sizes = nil }, "--size"},
		"no arch":             {func(s *Spec) { s.Archs = nil }, "--size, --arch"},
		"no seeds":            {func(s *Spec) { s.Seeds = nil }, "--seeds"},
		"tune seeds":          {func(s *Spec) { s.TuneSeeds = len(s.Seeds) }, ""},
		"more tune seeds":     {func(s *Spec) { s.TuneSeeds = len(s.Seeds) + 1 }, "--tune-seeds"},
		"negative tune seeds": {func(s *Spec) { s.TuneSeeds = -1 }, "--tune-seeds"},
		"negative steps":      {func(s *Spec) { s.Steps = -1 }, "--steps"},
		"no task":             {func(s *Spec) { s.Tasks = nil }, "--task"},
		"negative probes":     {func(s *Spec) { s.Every = -1 }, "--probe-every"},
		"a size twice":        {func(s *Spec) { s.Sizes = append(s.Sizes, s.Sizes[0]) }, "--size"},
		"a seed twice":        {func(s *Spec) { s.Seeds = append(s.Seeds, s.Seeds[0]) }, "--seeds"},
		"a rate twice":        {func(s *Spec) { s.LRs = []float64{1e-3, 1e-3} }, "--lr"},
		"a task twice":        {func(s *Spec) { s.Tasks = append(s.Tasks, s.Tasks[0]) }, "--task"},
		"an arch twice":       {func(s *Spec) { s.Archs = append(s.Archs, s.Archs[0]) }, "--arch"},
		"no such arch":        {func(s *Spec) { s.Archs = []string{"dif"} }, "--arch"},
		"rate 0":              {func(s *Spec) { s.LRs = []float64{0} }, "--lr"},
		"rate NaN":            {func(s *Spec) { s.LRs = []float64{math.NaN()} }, "--lr"},
		"rate +Inf":           {func(s *Spec) { s.LRs = []float64{math.Inf(1)} }, "--lr"},
		"a decided key": {func(s *Spec) { s.Set = []string{" train.seed = 3"} },
			"--set: train.seed is decided by --seeds"},
		"decided steps": {func(s *Spec) { s.Set = []string{"train.steps=3"} }, "--steps"},
		"a probe twice": {func(s *Spec) { s.Probes = []Ask{"outliers", " outliers "} },
			"--probe: outliers is there twice"},
		"two lines":                 {func(s *Spec) { s.Name = "a\nb" }, `--name: "a\nb" has a control character`},
		"a variant's rate of decay": {func(s *Spec) { s.Variants = []Variant{"slow diff optim.beta2=0.99"} }, ""},
		"a variant's data": {func(s *Spec) { s.Variants = []Variant{"more diff data.held_out=0.3"} },
			"--variant: more: data.held_out must be the same for all sides"},
		"a variant's context": {func(s *Spec) { s.Variants = []Variant{"long diff model.context=128"} },
			"--variant: long: model.context must be the same"},
		"a variant's seed": {func(s *Spec) { s.Variants = []Variant{"x diff train.seed=2"} },
			"--variant: x: train.seed is decided by --seeds"},
		"no probe to tune by": {func(s *Spec) { s.TuneBy, s.Probes = "probe", nil },
			"--tune-by: probe, and no --probe"}, "no such task to tune by": {func(s *Spec) { s.TuneBy = "needle" },
			`--tune-by: "needle" is none of the tasks asked here; want loss, probe or one of ` +
				`["lm pieces=8" "outliers"]`},
		"steps of the size":    {func(s *Spec) { s.Steps, s.Every = 0, 0 }, ""},
		"the number of steps":  {func(s *Spec) { s.Steps = -3 }, "--steps: is -3, must be positive"},
		"the number of probes": {func(s *Spec) { s.Every = -4 }, "--probe-every: is -4, must be positive"},
		"few seeds":            {func(s *Spec) { s.TuneSeeds = 9 }, "--tune-seeds: is 9, there are 2 seeds"},
		"nothing held out": {func(s *Spec) { s.Set = []string{"data.held_out=0"} },
			"data.held_out: is 0; runs are compared on held-out text"},
		"a variant twice": {func(s *Spec) { s.Variants = []Variant{"diff diff model.ffn=64"} },
			"--variant: diff is the name of an architecture"},
		"two cases": {func(s *Spec) { s.Variants = []Variant{"Diff diff model.ffn=64"} },
			"--variant: Diff is the name of an architecture"},
	} {
		s := nanoSpec(40)
		x.set(s)
		err := s.Check()
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
	}
}
