package experiment

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"antiphase/eval"
	"antiphase/eval/report"
)

// The outcome of a claim by the verdicts of its experiments; one that decides nothing does not count against another.
func TestOutcome(t *testing.T) {
	for _, x := range []struct {
		list []string
		want string
	}{
		{nil, NotRun}, {[]string{Unclear}, Unclear}, {[]string{Holds}, Holds}, {[]string{HoldsNot}, HoldsNot},
		{[]string{Unclear, Holds}, Holds},
		{[]string{HoldsNot, Unclear}, HoldsNot}, {[]string{Holds, HoldsNot}, "differs"},
		{[]string{HoldsNot, Unclear, Holds}, "differs"},
	} {
		var list []report.Verdict
		for _, v := range x.list {
			list = append(list, report.Verdict{Verdict: v})
		}
		if got := (&claim{}).outcome(list); got != x.want {
			t.Errorf("%q: %s, want %s", x.list, got, x.want)
		}
	}
}

// Planned experiments come first, in the order of the plan, then others by name; a link is what a page makes of a
// heading.
func TestOrderAndLinks(t *testing.T) {
	got := ordered(map[string]*final{"zz": nil, "830m-text": nil, "aa": nil, "small-text": nil, "retrieval-tiny": nil})
	if want := []string{"small-text", "retrieval-tiny", "830m-text", "aa", "zz"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for name, want := range map[string]string{"small-text": "[small-text](#small-text)",
		"My Run 2.0 (new)": "[My Run 2.0 (new)](#my-run-20-new)"} {
		if got := link(name); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := markdown("a|b<c\nd\re"); got != `a\|b&lt;c d e` {
		t.Errorf("%q", got)
	}
}

// Two experiments with the same runs give one verdict with two links; with other runs they give two.
func TestSharedRuns(t *testing.T) {
	rows := slices.Concat(seeded(plain, "lm.loss", 3, 3.1, 3.2), seeded(v1, "lm.loss", 1, 1.1, 1.2))
	other := slices.Concat(seeded(plain, "lm.loss", 1, 1.1, 1.2), seeded(v1, "lm.loss", 3, 3.1, 3.2))
	longer := slices.Clone(rows) // with the same figures
	for i := range longer {
		longer[i].Tokens *= 2
	}
	e := &evidence{finals: map[string]*final{"a": newFinal(rows), "b": newFinal(rows), "c": newFinal(other),
		"d": newFinal(longer), "e": newFinal(rows)}, names: []string{"a", "b", "c", "d", "e"}}
	list, links := e.found(&claims[0])
	if len(list) != 3 || list[0].Verdict != Holds || list[1].Verdict != HoldsNot || list[2].Verdict != Holds ||
		!strings.Contains(list[2].Basis, "4M tokens") ||
		!slices.Equal(links, []string{"[a](#a), the same runs in [b](#b), the same runs in [e](#e)",
			"[c](#c)", "[d](#d)"}) {
		t.Errorf("%+v %q", list, links)
	}
	e.summary()
	if want := fmt.Sprintf("| Claims of the paper | 0 | 0 | 1 | %d | ",
		len(beyondClaims)); !strings.Contains(e.String(), want) {
		t.Errorf("%s lacks %q", e.String(), want)
	}
}

// What there is of an experiment: each side with its seeds and rate, all machines, commands and lengths once.
func TestWhatThereIs(t *testing.T) {
	rows := slices.Concat(seeded(plain, "lm.loss", 1, 2), seeded(v1, "lm.loss", 1))
	for i := range rows {
		rows[i].Machine, rows[i].Commit = "m", "c"
	}
	rows[1].Machine, rows[2].Commit = "", ""
	needle := &Row{origin: rows[0].origin, Measure: "needle.bound",
		Task: &TaskInfo{Kind: "needle", Question: "q", Config: map[string]any{"lengths": []any{192.0, 384.0}}}}
	again, other := *needle, *needle
	again.Measure, other.Measure = "needle.free", "attention.answer"
	other.Task = &TaskInfo{Kind: "attention", Question: "r", Config: map[string]any{"lengths": []any{7.0}}}
	again.Command, other.Command = "", "antiphase compare diff"
	bare, long := *needle, *needle
	bare.Measure, bare.Task = "needle.bare", &TaskInfo{Kind: "needle", Question: "s"}
	long.Measure, long.Task = "needle.long",
		&TaskInfo{Kind: "needle", Question: "l", Config: map[string]any{"lengths": []any{768.0}}}
	rows = append(rows, bare, *needle, again, other, long)
	f := newFinal(rows)
	for what, x := range map[string][2]string{
		"there": {there(f), "transformer: 2 seeds (1, 2) at lr 1; diff: 1 seed (1) at lr 1; 2M tokens a run"},
		"machines": {machines(f.all, f.rows),
			"m; commits c, unknown. machine unknown; commit c. The table of the runs compared has the commit of each."},
		"commands":   {strings.Join(commands(rows), "; "), "antiphase compare transformer; antiphase compare diff"},
		"lengths":    {lengths(rows), " Prompts with needles have 192 384, 768 tokens."},
		"no needles": {lengths(rows[:6]), ""},
	} {
		if x[0] != x[1] {
			t.Errorf("%s: %q, want %q", what, x[0], x[1])
		}
	}
	c := cell{sides: []string{plain, v1, v2}, rates: 2, seeds: 2}
	if got, want := c.missing(f),
		"incomplete, 3 of 9 runs: transformer has 1 of 2 learning rates, diff has 1 of 2 seeds, "+
			"diff has 1 of 2 learning rates, no run of diff2"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	lost := newFinal([]Row{at(plain, 0, 1, Finished, 0)}) // rows that no learning rate can be chosen by
	for _, f := range []*final{nil, lost} {
		if c.missing(f) != "missing" || there(f) != "not run" {
			t.Errorf("%q, %q", c.missing(f), there(f))
		}
	}
	c = cell{sides: []string{plain}, rates: 1, seeds: 2}
	if got := c.missing(f); got != "complete" {
		t.Errorf("%q", got)
	}
	for _, size := range []string{"small", "large"} {
		for _, r := range seeded(plain, "lm.loss", 1) {
			r.Size, r.Run, r.Tokens = size, size+r.Run, 7_000_000
			rows = append(rows, r)
		}
	}
	if got, want := there(newFinal(rows)), "tiny transformer: 2 seeds (1, 2) at lr 1; tiny diff, small transformer, "+
		"large transformer: 1 seed (1) at lr 1; 2M or 7M tokens a run"; got != want ||
		c.missing(newFinal(rows)) != "complete" {
		t.Errorf("three sizes: %q, want %q; %q", got, want, c.missing(newFinal(rows)))
	}
}

// scored are the rows of one side at some rates: a score in percent beside its floor, with the held-out loss.
func scored(arch, tuned string, scores ...float64) (rows []Row) {
	for i, score := range scores {
		for _, m := range []string{heldOut, "needle.bound N=4 R=2"} {
			r := at(arch, float64(i+1), 1, m, 2-0.25*float64(i))
			r.Run, r.Tuned = fmt.Sprintf("%s-%d", arch, i), tuned
			if r.Better, r.Label = eval.Lower, "held-out loss at the end of training, nats/token"; m != heldOut {
				r.Value, r.StdErr, r.Better, r.Label = score, 0.01, eval.Higher, "number beside its key, %"
				r.Floors = map[string]float64{"copy": 0.25}
			}
			rows = append(rows, r)
		}
	}
	return rows
}

// The tuning grid has every rate of every side with the means that chose, and says what floors decided.
func TestGridByHand(t *testing.T) {
	const bound, highest = "needle.bound N=4 R=2",
		" The highest rate tried was chosen for transformer: a higher one may be better."
	for _, x := range []struct {
		what, tuned string
		low         []float64
		note, says  string
		best        float64
	}{
		{"by score or loss", bound + orLoss,
			[]float64{0.2, 0.26}, " Every rate of diff is at a floor of the score, so held-out loss decided." + highest,
			"which decides only among rates at a floor of the score", 2},
		{"by score alone", bound, []float64{0.26, 0.2},
			" Every rate of diff is at a floor of the score, so the choice is by chance." + highest,
			"not the one with the lowest held-out loss; the tuning grid", 1},
		{"above the floor", bound + orLoss, []float64{0.9, 0.2},
			" The lowest rate tried was chosen for diff: a lower one may be better." + highest,
			"number beside its key (needle.bound N=4 R=2)”, not the one", 1},
	} {
		f := newFinal(slices.Concat(scored(plain, x.tuned, 0.5, 0.95), scored(v1, x.tuned, x.low...)))
		g := f.tuning.grid()
		mark := func(lr float64) string {
			if lr == x.best {
				return "▸"
			}
			return ""
		}
		want := [][]string{{"size", "architecture", "learning rate",
			"seeds", "held-out loss, mean", "number beside its key (needle.bound N=4 R=2), mean", "chosen"},
			{"tiny", plain, "1", "1", "2.0000", "50.0 %", ""}, {"tiny", plain, "2", "1", "1.7500", "95.0 %", "▸"},
			{"tiny", v1, "1", "1", "2.0000", fmt.Sprintf("%.1f %%", 100*x.low[0]), mark(1)},
			{"tiny", v1, "2", "1", "1.7500", fmt.Sprintf("%.1f %%", 100*x.low[1]), mark(2)}}
		if !reflect.DeepEqual(g.Rows, want) {
			t.Errorf("%s: %q", x.what, g.Rows)
		}
		if _, got, _ := strings.Cut(g.Note, "for every architecture."); got != x.note {
			t.Errorf("%s: %q, want %q", x.what, got, x.note)
		}
		if s := f.says(); !strings.Contains(s, x.says) {
			t.Errorf("%s: %q lacks %q", x.what, s, x.says)
		}
	}
	f := newFinal(slices.Concat(scored(plain, "", 0.5), scored(v1, "", 0.5, 0.6), scored(v2, "", 0.5)))
	if s := f.says(); !strings.Contains(s, "the best held-out loss; the tuning grid") {
		t.Errorf("%q", s)
	}
	if s := newFinal(scored(plain, "", 0.5)).says(); !strings.Contains(s, "nothing was tuned") {
		t.Errorf("%q", s)
	}
}

// A cell of the tuning grid has the mean of the runs that finished, and how many diverged.
func TestMeanText(t *testing.T) {
	mean := func(v ...float64) (rows []Row) {
		for _, x := range v {
			rows = append(rows, Row{Value: x})
		}
		return rows
	}
	for _, x := range []struct {
		rows   []Row
		failed int
		want   string
	}{{mean(1, 2, 4), 0, "2.3333"}, {nil, 0, "–"}, {nil, 2, "diverged"}, {mean(1), 2, "1.0000; 2 diverged"},
		{[]Row{{Value: 0.5, Better: eval.Higher, Label: "score"}}, 0, "0.5000"},
		{[]Row{{Value: 0.5, Better: eval.Higher, Label: "score, %"}, {Value: 0.75}}, 1, "62.5 %; 1 diverged"},
		{[]Row{{Value: 0.5, Better: eval.Lower, Label: "error, %"}}, 0, "0.5000"}} {
		if got := meanText(x.rows, x.failed); got != x.want {
			t.Errorf("%q, want %q", got, x.want)
		}
	}
}

// Sides that tried other learning rates are not tuned alike, even if they tried as many.
func TestUntuned(t *testing.T) {
	f := newFinal(slices.Concat(scored(plain, "", 0.5), scored(v1, "", 0.5, 0.6), scored(v2, "", 0.5)))
	if got := f.untuned("tiny", plain, v1); got != "learning rates tried: 1 of transformer, 2 of diff" {
		t.Errorf("%q", got)
	}
	other := slices.Concat(scored(plain, "", 0.5, 0.6), scored(v1, "", 0.5, 0.6))
	for i := range other {
		if other[i].Arch == v1 && other[i].LR == 2 {
			other[i].LR = 2.5
		}
	}
	if got := newFinal(other).untuned("tiny", plain, v1); got !=
		"learning rates tried: 1, 2 of transformer, 1, 2.5 of diff" {
		t.Errorf("%q", got)
	}
	if f.untuned("tiny", v1, v1) != "" {
		t.Error("a side is tuned unlike itself")
	}
}

// Bundles of curves: sides in order with a line for each seed, a dashed floor where copying can be told from knowing.
func TestBundles(t *testing.T) {
	rows := slices.Concat(probed(plain, 1e6, 2e6), probed(v1, 3e6))
	for i := range rows {
		if rows[i].Measure != heldOut {
			rows[i].Floors = map[string]float64{"copy": 0.25, "chance": 0.01}
		}
	}
	list := newFinal(rows).bundles()
	if len(list) != 1 || list[0].ID != "probe-needle-bound" || !list[0].Share || list[0].Floor == nil ||
		*list[0].Floor != 0.25 ||
		!strings.HasSuffix(list[0].Note, " Dashed: what naming any hidden number earns.") {
		t.Fatalf("%+v", list)
	}
	sides := list[0].Sides
	if len(sides) != 2 || sides[0].Name != plain || sides[0].Place != 0 || sides[1].Place != 1 ||
		len(sides[0].Lines) != 2 || len(sides[1].Lines) != 1 ||
		sides[0].Lines[1][1] != [2]float64{2e6, 0.9} {
		t.Errorf("%+v", sides)
	}
	for i := range rows {
		rows[i].Floors = map[string]float64{"chance": 0.01}
		if rows[i].Measure == heldOut || rows[i].Arch == v1 {
			rows[i].Floors = nil
		}
	}
	if list := newFinal(rows).bundles(); list[0].Floor != nil || !list[0].Share {
		t.Errorf("floors of one side, none of copying: %+v", list[0])
	}
	for i := range rows {
		rows[i].Floors = map[string]float64{"copy": 1}
		if rows[i].Measure == heldOut {
			rows[i].Floors = nil
		}
	}
	if list := newFinal(rows).bundles(); list[0].Floor != nil || !list[0].Share ||
		strings.Contains(list[0].Note, "Dashed") {
		t.Errorf("a single needle: %+v", list[0])
	}
	rows = nil
	for _, r := range slices.Concat(probed(plain, 1e6), probed(v1, 1e6), probed(v2, 1e6)) {
		small := r
		small.Size, small.Run = "small", "small-"+r.Run
		rows = append(rows, r, small)
	}
	list = newFinal(rows).bundles()
	for i, side := range list[0].Sides { // every size and architecture has a colour of its own
		if side.Place != i || len(list[0].Sides) != 6 {
			t.Errorf("place %d of %d: %+v", i, len(list[0].Sides), side)
		}
	}
}
