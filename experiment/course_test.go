package experiment

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"antiphase/train"
)

// clock returns a function that moves a time on by some seconds and returns it.
func clock() func(seconds float64) time.Time {
	now := time.Unix(1000, 0)
	return func(s float64) time.Time {
		now = now.Add(time.Duration(s * float64(time.Second)))
		return now
	}
}

// A run is measured over its last quarter, from its first step on; its judging is what follows the last step.
func TestCourse(t *testing.T) {
	wait := clock()
	c := &course{prospect: prospect{tokens: 6400}}
	c.begin(wait(0))
	step := func(n int64, s float64) { c.step(wait(s), &train.Row{Tokens: 10 * n, TokS: 10 / s}) }
	step(1, 60) // starts, and measures kernels
	step(2, 0.1)
	if c.start != 60 || c.stage != training || c.trained != 20 || c.perToken != 0 || c.quick != 0 {
		t.Fatalf("after two steps: %+v", c.prospect)
	}
	for n := int64(3); n <= 640; n++ {
		switch {
		case n == 5:
			step(n, 0.5)
		case n <= 300:
			step(n, 1)
		default:
			step(n, 3)
		}
		if n == 10 && (c.perToken != 0 || c.quick != 0.05) {
			t.Errorf("after ten steps: %+v", c.prospect)
		}
		if n == 300 && math.Abs(c.perToken-0.1) > 1e-9 || n == 480 && math.Abs(c.perToken-0.3) > 1e-9 {
			t.Errorf("after %d steps: %+v", n, c.prospect)
		}
	}
	if got := c.at(wait(7)); c.stage != judging || got.judge != 7 {
		t.Errorf("after the last step: %+v", got)
	}
	c.judged(wait(1))
	if c.end(wait(2)); c.stage != finished || c.judge != 10 || c.trained != 6400 || c.steps != 640 {
		t.Errorf("in the end: %+v", c.prospect)
	}
}

// A run that diverged is not judged; one that was trained in an earlier call is only judged.
func TestCourseInPart(t *testing.T) {
	wait := clock()
	failed := &course{prospect: prospect{tokens: 6400}}
	failed.begin(wait(0))
	failed.step(wait(1), &train.Row{Tokens: 10, TokS: math.Inf(1)})
	if failed.end(wait(9)); failed.stage != finished || failed.judge != 0 || failed.trained != 10 {
		t.Errorf("a run that diverged: %+v", failed.prospect)
	}
	only := &course{prospect: prospect{tokens: 6400}} // trained in an earlier call
	only.begin(wait(0))
	only.judged(wait(1))
	if only.end(wait(9)); only.judge != 9 || only.trained != 6400 || only.perToken != 0 {
		t.Errorf("a run that was judged alone: %+v", only.prospect)
	}
}

// Steps whose speed was not measured do not count for the speed of a run.
func TestCourseOfUnmeasuredSteps(t *testing.T) {
	wait := clock()
	for _, tokens := range []int64{20, 3200} { // steps of 100 tokens are a thirty-second of the longer run
		c := &course{prospect: prospect{tokens: tokens}}
		c.begin(wait(0))
		for n, speed := range []float64{50, 50, 0, math.Inf(1), 50, math.Inf(1), 0, 25, -1} { // some were not measured
			c.step(wait(2), &train.Row{Tokens: min(int64(n+1)*100, tokens), TokS: speed})
			if quick := map[bool]float64{true: 0.02}[n > 3]; c.quick != quick || tokens == 3200 &&
				c.perToken != map[bool]float64{true: 0.02}[n > 0] || tokens == 20 && c.perToken != 0 {
				t.Errorf("step %d of %d tokens: %+v", n+1, tokens, c.prospect)
			}
		}
	}
}

// Times are whole seconds, and at least one.
func TestSpan(t *testing.T) {
	for seconds, want := range map[float64]string{0: "1s", 0.2: "1s", 1.4: "1s", 61.6: "1m2s"} {
		if got := span(seconds); got != want {
			t.Errorf("%g s are %s", seconds, got)
		}
	}
}

// A continued experiment has its finished runs from rows, with the speeds of this machine and as many workers; a phase
// continues what the last one measured.
func TestSurvey(t *testing.T) {
	runs, err := nanoSpec(40).Grid(nil)
	if err != nil {
		t.Fatal(err)
	}
	row := func(i int, measure, machine string, value float64) Row {
		return Row{Measure: measure, Value: value, origin: origin{Run: runs[i].Name(), Steps: 40, Machine: machine}}
	}
	s := &survey{workers: 2, warned: map[side]bool{}}
	s.lay(runs)
	s.finished([]Row{row(0, sharedSpeed, "m", 50), row(0, Finished, "m", 3), row(1, sharedSpeed, "other", 70),
		row(1, Finished, "other", 3),
		row(2, trainSpeed, "m", 90), row(2, sharedSpeed, "m", 0), row(2, Finished, "m", 3), row(3, Failed, "m", 10),
		{Measure: Failed, origin: origin{Run: runs[4].Name()}},
		{Measure: Finished, origin: origin{Run: "another"}}}, "m")
	all := runs[0].tokens()
	for i, want := range []prospect{{stage: finished, trained: all, past: 1. / 50}, {stage: finished, trained: all},
		{stage: finished, trained: all}, {stage: finished, trained: all / 4}, {stage: waiting}} {
		got := s.courses[i]
		if got.stage != want.stage || got.trained != want.trained || got.past != want.past || got.tokens != all ||
			got.flops <= 0 || got.arch != runs[i].Arch {
			t.Errorf("run %d: %+v, want %+v", i, got.prospect, want)
		}
	}
	one := &survey{workers: 1}
	one.lay(runs)
	if one.finished([]Row{row(0, sharedSpeed, "m", 50), row(1, trainSpeed, "m", 80)}, "m"); one.courses[0].past != 0 ||
		one.courses[1].past != 1./80 {
		t.Errorf("with one worker: %+v, %+v", one.courses[0].prospect, one.courses[1].prospect)
	}
	last := s.courses[4]
	if s.lay(runs[4:5]); len(s.courses) != 1 || s.courses[0] != last || s.by[runs[4].Name()] != last {
		t.Error("the next phase measures anew")
	}
}

// The forecast is made anew after some time. Its share does not go back by less than a hundredth. A slow side is named
// once, with the end it makes.
func TestLook(t *testing.T) {
	c := &course{prospect: of(1, "a", during(0, 1), func(r *prospect) { r.tokens = 1000 })[0]}
	s := &survey{courses: []*course{c}, workers: 1, warned: map[side]bool{}}
	var out said
	now := time.Unix(1000, 0)
	look := func(after time.Duration) float64 {
		now = now.Add(after)
		return s.look(now, out.say).share
	}
	for _, x := range []struct {
		trained int64
		after   time.Duration
		share   float64
	}{{500, 0, 0.5}, {700, lookEvery - 1, 0.5}, {800, 1, 0.8}, {795, time.Second, 0.8}, {600, time.Second, 0.6}} {
		c.trained = x.trained
		if got := look(x.after); got != x.share {
			t.Errorf("%d of 1000 tokens are shown as %g", x.trained, got)
		}
	}
	slow := &course{prospect: of(1, "b", during(0, 20), quick(20))[0]}
	c.quick, c.steps, slow.steps = 1, enoughSteps, enoughSteps-1
	s.courses, s.workers = append(s.courses, slow), 2
	if look(time.Second); len(out.lines) > 0 {
		t.Errorf("after a few steps: %q", out.lines)
	}
	slow.steps++
	look(time.Second)
	look(time.Second)
	want :=
		"warning: s b is slow: 0.05 tok/s; at the speed of others of its size its FLOPs allow 1, 20 times as many; " +
			"33m20s left, at the usual speed 6m40s"
	if got := strings.Join(out.lines, "\n"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// A side is slow if its FLOPs take ten times those of the others of its size; other sizes do not count.
func TestSlow(t *testing.T) {
	for name, x := range map[string]struct {
		list []Speed
		slow string
	}{
		"ten times":         {[]Speed{{"s", "a", 10, 1}, {"s", "b", 10, 10}}, ""},
		"not measured":      {[]Speed{{"s", "a", 10, 0}, {"s", "b", 10, 1}, {"s", "c", 10, 6}}, ""},
		"alone":             {[]Speed{{"s", "a", 10, 1}}, ""},
		"equal":             {[]Speed{{"s", "a", 10, 1}, {"s", "b", 10, 9.9}}, ""},
		"one of two":        {[]Speed{{"s", "a", 10, 1}, {"s", "b", 10, 10.1}}, "b"},
		"more work":         {[]Speed{{"s", "a", 10, 1}, {"s", "b", 100, 90}}, ""},
		"as little as none": {[]Speed{{"s", "a", 100, 1}, {"s", "b", 1, 0.5}}, "b"},
		"another size":      {[]Speed{{"s", "a", 10, 1}, {"m", "a", 10, 99}}, ""},
		"the median counts": {[]Speed{{"s", "a", 10, 1}, {"s", "b", 10, 500}, {"s", "c", 10, 1}, {"s", "d", 10, 20}},
			"bd"},
	} {
		got := ""
		for _, s := range slows(x.list) {
			got += s.Arch
		}
		if got != x.slow || len(Slow(x.list)) != len(x.slow) {
			t.Errorf("%s: %q is slow, want %q", name, got, x.slow)
		}
	}
	enough := func(r *prospect) { r.steps = enoughSteps }
	runs := slices.Concat(of(1, "a", enough, quick(3), flops(7)), of(1, "a", enough, quick(2)),
		of(1, "a", enough, quick(4)), of(1, "a", quick(1)), // too few steps
		of(1, "b", enough), of(1, "a", size("l"), enough, quick(9)))
	if got, want := speeds(runs), []Speed{{"s", "a", 7, 2}, {"l", "a", 10, 9}}; !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v: that of the fastest step", got, want)
	}
	runs = slices.Concat(of(1, "b", done(9, 30), past(8), start(4)), of(1, "a", done(9, 30), past(8)),
		of(1, "b", size("l"), done(9, 30)))
	want := slices.Clone(runs)
	want[0].perToken, want[0].quick, want[0].past, want[0].judge = 0.5, 0.5, 0, 0
	x := slow{Speed: Speed{Size: "s", Arch: "b"}, usual: 0.5}
	if got := x.usually(runs); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
