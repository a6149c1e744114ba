package experiment

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"antiphase/eval"
)

// lossRows are held-out losses of two sides; the second has a seed less.
func lossRows() []Row {
	rows := slices.Concat(seeded(plain, "lm.loss", 3, 4.00000349, 5), seeded(v1, "lm.loss", 1, 2))
	for i := range rows {
		r := &rows[i]
		r.Steps, r.Machine, r.Commit, r.Better = 30, "m", "c", eval.Lower
	}
	return rows
}

// overSeeds are held-out losses over ten seeds: plain's is always 3.
func overSeeds(other ...float64) Repeat {
	return Repeat{Measure: "lm.loss", Better: eval.Lower, Seeds: make([]uint64, 10),
		Values: map[string][]float64{plain: slices.Repeat([]float64{3}, 10), v1: other}}
}

// Measures over seeds count a seed once every architecture has it.
func TestSeedsOfAll(t *testing.T) {
	got := Repeats("p", lossRows())
	want := []Repeat{{Plan: "p", Steps: 30, Measure: "lm.loss", Better: eval.Lower, Seeds: []uint64{1, 2},
		Machine: "m", Commit: "c", Values: map[string][]float64{plain: {3, 4}, v1: {1, 2}}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if Repeats("p", nil) != nil {
		t.Error("of no rows")
	}
}

// A spread is the median with the range; without values it is a dash.
func TestSpread(t *testing.T) {
	if got := (&Repeat{Values: map[string][]float64{v1: {0.3, 0.1, 0.2, 0.9}}}).spread(v1,
		true); got != "25.0 (10.0 to 90.0)" {
		t.Errorf("%q", got)
	}
	if got := (&Repeat{}).spread(v1, true); got != "–" {
		t.Errorf("%q", got)
	}
}

// A verdict over seeds shows this run's own figures.
func TestRepeatsByHand(t *testing.T) {
	rows, archs := lossRows(), []string{plain, v1}
	known := overSeeds(slices.Repeat([]float64{2}, 10)...)
	lead, list := Repeated([]Repeat{known}, rows, archs)
	if len(list) != 1 || list[0].Figure != "1 against 3" ||
		list[0].Claim != "DIFF has a lower held-out loss than the Transformer" ||
		list[0].Source != "held in 10 of 10 seeds" ||
		list[0].Basis != "this run: seen; over seeds 2 to 2 against 3 to 3" || list[0].Verdict != "repeats" ||
		lead != "Of 1 difference that repeat over 10 seeds of this plan, this run shows 1. Whatever else differs in "+
			"the table is this seed's own." {
		t.Errorf("%q %+v", lead, list)
	}
	if _, list := Repeated([]Repeat{known}, rows, []string{v1, plain}); len(list) != 1 ||
		list[0].Figure != "1 against 3" {
		t.Errorf("the other order: %+v", list)
	}
	tied := slices.Concat(seeded(plain, "lm.loss", 2), seeded(v1, "lm.loss", 2))
	if lead, list := Repeated([]Repeat{known}, tied, []string{v1, plain}); len(list) != 1 ||
		!strings.HasPrefix(list[0].Basis, "this run: not seen") || !strings.Contains(lead, "shows 0") {
		t.Errorf("a tie: %q %+v", lead, list)
	}
	other := known // the first side is the better one
	other.Values = map[string][]float64{plain: known.Values[v1], v1: known.Values[plain]}
	if _, list := Repeated([]Repeat{other}, rows, archs); len(list) != 1 ||
		list[0].Claim != "the Transformer has a lower held-out loss than DIFF" || list[0].Figure != "3 against 1" ||
		list[0].Basis != "this run: not seen; over seeds 2 to 2 against 3 to 3" {
		t.Errorf("the other side: %+v", list)
	}
	turned := slices.Concat(seeded(plain, "lm.loss", 1), seeded(v1, "lm.loss", 2))
	for i := range turned {
		turned[i].Better = eval.Lower
	}
	if lead, list := Repeated([]Repeat{known}, turned, archs); list[0].Figure != "2 against 1" ||
		!strings.HasPrefix(list[0].Basis, "this run: not seen") || !strings.Contains(lead, "shows 0") {
		t.Errorf("the other way round: %q %+v", lead, list)
	}
	if lead, list := Repeated(nil, rows, archs); list != nil ||
		!strings.Contains(lead, "was not measured for this plan") {
		t.Errorf("nothing is known: %q %+v", lead, list)
	}
}

// A difference repeats if nine of ten seeds have it; eight are too few.
func TestRepeatsFromNineOfTen(t *testing.T) {
	rows, archs := lossRows(), []string{plain, v1}
	nine := overSeeds(append(slices.Repeat([]float64{2}, 9), 4)...)
	if _, list := Repeated([]Repeat{nine}, rows, archs); len(list) != 1 || list[0].Source != "held in 9 of 10 seeds" {
		t.Errorf("nine of ten: %+v", list)
	}
	eight := overSeeds(append(slices.Repeat([]float64{2}, 8), 4, 4)...)
	if lead, list := Repeated([]Repeat{eight}, rows, archs); len(list) != 0 ||
		!strings.HasPrefix(lead, "Of 0 differences that repeat over 10 seeds") {
		t.Errorf("eight of ten: %q %+v", lead, list)
	}
}

// Rows that no experiment can have are refused.
func TestRowCheck(t *testing.T) {
	good := func() Row { r := at("diff", 1, 1, "m", 1); r.Run = "a"; r.Items = []float64{1, 2}; return r }
	bad := good()
	bad.Weights, bad.Clusters = make([]float64, 3), make([]string, 4)
	if err := bad.check(); err == nil || err.Error() != "2 items, 3 weights and 4 clusters: there must be as many" {
		t.Errorf("%v", err)
	}
	for what, x := range map[string]struct {
		change func(*Row)
		ok     bool
	}{
		"as it is": {func(*Row) {}, true}, "weights": {func(r *Row) { r.Weights = []float64{1, 2} }, true},
		"few weights":   {func(r *Row) { r.Weights = []float64{1} }, false},
		"clusters":      {func(r *Row) { r.Clusters = []string{"", "a"} }, true},
		"many clusters": {func(r *Row) { r.Clusters = make([]string, 3) }, false},
		"few clusters":  {func(r *Row) { r.Clusters = []string{"a"} }, false},
		"many weights":  {func(r *Row) { r.Weights = []float64{1, 2, 3} }, false},
		"no measure":    {func(r *Row) { r.Measure = "" }, false}, "no size": {func(r *Row) { r.Size = "" }, false},
		"no side": {func(r *Row) { r.Arch = "" }, false}, "no run": {func(r *Row) { r.Run = "" }, false},
	} {
		r := good()
		x.change(&r)
		if err := r.check(); (err == nil) != x.ok {
			t.Errorf("%s: %v", what, err)
		}
	}
	done := func(n int, value float64) bool {
		rows := make([]Row, n)
		return whole(append(rows, Row{Measure: Finished, Value: value}))
	}
	if !done(3, 3) || done(3, 2) || done(3, 4) || !whole([]Row{{}, {Measure: Failed, Value: 60}}) ||
		whole([]Row{{Measure: "m"}}) {
		t.Error("whole runs")
	}
	for _, x := range [][2]string{{"run", `{"measure":"m","value":1}`},
		{"measure", `{"run":"a","size":"s","arch":"d","value":1}`},
		{"size", `{"run":"a","measure":"m","arch":"d","value":1}`},
		{"arch", `{"run":"a","measure":"m","size":"s","value":1}`}} {
		if _, err := ReadRows(strings.NewReader(x[1])); err == nil ||
			err.Error() != "line 1: not a row of an experiment: it has no "+x[0] {
			t.Errorf("%s: %v", x[1], err)
		}
	}
	if _, err := Encode([]Row{{Measure: "m", Value: math.NaN()}}); err == nil ||
		!strings.Contains(err.Error(), "row m of") {
		t.Errorf("NaN: %v", err)
	}
}

// Rows of one name that cannot be compared are refused, each kind with its reason; others are not.
func TestOneExperiment(t *testing.T) {
	for what, x := range map[string]struct {
		change func(r *Row)
		says   string
	}{
		"as they are": {func(*Row) {}, ""}, "other steps": {func(r *Row) { r.Steps = 9 }, "but one trains on"},
		"other tokens": {func(r *Row) { r.Tokens = 9 },
			"transformer-s1 and diff-s1 are both of experiment x, but one trains on 2000000 tokens and the other on 9"},
		"other text": {func(r *Row) { r.Data = "b" }, "transformer-s1 and diff-s1 are both of experiment x, but were " +
			"trained on different text or tokens: sets a and b"}, "unknown text": {func(r *Row) { r.Data = "" }, ""},
		"another choice": {func(r *Row) { r.Tuned = "lm.loss or loss" }, "transformer-s1 and diff-s1 are both of " +
			"experiment x, but their learning rates are chosen by train.valid_loss and lm.loss"},
		"another size": {func(r *Row) { r.Size, r.Steps = "small", 9 }, ""},
		"other questions": {func(r *Row) { r.Task = &TaskInfo{Question: "other"} },
			"asked different questions for lm.loss"},
	} {
		rows := slices.Concat(seeded(plain, "lm.loss", 1), seeded(v1, "lm.loss", 1))
		for i := range rows {
			if rows[i].Data = "a"; rows[i].Measure == "lm.loss" {
				rows[i].Task = &TaskInfo{Question: "q"}
			}
		}
		for i := range rows[2:] {
			if r := &rows[2+i]; what != "other questions" || r.Task != nil {
				x.change(r)
			}
		}
		err := oneExperiment(rows)
		if (err == nil) != (x.says == "") || err != nil &&
			(!strings.Contains(err.Error(), x.says) || !strings.Contains(err.Error(), "diff-s1")) {
			t.Errorf("%s: %v, want %q", what, err, x.says)
		}
	}
}

// Rows without a text's name or a question can be compared with any; two questions of one run are refused.
func TestOneExperimentOfOlderRows(t *testing.T) {
	rows := slices.Concat(seeded(plain, "lm.loss", 1), seeded(v1, "lm.loss", 1), seeded(v2, "lm.loss", 1))
	for i := range rows {
		if rows[i].Arch != plain {
			rows[i].Data = "a" // the first rows are of an older version
		}
		if rows[i].Arch != v1 && rows[i].Measure == "lm.loss" {
			rows[i].Task = &TaskInfo{Question: "q"} // and one run was not asked
		}
	}
	if err := oneExperiment(rows); err != nil {
		t.Error(err)
	}
	second := rows[1] // of one run
	second.Task = &TaskInfo{Question: "p"}
	for _, rows := range [][]Row{append(slices.Clone(rows), second), append([]Row{second}, rows...)} {
		if err := oneExperiment(rows); err == nil ||
			!strings.Contains(err.Error(), "diff2-s1 and transformer-s1 are both of experiment x, but were asked "+
				"different questions for lm.loss") {
			t.Errorf("a run was asked twice: %v", err)
		}
	}
}

// Runs of one name in two experiments are two runs, and each must be whole.
func TestWholeRuns(t *testing.T) {
	rows := seeded(plain, "lm.loss", 1)
	last := rows[1]
	last.Measure, last.Value = Finished, 2
	done := []Row{rows[0], rows[1], last}
	for i := range 3 { // runs of one name
		r := done[i]
		r.Experiment = "y"
		done = append(done, r)
	}
	if err := wholeRuns(done); err != nil {
		t.Error(err)
	}
	if err := wholeRuns(done[:5]); err == nil ||
		!strings.Contains(err.Error(), "the 2 rows of y transformer-s1 are not those of one finished run") {
		t.Error(err)
	}
}

// A call beside the work begins unless one is in progress, or the last took more than a fiftieth of the time since; its
// error is told by the next call.
func TestPace(t *testing.T) { synctest.Test(t, testPace) }

func testPace(t *testing.T) {
	var p pace
	begun, open := 0, make(chan struct{})
	slow := func() error { begun++; <-open; time.Sleep(20 * time.Millisecond); return nil }
	for range 3 { // two find it in progress
		if err := p.do(slow); err != nil {
			t.Fatal(err)
		}
	}
	close(open)
	if p.wait(); begun != 1 {
		t.Fatalf("%d calls", begun)
	}
	if err := p.do(slow); err != nil || begun != 1 || time.Until(p.again) != 50*20*time.Millisecond {
		t.Errorf("%d calls; the next in %s", begun, time.Until(p.again))
	}
	p.again = time.Time{}
	broken := errors.New("broken")
	if err := p.do(func() error { return broken }); err != nil {
		t.Errorf("before it failed: %v", err)
	}
	p.wait()
	p.again = time.Time{}
	if err := p.do(slow); err != broken || begun != 1 {
		t.Errorf("%d calls after a failure, %v", begun, err)
	}
	new(pace).wait() // nothing was begun
}
