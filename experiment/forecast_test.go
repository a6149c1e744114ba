package experiment

import (
	"math"
	"slices"
	"testing"
)

// of is n times the run of a side of size s, of 100 tokens of 10 FLOPs; change makes it another.
func of(n int, arch string, change ...func(*prospect)) (out []prospect) {
	for range n {
		r := prospect{side: side{"s", arch}, flops: 10, tokens: 100}
		for _, f := range change {
			f(&r)
		}
		out = append(out, r)
	}
	return out
}

// in progress, with so many tokens trained at so many seconds each.
func during(trained int64, perToken float64) func(*prospect) {
	return func(r *prospect) { r.stage, r.trained, r.perToken = training, trained, perToken }
}

// done in this call, with seconds per token and of judging.
func done(perToken, judge float64) func(*prospect) {
	return func(r *prospect) { r.stage, r.trained, r.perToken, r.judge = finished, r.tokens, perToken, judge }
}

// before this call or elsewhere.
func before(r *prospect) { r.stage, r.trained = finished, r.tokens }

func flops(x float64) func(*prospect) { return func(r *prospect) { r.flops = x } }
func size(s string) func(*prospect)   { return func(r *prospect) { r.size = s } }
func quick(x float64) func(*prospect) { return func(r *prospect) { r.quick = x } }
func past(x float64) func(*prospect)  { return func(r *prospect) { r.past = x } }
func start(x float64) func(*prospect) { return func(r *prospect) { r.start = x } }
func asked(so float64) func(*prospect) {
	return func(r *prospect) { r.stage, r.trained, r.judge = judging, r.tokens, so }
}

// forecasts are runs with the share that is done and the seconds to the end, by hand.
var forecasts = map[string]struct {
	runs            []prospect
	tuning, workers int
	share, left     float64
}{
	"nothing":                    {nil, 0, 2, 0, math.NaN()},
	"nothing measured":           {of(4, "a"), 0, 2, 0, math.NaN()},
	"nothing measured, by FLOPs": {slices.Concat(of(1, "a", before), of(1, "b", flops(30))), 0, 1, 0.25, math.NaN()},
	"equal runs":                 {slices.Concat(of(2, "a", during(50, 1)), of(2, "a")), 0, 2, 0.25, 150},
	"more workers than runs":     {of(2, "a", during(50, 1)), 0, 8, 0.5, 50},
	"no worker":                  {of(1, "a"), 0, 0, 0, math.NaN()},
	"all done":                   {of(3, "a", done(1, 2)), 0, 2, 1, 0},
	// 10 s of work done, 5 s and 2000 s left: one worker is late.
	"a slow side at the end": {slices.Concat(of(9, "a", done(0.01, 0)), of(1, "a", during(50, 0.01)),
		of(1, "b", during(0, 20))), 0, 2, 9.5 / 2010, 2000},
	// The second worker takes the third run after 10 s, the fourth after 110; the sum over workers would be 155.
	"the last run is alone": {slices.Concat(of(1, "a", during(0, 1)), of(1, "a", during(90, 1)), of(2, "a")), 0, 2,
		90. / 400, 200},
	"tuning ends before the others begin": {slices.Concat(of(1, "a", during(0, 1)),
		of(1, "a", done(1, 0)), of(1, "a")), 2, 2, 1. / 3, 200},
	"tuning goes on while workers are free": {slices.Concat(of(1, "a", during(0, 1)), of(3, "a")), 3, 2, 0, 300},
	"judged before this call": {slices.Concat(of(1, "a", done(1, 30)), of(1, "a", before),
		of(1, "a")), 0, 1, 260. / 390, 130},
	"tuning has ended": {slices.Concat(of(2, "a", done(1, 0)), of(1, "a", during(0, 1)),
		of(1, "a")), 2, 2, 0.5, 100},
	"its own speed goes before its side's": {slices.Concat(of(2, "a", done(1, 0)), of(1, "a", during(50, 3))),
		0, 1, 350. / 500, 150},
	"the side's speed is the median": {slices.Concat(of(2, "a", done(1, 0)), of(1, "a", done(9, 0)),
		of(1, "a")), 0, 1, 11. / 12, 100},
	"one that has no speed yet has its side's": {slices.Concat(of(1, "a", done(2, 0)), of(1, "a", during(0, 0))),
		0, 1, 0.5, 200},
	"a fast step before there is a speed": {of(1, "a", during(0, 0), quick(2), past(7)), 0, 1, 0, 200},
	"a speed goes before a fast step":     {of(1, "a", during(0, 3), quick(2), past(7)), 0, 1, 0, 300},
	"an earlier call's speed": {slices.Concat(of(3, "a", before, past(2)), of(1, "a")), 0,
		1, 0.75, 200},
	// b takes 20 s for each of its 20 FLOPs·100: 2 s a token, as a takes 1 s for 10 FLOPs.
	"finished elsewhere weigh by FLOPs": {slices.Concat(of(2, "b", before, flops(20)), of(1, "a", during(0, 1)),
		of(1, "b", flops(20))), 0, 1, 400. / 700, 300},
	"a new side has the median of its size": {slices.Concat(of(1, "a", done(1, 0)), of(1, "b", done(200, 0)),
		of(1, "c", done(2, 0)), of(1, "d", flops(20)), of(1, "e", size("large"), done(7, 0), flops(1000))), 0, 1,
		1 - 400./21400, 400},
	"a new size has the nearest": {slices.Concat(of(1, "a", done(1, 0)),
		of(1, "a", size("m"), flops(100), done(2, 0)), of(1, "a", size("l"), flops(1000))), 0, 1,
		300. / 2300, 2000},
	"judging is added": {slices.Concat(of(1, "a", done(1, 30)), of(1, "a", during(50, 1)), of(1, "a")), 0, 1,
		180. / 390, 210},
	// b is twice as slow, so its judging is taken to be.
	"judging of a side that has none yet": {slices.Concat(of(1, "a", done(1, 30)), of(1, "b", during(0, 2))), 0, 1,
		130. / 390, 260},
	"judging of a side twice as fast": {slices.Concat(of(1, "a", done(4, 30)), of(1, "b", during(0, 2))), 0, 1,
		430. / 645, 215},
	"a side that was never started": {slices.Concat(of(1, "a", done(1, 0), start(5)), of(1, "b")),
		0, 1, 0.5, 105},
	"being judged": {slices.Concat(of(1, "a", done(1, 30)), of(1, "a", asked(10))), 0, 1,
		240. / 260, 20},
	"being judged for long": {slices.Concat(of(1, "a", done(1, 30)), of(1, "a", asked(50))), 0, 1, 1,
		0},
	"starting": {slices.Concat(of(1, "a", done(1, 0), start(5)), of(1, "a")),
		0, 1, 0.5, 105},
	"started": {of(1, "a", during(50, 1), start(5)), 0, 1, 55. / 105, 50},
	"a run that diverged": {slices.Concat(of(1, "a", done(1, 30)),
		of(1, "a", done(1, 0), func(r *prospect) { r.trained = 10 }), of(1, "a")), 0, 1, 140. / 270, 130},
}

// The share of the work that is done and the time to its end.
func TestForecast(t *testing.T) {
	for name, x := range forecasts {
		got := forecast(x.runs, x.tuning, x.workers)
		if !(math.Abs(got.share-x.share) <= 1e-9) || math.IsNaN(x.left) != math.IsNaN(got.left) ||
			math.Abs(got.left-x.left) > 1e-9 {
			t.Errorf("%s: %+v, want %g and %g", name, got, x.share, x.left)
		}
	}
}
